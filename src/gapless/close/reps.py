"""REPS: relative entropy policy search over parameters: a Gaussian moves to where costs are low, by no more than a bound.

Samples are weighted by exp(-cost / temperature), and the Gaussian of greatest weighted likelihood takes the place of the old
one (Peters et al. 2010; Chebotar et al. 2019). The temperature is the lowest that keeps the divergence of the two within the
bound, so that the bound holds for the Gaussians themselves and not only for the weights.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from gapless.arrays import Array
from gapless.errors import BadInput
from gapless.twin import Gaussian

BOUND = 1.0
"""Divergence of the new belief from the old one in an update [nats]."""
NARROWEST = 0.2
"""Scaled units: no update leaves anything surer. No simulator is so right, and what is sure too soon stays where it is."""
TRIED = 60


def reps(belief: Gaussian, scaled: Array, costs: Array, bound: float = BOUND) -> Gaussian:
    """The belief after an update.

    Args:
        belief: that the samples were drawn from.
        scaled: samples, in the scaled space. Shape: (n, parameters).
        costs: of the samples; not finite ones do not count. Shape: (n,).
        bound: on the divergence of new from old [nats].
    """
    whole = np.isfinite(costs)
    if whole.sum() < 2 * len(belief.space):
        raise BadInput(f"only {whole.sum()} of {len(costs)} simulated robots could run the policy: too few to learn from")
    x, c = scaled[whole], costs[whole]
    c = (c - c.min()) / max(float(c.std()), 1e-12)
    low, high = np.log(1e-3), np.log(1e6)
    for _ in range(TRIED):
        middle = (low + high) / 2
        if divergence(_weighted(belief, x, np.exp(-c / np.exp(middle))), belief) > bound:
            low = middle
        else:
            high = middle
    found = _weighted(belief, x, np.exp(-c / np.exp(high)))
    # samples scatter: where even equal weights are farther off than allowed, only part of the way is gone
    share = 1.0
    while divergence(found, belief) > bound and share > 1e-3:
        share *= 0.8
        found = dataclasses.replace(
            belief,
            centre=belief.centre + share * (found.centre - belief.centre),
            covariance=(1 - share) * belief.covariance + share * found.covariance,
        )
    return found


def _weighted(belief: Gaussian, x: Array, weights: Array) -> Gaussian:
    weights = weights / weights.sum()
    centre = weights @ x
    away = x - centre
    size, along = np.linalg.eigh((weights[:, None] * away).T @ away)
    covariance = along * np.maximum(size, NARROWEST**2) @ along.T
    covariance = (covariance + covariance.T) / 2
    return dataclasses.replace(belief, centre=np.clip(centre, *belief.space.bounds), covariance=covariance)


def divergence(new: Gaussian, old: Gaussian) -> float:
    """Of one Gaussian from another (Kullback and Leibler) [nats]."""
    inverse, away = np.linalg.inv(old.covariance), old.centre - new.centre
    (_, now), (_, before) = np.linalg.slogdet(new.covariance), np.linalg.slogdet(old.covariance)
    return float(np.trace(inverse @ new.covariance) + away @ inverse @ away - len(away) + before - now) / 2
