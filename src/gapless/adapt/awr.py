"""Advantage-weighted regression of z (Peng et al. 2020): a Gaussian is fitted to its samples again, good ones counting more."""

from __future__ import annotations

import numpy as np

from gapless.adapt.search import Trial
from gapless.arrays import Array

BATCH = 10
SPREAD, LEAST = 0.5, 0.05
"""Standard deviation at first, and the smallest."""
SHARPNESS = 2.0
"""A trial one standard deviation above the mean of its batch counts exp(2) times as much as the mean."""
STEP = 0.7
"""Share of the way to the fitted Gaussian."""


class Weighted:
    """A Gaussian over z with its own width by column; its mean is its best."""

    def __init__(self, size: int, rng: np.random.Generator):
        self._mean, self._std, self._rng = np.zeros(size), np.full(size, SPREAD), rng

    def ask(self, left: int) -> Array:
        drawn = self._mean + self._std * self._rng.standard_normal((min(BATCH, left), len(self._mean)))
        return np.clip(drawn, -1, 1)

    def tell(self, trials: list[Trial]) -> None:
        rewards = np.array([t.reward for t in trials])
        if len(trials) < 3 or rewards.std() < 1e-9:
            return
        weights = np.exp(SHARPNESS * (rewards - rewards.mean()) / rewards.std())
        weights /= weights.sum()
        z = np.array([t.z for t in trials])
        mean = weights @ z
        std = np.sqrt(weights @ (z - self._mean) ** 2)
        self._mean = self._mean + STEP * (mean - self._mean)
        self._std = np.maximum(self._std + STEP * (std - self._std), LEAST)

    def best(self) -> Array:
        return self._mean
