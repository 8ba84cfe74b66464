"""Strategy optimisation with CMA-ES (Yu et al. 2019): a population of z, moved and reshaped by how its members did."""

from __future__ import annotations

import numpy as np

from gapless.adapt.search import Trial
from gapless.arrays import Array

SPREAD = 0.5
"""Standard deviation at first; z is between -1 and 1."""


class Evolution:
    """CMA-ES over z; the mean of its last population is its best."""

    def __init__(self, size: int, rng: np.random.Generator):
        import cma

        options = {"bounds": [-1.0, 1.0], "seed": int(rng.integers(1, 1 << 31)), "verbose": -9}
        self._search = cma.CMAEvolutionStrategy(np.zeros(max(size, 2)), SPREAD, options)
        self._size, self._asked = size, list[Array]()

    def ask(self, left: int) -> Array:
        if left < self._search.popsize:
            return np.zeros((0, self._size))
        self._asked = self._search.ask()
        return np.array(self._asked)[:, : self._size]

    def tell(self, trials: list[Trial]) -> None:
        if self._asked:
            self._search.tell(self._asked, [-t.reward for t in trials])

    def best(self) -> Array:
        return np.asarray(self._search.result.xfavorite, float)[: self._size]
