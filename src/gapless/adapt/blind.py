"""Random search of z: the baseline that every other search has to beat with as many trials."""

from __future__ import annotations

import numpy as np

from gapless.adapt.search import Trial
from gapless.arrays import Array

BATCH = 10


class Blind:
    """Anywhere; the best trial is its best."""

    def __init__(self, size: int, rng: np.random.Generator):
        self._size, self._rng, self._top = size, rng, Trial(np.zeros(size), -np.inf, True, 0.0)

    def ask(self, left: int) -> Array:
        return self._rng.uniform(-1, 1, (min(BATCH, left), self._size))

    def tell(self, trials: list[Trial]) -> None:
        self._top = max([self._top, *trials], key=lambda t: t.reward)

    def best(self) -> Array:
        return self._top.z
