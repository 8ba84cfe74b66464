"""`gapless run`: run a checked policy on a robot, limited and recorded."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from gapless.cli import options
from gapless.cli.options import Command, Flag, Json

if TYPE_CHECKING:
    from gapless.deploy import Runner


def run(
    policy: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="POLICY")],
    *,
    robot: Annotated[str, tyro.conf.arg(metavar="ADDRESS")],
    model: Annotated[str | None, tyro.conf.arg(metavar="MODEL", help_behavior_hint="")] = None,
    command: Command = None,
    seconds: float = 10.0,
    limit: Annotated[
        tuple[str, ...], tyro.conf.UseAppendAction, tyro.conf.arg(metavar="NAME=VALUE", help_behavior_hint="")
    ] = (),
    verdict: Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="")] = None,
    unchecked: Flag = False,
    adaptive: Flag = False,
    watch: Flag = False,
    out: Annotated[Path | None, tyro.conf.arg(metavar="FILE.mcap", help_behavior_hint="")] = None,
    json: Json = False,
) -> None:
    """Run a policy that passed its check on a live robot, through the safety layer; Ctrl-C stops it softly.

    For example `gapless run runs/walk --robot udp://127.0.0.1:7447 --command 0.5,0,0 --out walk.mcap` beside
    `gapless standin secret.toml --serve`, or `gapless run runs/walk --robot standin:secret.toml --command 0.5,0,0`.
    Exits 0 for a run without a stop, 1 for one that was stopped, 2 where the robot was not touched.

    Args:
        policy: Its folder.
        robot: udp://HOST:PORT, standin:SPEC.toml, can:CONFIG.toml, unitree:go2, unitree:g1, or your own FILE.py.
        model: The robot's model; the policy's own robot where that is built in.
        seconds: How long.
        limit: Tighter limits, such as torque=15, velocity=10, tilt=0.6 or scale=0.5; may be given again.
        verdict: Where `gapless check --out` wrote the policy's verdict; the policy's own folder unless given.
        unchecked: Run it without a passed verdict.
        adaptive: Let the inner loop adapt to loads.
        watch: Run the twin beside the robot, and fall back when the robot leaves the envelope of the policy's check.
        out: The recording.
    """
    import math

    from gapless.deploy import run as deploy
    from gapless.errors import BadInput
    from gapless.policy import load_policy

    if not 0 < seconds <= 24 * 3600 or not math.isfinite(seconds):
        raise BadInput(f"--seconds takes up to a day, not {seconds:g}")
    options.can_write(out)
    loaded, asked = load_policy(policy), options.numbers("command", command)
    if unchecked:
        options.tell("UNCHECKED: this policy has no passed verdict, and nothing says that it will not fall")
    with options.stopping() as stopped:

        def started(runner: "Runner") -> None:
            stopped.append(runner.stop)
            options.tell(f"starting{' an UNCHECKED policy' if unchecked else ''}: Ctrl-C stops it softly")

        result = deploy(
            loaded,
            robot,
            model=model,
            command=asked,
            seconds=seconds,
            limits=dict(options.pairs("limit", limit)),
            verdict=None if unchecked else verdict or policy,
            recording=out,
            adaptive=adaptive,
            watched=watch,
            started=started,
        )
    options.show(result, json)
    sys.exit(result.exit_code)
