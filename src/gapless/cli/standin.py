"""`gapless standin`: record a simulated robot with secrets, or draw one."""

from pathlib import Path
from typing import Annotated, Literal

import tyro

from gapless.cli import options
from gapless.cli.options import Flag, InAir


def standin(
    spec: Annotated[Path | None, tyro.conf.Positional, tyro.conf.arg(metavar="[SPEC]")] = None,
    *,
    motion: Annotated[str, tyro.conf.arg(metavar="rich|chirp|steps|prbs|stand|FILE.csv")] = "rich",
    seconds: float = 20.0,
    in_air: InAir = False,
    random: Flag = False,
    robot: str = "quadruped",
    difficulty: Literal["easy", "normal", "hard"] = "normal",
    seed: int = 0,
    out: Annotated[Path | None, tyro.conf.arg(metavar="FILE", help_behavior_hint="")] = None,
) -> None:
    """Record a stand-in (a simulated robot with secrets, described in a TOML file) moving; or draw one at random.

    For example `gapless standin secret.toml --motion rich --seconds 20 --in-air --out log.mcap`, and
    `gapless standin --random --difficulty hard --seed 7 --out secret.toml`.

    Args:
        spec: The stand-in's file.
        motion: What it is commanded: rich is multisine, chirp, slow triangle and a large square wave.
        seconds: How long it moves.
        random: Draw a stand-in instead, and write its file.
        robot: With --random: which robot.
        difficulty: With --random: how many secrets.
        seed: Of the motion, or with --random of the stand-in.
        out: The log (.mcap, .npz or .csv), or with --random the stand-in's file.
    """
    import dataclasses

    import numpy as np
    from rich.console import Console
    from rich.progress import Progress

    from gapless.errors import BadInput, PhysicsError
    from gapless.files import atomic
    from gapless.logs import write
    from gapless.worlds import StandIn, build_standin, draw_standin, dump_standin, load_standin, plan_motion, record

    file = out or Path("standin.toml" if random else "log.mcap")
    if random:
        text = dump_standin(draw_standin(robot, difficulty, seed, in_air))
        with atomic(file) as part:
            part.write_text(text)
        options.tell(f"a {difficulty} {robot} with secrets: {file}")
        return
    if spec is None:
        raise BadInput("name a stand-in file, or draw one: gapless standin --random --out standin.toml")
    if file.suffix not in (".mcap", ".npz", ".csv"):
        raise BadInput(f"{file}: a log is written as .mcap, .npz or .csv")
    options.can_write(file)
    if seed < 0:
        raise BadInput(f"--seed must not be negative, not {seed}")
    described = load_standin(spec)
    described = dataclasses.replace(described, in_air=True) if in_air else described
    stand_in, console = StandIn(described), Console(stderr=True)
    commands = plan_motion(motion, build_standin(described), seconds, np.random.default_rng(seed))
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("recording", total=len(commands))
        try:
            log = record(stand_in, commands, stand_in.signal, str(spec), lambda: progress.advance(task))
        except PhysicsError as error:
            raise PhysicsError(f"{spec}: {error}") from None
    if described.tolerance == 0 and not described.change and not described.add:
        log = dataclasses.replace(log, meta={**log.meta, "twin": True})  # no secrets: the model itself
    write(log, file)
    options.tell(f"{stand_in.seconds:.1f} s of robot time, {len(log.joints)} joints, {len(log.signals)} signals: {file}")
