"""SimOpt: a belief that follows rollouts of the policy by REPS, a bounded step at a time (Chebotar et al. 2019)."""

from __future__ import annotations

import numpy as np

from gapless.arrays import Array
from gapless.close.reps import BOUND, divergence, reps
from gapless.close.rollouts import Asked, Rollouts
from gapless.twin import Gaussian

UPDATES, SAMPLES = 8, 320
"""Of a round, and robots that are simulated for each."""


def update(belief: Gaussian, asked: Asked, real: Rollouts, rng: np.random.Generator) -> tuple[Gaussian, str]:
    """The belief after a round, and what is to be said of it."""
    moved, steps = belief, []
    for _ in range(UPDATES):
        x = drawn(moved, SAMPLES, rng)
        costs = asked.cost(asked.simulated(moved.space.clip(moved.space.from_scaled(x)), moved.space), real.seen)
        found = reps(moved, x, costs)
        steps.append(divergence(found, moved))
        moved = found
    most = max(steps)
    said = f"{UPDATES} updates from {SAMPLES} simulated robots each, divergence at most {most:.2f} of {BOUND:g} nats"
    return moved, said


def drawn(belief: Gaussian, n: int, rng: np.random.Generator) -> Array:
    """Draws in the scaled space, mirrored at the bounds. Shape: (n, parameters)."""
    root = np.linalg.cholesky(belief.covariance + 1e-12 * np.eye(len(belief.centre)))
    return belief.space.mirrored(belief.centre + rng.standard_normal((n, len(belief.centre))) @ root.T)
