"""Worth: which experiment to do next on the robot: the one that tells most, per second, about what matters to the policy.

An experiment is simulated on robots of the belief. How strongly what is measured depends on each number, beside how much it
varies among robots with equal numbers, is the information that the experiment would give. What matters is how strongly the
policy's own rollouts depend on each number: being wrong about a number that changes nothing costs nothing. Worth is by how much
the expected error in what the policy does would fall, per second of robot time. Training takes none: it is next where no
experiment would lower that error by much any more.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gapless.arrays import Array
from gapless.close.simopt import drawn
from gapless.identify import learn_statistics
from gapless.twin import Gaussian

ROBOTS, COMPONENTS = 300, 24
ENOUGH = 0.1
"""Share of what is left to be wrong about: where no experiment would take away more, training is worth more."""
TRAINING = "more training"


@dataclass(frozen=True)
class Experiment:
    """Something that can be done on the robot."""

    name: str
    seconds: float
    measure: Callable[[Array, np.random.Generator], Array]
    """From numbers (n, parameters), scaled, to what robots with them would measure, (n, numbers), noise and all."""


@dataclass(frozen=True)
class Told:
    """What an experiment is expected to tell, and how its outcome is read."""

    experiment: Experiment
    left: float
    """Expected error of the rollouts after it, over that before."""
    posterior: Callable[[Array], Gaussian]
    """From what was measured, (numbers,), to the belief after it."""

    @property
    def worth(self) -> float:
        """Share of the expected error that it takes away, per second of robot time."""
        return (1 - self.left) / self.experiment.seconds


def matters(belief: Gaussian, rollouts: Callable[[Array, np.random.Generator], Array], rng: np.random.Generator) -> Array:
    """How strongly what the policy does depends on the numbers, as a metric. Shape: (parameters, parameters)."""
    x = drawn(belief, ROBOTS, rng)
    seen = _summed(rollouts(x, rng))[0]
    slopes = np.linalg.lstsq(np.column_stack([np.ones(len(x)), x]), seen, rcond=None)[0][1:]
    return np.asarray(slopes @ slopes.T)


def told(belief: Gaussian, experiment: Experiment, metric: Array, rng: np.random.Generator) -> Told:
    """What an experiment is expected to tell about what matters."""
    x = drawn(belief, ROBOTS, rng)
    features, summed = _summed(experiment.measure(x, rng))
    root = np.linalg.cholesky(belief.covariance + 1e-12 * np.eye(len(belief.centre)))
    unit = np.linalg.solve(root, (x - belief.centre).T).T  # numbers of size 1 about 0, as the statistics are learnt for
    inference = learn_statistics(unit, features, np.ones(x.shape[1]))

    def posterior(measured: Array) -> Gaussian:
        centre, covariance, _ = inference.posterior(summed(measured[None])[0])
        moved = np.clip(belief.centre + root @ centre, *belief.space.bounds)
        spread = root @ covariance @ root.T
        return dataclasses.replace(belief, centre=moved, covariance=(spread + spread.T) / 2)

    after = root @ inference.posterior(features.mean(axis=0))[1] @ root.T
    return Told(experiment, float(np.trace(metric @ after) / np.trace(metric @ belief.covariance)), posterior)


def next_experiment(
    belief: Gaussian, experiments: Sequence[Experiment], metric: Array, rng: np.random.Generator
) -> tuple[str, list[Told]]:
    """The name of what to do next, and what each experiment is expected to tell, the most worth first."""
    each = sorted((told(belief, e, metric, rng) for e in experiments), key=lambda t: -t.worth)
    return (TRAINING if min(t.left for t in each) > 1 - ENOUGH else each[0].experiment.name), each


def _summed(measured: Array) -> tuple[Array, Callable[[Array], Array]]:
    """Principal components of what robots measured (n, numbers), of size 1, and what gives them of other measurements."""
    flat = np.nan_to_num(measured.reshape(len(measured), -1))
    centre = flat.mean(axis=0)
    _, size, along = np.linalg.svd(flat - centre, full_matrices=False)
    kept = 9 * max(1, min(COMPONENTS, int((size > 1e-9 * size[0]).sum())) // 9)  # statistics are learnt by nines
    kept = min(kept, len(size))
    scale = size[:kept] / np.sqrt(len(flat))

    def summed(other: Array) -> Array:
        return np.asarray((np.nan_to_num(other.reshape(len(other), -1)) - centre) @ along[:kept].T / scale)

    return summed(measured), summed
