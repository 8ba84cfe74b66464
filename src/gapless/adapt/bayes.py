"""Bayesian optimisation of z: a Gaussian process of the reward, and the point that promises the largest improvement on it."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from gapless.adapt.search import Trial
from gapless.arrays import Array
from gapless.errors import BadInput

FIRST = 8
"""Trials at random before there is anything to model."""
CANDIDATES = 2000
NEAR = 0.15
"""Standard deviation of candidates about the best so far; half of them are anywhere."""


class Bayes:
    """A Gaussian process with a Matern kernel and noise (scikit-learn), one trial at a time by expected improvement."""

    def __init__(self, size: int, rng: np.random.Generator):
        try:
            from sklearn.gaussian_process import GaussianProcessRegressor
            from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
        except ImportError:
            raise BadInput("Bayesian optimisation needs scikit-learn: pip install 'gapless[learn]'") from None
        kernel = ConstantKernel(1.0, (0.1, 10.0)) * Matern(1.0, (0.2, 10.0), nu=2.5) + WhiteKernel(0.3, (1e-3, 1.0))
        self._model = GaussianProcessRegressor(kernel, normalize_y=True, random_state=int(rng.integers(1 << 31)))
        self._size, self._rng = size, rng
        self._z, self._reward = list[Array](), list[float]()

    def ask(self, left: int) -> Array:
        if len(self._z) < FIRST:
            return self._rng.uniform(-1, 1, (1, self._size))
        mean, _ = self._fitted(np.array(self._z))
        top, half = self._z[int(mean.argmax())], CANDIDATES // 2
        near = np.clip(top + NEAR * self._rng.standard_normal((half, self._size)), -1, 1)
        candidates = np.vstack([self._rng.uniform(-1, 1, (half, self._size)), near])
        guess, spread = self._model.predict(candidates, return_std=True)
        gain = (guess - mean.max()) / np.maximum(spread, 1e-9)
        return candidates[[int((spread * (gain * norm.cdf(gain) + norm.pdf(gain))).argmax())]]

    def _fitted(self, at: Array) -> tuple[Array, Array]:
        """The model of all trials so far, and what it says of some points."""
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of kernel widths at their bounds, which is fine
            self._model.fit(np.array(self._z), np.array(self._reward))
        mean, spread = self._model.predict(at, return_std=True)
        return mean, spread

    def tell(self, trials: list[Trial]) -> None:
        self._z += [t.z for t in trials]
        self._reward += [t.reward for t in trials]

    def best(self) -> Array:
        """The trial whose reward the model believes in most: the largest that was seen is luck."""
        mean, _ = self._fitted(np.array(self._z))
        return self._z[int(mean.argmax())]
