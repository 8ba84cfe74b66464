"""`gapless course`: judge a policy on robots that it has never met."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import tyro

from gapless.cli import options
from gapless.cli.options import Json, Preset, Threads


def course(
    policy: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="POLICY")],
    *,
    robot: Annotated[str | None, tyro.conf.arg(help_behavior_hint="")] = None,
    belief: Annotated[Path | None, tyro.conf.arg(metavar="JSON", help_behavior_hint="")] = None,
    preset: Preset = None,
    terrain: Annotated[
        Literal["flat", "rough", "steps", "slopes", "mixed"] | None, tyro.conf.arg(help_behavior_hint="")
    ] = None,
    draws: int = 6,
    push: bool = True,
    seed: int = 1,
    threads: Threads = 0,
    out: Annotated[Path | None, tyro.conf.arg(metavar="HTML", help_behavior_hint="")] = None,
    clip: Annotated[Path | None, tyro.conf.arg(metavar="PNG", help_behavior_hint="")] = None,
    json: Json = False,
) -> None:
    """Run a policy over the course: every command of a grid, on unseen robots, kicked every 2.5 s.

    For example `gapless course runs/walk --robot quadruped`. Beside each figure stands that of a policy whose output is zero,
    on the same robots. Exit code 1 if fewer than 95 % of the runs succeed, or fewer than of that policy.

    Args:
        policy: Folder of a policy, as `gapless train` leaves it.
        robot: A built-in robot, an MJCF or URDF file, or menagerie:NAME; that of the training unless given.
        belief: What robots are drawn from, with preset narrow.
        preset: What robots are drawn from: that of the training unless given; narrow with a belief.
        terrain: What the robots walk on, that of the training unless given; always other ground than there.
        draws: Robots for each command.
        push: Whether the base is kicked.
        seed: Of the robots and kicks; training never uses these.
        out: A page with a picture; nothing is written unless given.
        clip: Film the policy at its task on one of the robots, as an animated PNG.
    """
    from rich.console import Console

    from gapless.checks import whole
    from gapless.learn import enter

    whole(draws, "--draws", 1, 1000)
    options.can_write(out, *options.PAGE)
    options.can_write(clip, *options.PICTURE)
    entrant = enter(policy, robot, belief, preset, terrain, seed)
    options.assumed(entrant.twin)
    with Console(stderr=True).status("running the course"):
        result = entrant.judge(draws, push, threads)
    options.show(result, json, out)
    if clip:
        entrant.film(clip)
        options.tell(f"filmed into {clip}")
    if not result.verdict().good:
        sys.exit(1)
