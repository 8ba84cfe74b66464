"""BayesSim: a belief that is the posterior of the last, given rollouts of the policy, learnt by a flow (Ramos et al. 2019)."""

from __future__ import annotations

import numpy as np

from gapless.arrays import Array
from gapless.close.rollouts import Asked, Rollouts
from gapless.close.simopt import drawn
from gapless.identify import learn_flow
from gapless.twin import Gaussian

SIMULATIONS, COMPONENTS = 1500, 24
"""Robots that are simulated in a round, and numbers that sum up a rollout."""
DRAWS = 1000
NARROWEST = 0.05
"""Scaled units: no round leaves a parameter surer, as no simulator is so right."""
STRANGE = 4.0
"""Standard deviations of what is simulated: rollouts farther out are like none of it."""


def update(belief: Gaussian, asked: Asked, real: Rollouts, rng: np.random.Generator) -> tuple[Gaussian, str]:
    """The belief after a round, and what is to be said of it.

    Rollouts are summed up by the principal components of what is seen of simulated robots; all else of these is off within its
    tolerance. Where the robot does nothing like it, what the network says of it is worth nothing: the summary is brought to the
    edge of what was simulated, and that is said.
    """
    x = drawn(belief, SIMULATIONS, rng)
    simulated = asked.simulated(belief.space.clip(belief.space.from_scaled(x)), belief.space, rng)
    scale = np.nanstd(simulated, axis=(0, 1, 2)) + 1e-6
    summary, seen, out = summed_up(*(np.nan_to_num(asked.features(each, scale)) for each in (simulated, real.seen[None])))
    values, _ = learn_flow(x, summary, seen, DRAWS, int(rng.integers(2**31)))
    values = np.clip(values, *belief.space.bounds)
    covariance = np.cov(values.T).reshape(len(belief.space), -1) + NARROWEST**2 * np.eye(len(belief.space))
    said = f"posterior from {SIMULATIONS} simulated robots"
    if out > STRANGE:
        said += f"; the rollouts are like none of theirs ({out:.1f} standard deviations out), so that it may be far off"
    return Gaussian(belief.space, values.mean(axis=0), (covariance + covariance.T) / 2), said


def summed_up(simulated: Array, measured: Array) -> tuple[Array, Array, float]:
    """Principal components of what was simulated (n, numbers), of size 1; those measured, and how far out these are."""
    centre = simulated.mean(axis=0)
    _, size, along = np.linalg.svd(simulated - centre, full_matrices=False)
    kept = min(COMPONENTS, int((size > 1e-6 * size[0]).sum()))
    scale = size[:kept] / np.sqrt(len(simulated))
    ours, theirs = ((each - centre) @ along[:kept].T / scale for each in (simulated, measured))
    return ours, np.clip(theirs, -STRANGE, STRANGE), float(np.abs(theirs).max())
