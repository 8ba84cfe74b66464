"""What to do next on the robot: another log, another rollout of the policy, or more training; see `worth`.

A robot whose base is fixed can be told motions of every kind; one that walks can be asked to walk in another way, whose command
is searched for; see `asking`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gapless.arrays import Array
from gapless.close.asking import rollout, telling_command
from gapless.close.case import Case
from gapless.close.rollouts import Asked
from gapless.close.worth import TRAINING, Experiment, matters, next_experiment
from gapless.identify import measure_motion, robots_of
from gapless.learn import task_of
from gapless.twin import Gaussian
from gapless.worlds import plan_motion

SECONDS = 4.0
MOTIONS = ("rich", "chirp", "steps", "prbs")


@dataclass(frozen=True)
class Advice:
    """Something that could be done, and what it is expected to be worth."""

    name: str
    seconds: float
    """Of robot time."""
    left: float
    """Share of what may be wrong about the policy's rollouts that is expected to be left."""
    worth: float
    """Share that it takes away, per second of robot time."""


def advised(case: Case, belief: Gaussian, policy: Path, rng: np.random.Generator) -> list[Advice]:
    """What could be done next, what is worth most first; training comes first where no experiment tells much more."""
    asked = Asked(case, policy, 1, SECONDS)
    twin, space = asked.twin, belief.space

    def log(name: str) -> Experiment:
        motion = plan_motion(name, twin, SECONDS, np.random.default_rng(2))

        def measure(x: Array, chance: np.random.Generator) -> Array:
            return measure_motion(twin, robots_of(twin, space, x, chance), motion, chance).reshape(len(x), -1)

        return Experiment(f"another log, {name}", SECONDS, measure)

    same = rollout(asked, asked.commands[0], space)
    metric, ranges = matters(belief, same.measure, rng), list(task_of(case.task, twin).commands.values())
    each = [log(name) for name in MOTIONS if not twin.floating]
    if twin.floating and ranges:
        other = Asked(case, policy, 1, SECONDS)
        each = [rollout(other, telling_command(other, ranges, belief, metric, rng), space)]
    name, ranked = next_experiment(belief, [same, *each], metric, rng)
    found = [Advice(t.experiment.name, t.experiment.seconds, t.left, t.worth) for t in ranked]
    training = Advice(TRAINING, 0.0, 1.0, 0.0)
    return [training, *found] if name == TRAINING else [*found, training]
