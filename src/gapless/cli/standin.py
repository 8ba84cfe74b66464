"""`gapless standin`: record, serve or draw a simulated robot with secrets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from gapless.cli import options
from gapless.cli.options import ABOUT, About, Command, Flag, InAir

if TYPE_CHECKING:
    from gapless.arrays import Array
    from gapless.policy import Pilot
    from gapless.worlds import StandInSpec


def standin(
    spec: Annotated[Path | None, tyro.conf.Positional, tyro.conf.arg(metavar="[SPEC]")] = None,
    *,
    motion: Annotated[str, tyro.conf.arg(metavar="rich|chirp|steps|prbs|stand|FILE.csv|POLICY")] = "rich",
    command: Command = None,
    seconds: float | None = None,
    about: About = ABOUT,
    in_air: InAir = False,
    random: Flag = False,
    robot: str = "quadruped",
    difficulty: Literal["easy", "normal", "hard"] = "normal",
    seed: int = 0,
    serve: Flag = False,
    port: int = 7447,
    jitter: float = 0.0,
    loss: float = 0.0,
    out: Annotated[Path | None, tyro.conf.arg(metavar="FILE", help_behavior_hint="(needed)")] = None,
) -> None:
    """Record a stand-in (a simulated robot with secrets, from a TOML file) moving; serve it live; or draw one at random.

    For example `gapless standin secret.toml --motion rich --seconds 20 --in-air --out log.mcap`,
    `gapless standin secret.toml --motion runs/walk --command 0.5,0,0 --out walk.mcap`, and
    `gapless standin --random --difficulty hard --seed 7 --out secret.toml`. With `gapless standin secret.toml --serve` it is a
    live robot on this computer, in real time, for `gapless run` at udp://127.0.0.1:7447.

    Args:
        spec: The stand-in's file.
        motion: What it is commanded: rich is multisine, chirp, slow triangle and a large square wave. In the folder of
            a policy, that policy commands it, at its own rate and with its own gains.
        seconds: How long it moves, 20 s unless given.
        random: Draw a stand-in instead, and write its file.
        robot: With --random: which robot.
        difficulty: With --random: how many secrets.
        seed: Of the motion, or with --random of the stand-in.
        serve: Serve it over UDP until Ctrl-C; with --seconds given, for that long.
        port: With --serve: where, on this computer only.
        jitter: With --serve: largest extra delay of its states [s].
        loss: With --serve: share of packets that are lost.
        out: The log (.mcap, .npz or .csv), or with --random the stand-in's file.
    """
    from gapless.errors import BadInput

    if random:
        return _draw(robot, difficulty, seed, in_air, out)
    if spec is None:
        raise BadInput("name a stand-in file, or draw one: gapless standin --random --out standin.toml")
    if serve:
        return _serve(spec, about, in_air, seconds, port, jitter, loss)
    _record(spec, motion, 20.0 if seconds is None else seconds, command, about, in_air, seed, out)


def _record(
    spec: Path, motion: str, seconds: float, command: str | None, about: About, in_air: bool, seed: int, out: Path | None
) -> None:
    """Record a stand-in that moves."""
    import dataclasses

    from rich.console import Console
    from rich.progress import Progress

    from gapless.errors import BadInput, PhysicsError
    from gapless.logs import write
    from gapless.worlds import StandIn, build_standin, load_standin, record

    options.can_write(out, *options.RECORDING)
    if seed < 0:
        raise BadInput(f"--seed must not be negative, not {seed}")
    described = load_standin(spec, about.stated())
    described = dataclasses.replace(described, in_air=described.in_air or in_air)
    secret = described.tolerance > 0 or described.change or described.add
    described, commands, meta = _commanded(described, motion, seconds, command, seed)
    out = options.wanted(out, "the log", "log.mcap")
    options.assumed(build_standin(described))
    stand_in, console = StandIn(described), Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("recording", total=len(commands))
        try:
            log = record(stand_in, commands, stand_in.signal, str(spec), lambda: progress.advance(task))
        except PhysicsError as error:
            raise PhysicsError(f"{spec}: {error}") from None
    if not secret:
        meta |= {"twin": True}  # no secrets: the model itself
    write(dataclasses.replace(log, meta={**log.meta, **meta}), out)
    options.tell(f"{stand_in.seconds:.1f} s of robot time, {len(log.joints)} joints, {len(log.signals)} signals: {out}")


def _serve(spec: Path, about: About, in_air: bool, seconds: float | None, port: int, jitter: float, loss: float) -> None:
    """Serve a stand-in in real time, and say at the end how it was treated."""
    import dataclasses
    import json
    import math

    from gapless.deploy import Emulated, Line, Server
    from gapless.errors import BadInput
    from gapless.plain import plain
    from gapless.worlds import load_standin

    if not (0 <= port < 65536 and 0 <= jitter <= 1 and 0 <= loss < 1):
        raise BadInput("--port is below 65536, --jitter at most 1 s, and --loss a share below 1")
    described = load_standin(spec, about.stated())
    described = dataclasses.replace(described, in_air=described.in_air or in_air)
    server = Server(Emulated(described), port=port, line=Line(jitter, loss))
    ended: list[bool] = []
    with options.stopping() as calls:
        calls.append(lambda: ended.append(True))
        options.tell(f"serving {server.robot.twin.name} at udp://127.0.0.1:{server.port} (Ctrl-C ends)")
        server.run(math.inf if seconds is None else seconds, lambda: bool(ended))
    told = {"mode": server.robot.mode, "ignored": server.ignored, "refused": server.refused, "lost": server.lost}
    told |= {"accepted": server.robot.accepted, "fallback_after": server.fallback_after, "limits": server.robot.audited()}
    told |= {"missed": server.missed, "tick": server.times.json(), "seconds": server.robot.time}
    server.close()
    print(json.dumps(plain(told)))


def _draw(robot: str, difficulty: str, seed: int, in_air: bool, out: Path | None) -> None:
    from gapless.files import atomic
    from gapless.worlds import draw_standin, dump_standin

    options.can_write(out, "a stand-in", ".toml")
    text = dump_standin(draw_standin(robot, difficulty, seed, in_air))
    out = options.wanted(out, "the stand-in", "secret.toml")
    with atomic(out) as part:
        part.write_text(text)
    options.tell(f"a {difficulty} {robot} with secrets: {out}")


def _commanded(
    spec: StandInSpec, motion: str, seconds: float, command: str | None, seed: int
) -> tuple[StandInSpec, Array | list[Pilot], dict[str, Any]]:
    """What commands a stand-in in each period, the stand-in with a policy's period and gains, and the gains that it is told."""
    import dataclasses

    import numpy as np

    from gapless.errors import BadInput
    from gapless.files import within
    from gapless.policy import Pilot, load_policy
    from gapless.worlds import build_standin, motion_periods, plan_motion

    twin, asked, gains = build_standin(spec), options.numbers("command", command), dict[str, Any]()
    if not Path(motion).is_dir():
        commands = plan_motion(motion, twin, seconds, np.random.default_rng(seed))
        if command is not None:
            raise BadInput(f"--command asks a policy for something, and the motion {motion} is none: --motion takes its folder")
        return spec, commands, gains
    policy = load_policy(motion)
    contract, joints = policy.contract, policy.contract.joints
    with within(motion):
        contract.columns(twin.joints)
        if command is None and contract.commands:
            raise BadInput(f"the policy must be asked for {', '.join(contract.commands)}: use --command")
        if joints.kp and joints.kd and joints.gain_unit == "Nm" and "gains" not in spec.add:
            told = {"kp": joints.kp, "kd": joints.kd}
            gains = {key: dict(zip(joints.names, values, strict=True)) for key, values in told.items()}
            spec = dataclasses.replace(spec, add={**spec.add, "gains": gains})
        spec = dataclasses.replace(spec, control_dt=contract.timing.control_dt)
        twin = build_standin(spec)
        return spec, [Pilot(policy, twin, asked)] * motion_periods(seconds, twin.control_dt), gains
