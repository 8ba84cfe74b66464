"""`gapless compare`: which remedy helps against which mismatch, and at what price."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import tyro

from gapless.cli import options
from gapless.cli.options import Json
from gapless.cli.stages import stages

Names = Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME...", help_behavior_hint="")]


def compare(
    robot: Annotated[Literal["pendulum", "quadruped"], tyro.conf.Positional] = "pendulum",
    *,
    techniques: Names = (),
    mismatches: Names = (),
    seeds: int = 5,
    first_seed: int = 0,
    iterations: int = 60,
    scratch: int = 0,
    draws: int = 1,
    jobs: int = 1,
    ray: Annotated[str, tyro.conf.arg(metavar="ADDRESS", help_behavior_hint="")] = "",
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="(needed)")] = None,
    json: Json = False,
) -> None:
    """Compare remedies against the gap: every technique on robots with one mismatch each, with several seeds.

    For example `gapless compare --out out/compare --jobs 2`, a piece of it
    `gapless compare --mismatches latency strength --seeds 1 --out out/compare`, or on many machines
    `gapless compare --ray 10.0.0.5:6379 --out /shared/compare`. What is finished is kept in the folder and not done again, so
    that it may be stopped at any time.

    Args:
        robot: The robot; it has a list of mismatches.
        techniques: Which remedies; all unless named.
        mismatches: Which mismatches; all unless named. `none` is the robot without one.
        seeds: Robots and trainings of each.
        first_seed: The first of them.
        iterations: Of tuning.
        scratch: Iterations of policies that are trained from nothing; 0 for as many as suit the robot.
        draws: Runs of each policy on each robot, for each of its 36 commands or starts.
        jobs: Processes; one for each core is right.
        ray: Use a Ray cluster in their place, whose machines all see the folder of --out; local starts one here.
        out: Folder of all policies, logs and fits, of the result, its page and matrix.svg.
    """
    from gapless.close import compare as run, plan_comparison
    from gapless.errors import BadInput

    if jobs < 1:
        raise BadInput(f"--jobs must be at least 1, not {jobs}")
    plan = plan_comparison(robot, techniques, mismatches, seeds, iterations, scratch, draws, first_seed)
    out = options.wanted(out, "the comparison", "out/compare")
    options.result_folder(out, replace=True)  # what is finished there is kept
    with stages() as tell:
        result = run(plan, out, jobs, ray, tell)
    result.save(out)
    options.show(result, json)
    if not json:
        options.tell(f"compare.json, the page and matrix.svg are in {out}: open {out / 'report.html'}")
