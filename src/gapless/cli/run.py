"""`gapless run`: run a checked policy on a robot, limited and recorded."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from gapless.cli import options
from gapless.cli.options import Command, Flag, Json

if TYPE_CHECKING:
    from gapless.deploy import Runner, Steer


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
    smooth: float = 0.0,
    steer: Annotated[str | None, tyro.conf.arg(metavar="keyboard|udp:PORT|FILE", help_behavior_hint="")] = None,
    view: Flag = False,
    host: Annotated[str | None, tyro.conf.arg(metavar="HOST", help_behavior_hint="")] = None,
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
        verdict: Where the policy's check wrote its verdict (its --out); the policy's own folder unless given.
        unchecked: Run it without a passed verdict.
        adaptive: Let the inner loop adapt to loads.
        watch: Run the twin beside the robot, and fall back when the robot leaves the envelope of the policy's check.
        smooth: Time constant of a low-pass filter of the policy's targets at the robot's rate [s].
        steer: Change the command while it runs: w/s, a/d, q/e, space, x and Escape of the keyboard; JSON such as [0.5, 0, 0]
            in packets to a port of this computer; or a gamepad's file such as /dev/input/js0.
        view: Show robot and twin in the browser with live plots, on this computer only; the twin runs as with --watch.
        host: With --view: open the page at this address of the computer, to whoever has the token that is printed.
        out: The recording.
    """
    from gapless.deploy import Steer, run as deploy
    from gapless.policy import load_policy

    _fits(seconds, smooth, host, view, out)
    loaded, asked = load_policy(policy), options.numbers("command", command)
    risk = "UNCHECKED: this policy has no passed verdict, and nothing says that it will not fall. " if unchecked else ""
    name = model or loaded.contract.robot.name
    with options.stopping() as stopped, contextlib.ExitStack() as stack:
        steering = stack.enter_context(contextlib.closing(Steer(steer))) if steer else None

        def started(runner: "Runner") -> None:
            stopped.append(runner.stop)
            options.tell(f"{risk}Starting: Ctrl-C stops it softly")
            stack.enter_context(_beside(runner, risk, steering, name if view else None, host))

        result = deploy(
            loaded, robot, model=model, command=asked, seconds=seconds,
            limits=dict(options.pairs("limit", limit)),
            verdict=None if unchecked else verdict or policy,
            recording=out, adaptive=adaptive, watched=watch or view, smooth=smooth, started=started,
        )  # fmt: skip
    options.show(result, json)
    sys.exit(result.exit_code)


def _fits(seconds: float, smooth: float, host: str | None, view: bool, out: Path | None) -> None:
    """Refuse what cannot be, before anything begins."""
    from gapless.errors import BadInput

    if not (0 < seconds <= 24 * 3600 and 0 <= smooth <= 1):
        raise BadInput(f"--seconds takes up to a day and --smooth up to 1 s, not {seconds:g} and {smooth:g}")
    if host and not view:
        raise BadInput("--host says where --view is opened: add --view")
    options.can_write(out, "a run", ".mcap")
    if out and out.exists():
        raise BadInput(f"{out}: is there already; a recording replaces nothing")


@contextlib.contextmanager
def _beside(runner: "Runner", risk: str, steering: "Steer | None", viewed: str | None, host: str | None) -> Iterator[None]:
    """A line in the terminal that says how the run goes, with its risk; steering and view where they are asked for."""
    from rich.console import Console
    from rich.live import Live

    from gapless.deploy import LOCAL, View, beside

    console = Console(stderr=True)
    with contextlib.ExitStack() as stack:
        view = View(viewed, len(runner.model.joints), host or LOCAL) if viewed else None
        line = (
            stack.enter_context(Live("", console=console, auto_refresh=False, transient=True)) if console.is_terminal else None
        )
        stack.enter_context(
            beside(runner, lambda text: line.update(risk + text, refresh=True) if line else None, steering, view)
        )
        yield
