"""`gapless excite`: the motion to record next: it tells most about what is uncertain."""

from pathlib import Path
from typing import Annotated

import tyro

from gapless.cli import options
from gapless.cli.options import ABOUT, About, InAir, Json, Model, Seed


def excite(
    model: Model,
    *,
    belief: Annotated[Path | None, tyro.conf.arg(metavar="BELIEF.json", help_behavior_hint="")] = None,
    seconds: float = 20.0,
    out: Annotated[Path | None, tyro.conf.arg(metavar="CSV", help_behavior_hint="(needed)")] = None,
    speed: float = 3.0,
    torque: float = 1.0,
    reach: float = 3.14,
    noise: Annotated[float | None, tyro.conf.arg(metavar="RAD", help_behavior_hint="")] = None,
    about: About = ABOUT,
    in_air: InAir = False,
    effort: float = 1.0,
    seed: Seed = 0,
    plot: Annotated[Path | None, tyro.conf.arg(metavar="HTML", help_behavior_hint="")] = None,
    json: Json = False,
) -> None:
    """Design the motion that tells most about what is uncertain, within limits of position, speed, torque and collision.

    For example `gapless excite arm --belief fit/belief.json --seconds 20 --out motion.csv`, then
    `gapless standin secret.toml --motion motion.csv --out log.mcap`, or the robot itself. Prints the interval that each number
    is expected to have afterwards, beside a chirp and a multisine within the same limits. Ctrl-C keeps the best motion so far.

    Args:
        belief: What is known so far; unless given, all that `gapless fit` fits, as wrong as models usually are.
        seconds: How long the motion lasts.
        out: The motion: a column `time` and one for each joint, in s and rad.
        speed: The fastest that a joint may turn [rad/s].
        torque: Share of each drive's torque limit that may be used.
        reach: How far a joint may go from home [rad], within its range.
        noise: Standard deviation of measured positions; the belief's, or 0.001, unless given.
        effort: How long to search: 1 is about a minute on two cores.
        plot: Draw the motion into this file.
    """
    import numpy as np
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from gapless import identify
    from gapless.errors import BadInput
    from gapless.twin import load_belief

    if not 0 < effort <= 1000:
        raise BadInput(f"--effort must be between 0 and 1000, not {effort:g}")
    if seed < 0:
        raise BadInput(f"--seed must not be negative, not {seed}")
    options.can_write(out, "a motion", ".csv")
    options.can_write(plot, *options.PAGE)
    known = load_belief(belief) if belief else None
    twin = about.stated().twin(model, belief=belief, in_air=in_air)
    if known:
        twin.accepts(known.space)
    out = options.wanted(out, "the motion", "motion.csv")
    limits, console = identify.limits_of(twin, speed, torque, reach), Console(stderr=True)
    columns = (TextColumn("{task.description:<42}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=json or not console.is_terminal) as progress:
        task = progress.add_task("what the robot does at home", total=1.0)

        def tick(done: float, words: str) -> None:
            progress.update(task, completed=done, description=words)

        rng, work = np.random.default_rng(seed), identify.WORK * effort
        motion = identify.excite(twin, known, seconds, limits, rng, noise, work, tick)
    options.assumed(twin)
    motion.write_motion(out)
    options.show(motion, json, plot)
    if not json:
        options.tell(f"{motion.candidates} stretches of motion were tried; the best are in {out}")
