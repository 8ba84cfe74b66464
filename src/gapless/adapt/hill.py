"""Batch hill climb of z (Song et al. 2020): several steps from the best so far; the best of them is taken if it is better.

It is the inner loop of ES-MAML (`es_maml`), where z are steps of a policy's last layer.
"""

from __future__ import annotations

import numpy as np

from gapless.adapt.search import Trial
from gapless.arrays import Array

BATCH = 5
STEP = 0.3
"""Standard deviation of a step; z is between -1 and 1."""


class Climb:
    """Steps from the best so far, which is its best."""

    def __init__(self, size: int, rng: np.random.Generator):
        self._top, self._rng = Trial(np.zeros(size), -np.inf, True, 0.0), rng

    def ask(self, left: int) -> Array:
        steps = STEP * self._rng.standard_normal((min(BATCH, left), len(self._top.z)))
        return np.clip(self._top.z + steps, -1, 1)

    def tell(self, trials: list[Trial]) -> None:
        self._top = max([self._top, *trials], key=lambda t: t.reward)

    def best(self) -> Array:
        return self._top.z
