"""A trained policy and the robots that it is judged on, which it has never met.

entrant = enter("runs/walk", robot="quadruped")
print(entrant.judge())
entrant.film("walk.png")
"""

import dataclasses
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gapless.errors import BadInput
from gapless.learn import clip, course
from gapless.learn.course_result import CourseResult
from gapless.learn.ground import on_terrain
from gapless.learn.run import load_run
from gapless.learn.task import Task
from gapless.policy import Policy, load_policy
from gapless.twin import Belief, Twin


@dataclass(frozen=True)
class Entrant:
    """A policy at the start of the course."""

    folder: str
    policy: Policy
    twin: Twin
    """On the ground that it is to walk on."""
    task: Task
    belief: Belief | None
    """What robots are drawn from."""
    seed: int

    def judge(self, draws: int = course.DRAWS, push: bool = True, threads: int = 0) -> CourseResult:
        """Run the course: every command of a grid, on `draws` robots each, kicked every 2.5 s if `push`.

        Beside the policy, one whose output is zero runs it on the same robots with the same kicks.
        """
        result, idle = (
            course.run(
                self.twin, self.task, act, self.belief, np.random.default_rng([self.seed, 2]), draws, push, threads=threads
            )
            for act in (self.policy, course.Idle(self.policy.contract))
        )
        return dataclasses.replace(result, policy=self.folder, idle=idle.summary())

    def film(self, path: str | os.PathLike[str]) -> None:
        """Film the policy at its task on one of the robots, as an animated PNG; bad input where OpenGL does not start."""
        rng = np.random.default_rng([self.seed, 4])
        clip.film_course(Path(path), self.twin, self.task, self.policy, self.belief, rng)


def enter(
    folder: str | os.PathLike[str],
    robot: str | None = None,
    belief: str | os.PathLike[str] | None = None,
    preset: str | None = None,
    terrain: str | None = None,
    seed: int = 1,
) -> Entrant:
    """A policy that `train` left in a folder, and the robots to judge it on.

    Args:
        folder: of the training.
        robot: name or path; that of the training unless given.
        belief: file of what robots are drawn from; that of the training unless given.
        preset: what robots are drawn from; that of the training unless given, `narrow` with a belief.
        terrain: what they walk on; that of the training unless given, but always other ground.
        seed: of the robots and kicks; training never uses these.
    """
    if seed < 0:
        raise BadInput(f"the seed must not be negative, not {seed}")
    policy, run = load_policy(Path(folder)), load_run(Path(folder))
    preset = preset or ("narrow" if belief else run.preset)
    run = dataclasses.replace(run, robot=robot or run.robot, preset=preset, belief=os.fspath(belief) if belief else run.belief)
    twin, task, drawn = run.build(lot=2 + seed)
    twin = on_terrain(twin, terrain or run.terrain, np.random.default_rng([seed, 5]))
    return Entrant(os.fspath(folder), policy, twin, task, drawn, seed)
