"""From distributions to numbers: a regression learnt from simulated robots whose numbers are known.

A one-dimensional Wasserstein distance is the area between two quantile functions, so quantiles are what is compared. To sum up
distances of all columns and search for the least would count all alike, whether noise or a parameter moves them. Instead the
numbers of simulated robots are regressed on their quantiles, which gives for each number the statistic that tells most of it
(Fearnhead and Prangle 2012); how these statistics depend on the numbers, and how they vary among robots with equal ones, is the
likelihood (a synthetic one: Wood 2010). Whatever else differs among the simulated robots is part of that variation.
"""

from dataclasses import dataclass

import numpy as np

from gapless.arrays import Array

LEVELS = (np.arange(9) + 0.5) / 9  # of the quantiles
FINE = 0.01  # of how much a column moves: no simulation, and no log with a clock of its own, is closer than that
FOLDS = 8
PENALTIES = 10.0 ** np.arange(-3, 3)  # of the ridge, the best of them where it was not learnt


def quantiles(states: Array) -> Array:
    """What stands for distributions: (..., samples, columns) to (..., columns times levels)."""
    at = np.moveaxis(np.quantile(states, LEVELS, axis=-2), 0, -1)
    return at.reshape(*at.shape[:-2], -1)


@dataclass(frozen=True)
class Inference:
    """What simulated robots teach about a real one. Numbers are scaled."""

    centre: Array
    size: Array
    """Of the features. Shape: (features,)."""
    weights: Array
    """From features, of size 1 about 0, to statistics. Shape: (features, parameters)."""
    base: Array
    slopes: Array
    """Statistics are base + slopes @ numbers. Shape: (parameters,) and (parameters, parameters)."""
    noise: Array
    """Covariance of statistics among robots with equal numbers."""
    features: Array
    """The same of all features, which shows whether a robot is like the simulated ones. Shape: (1 + parameters, features)."""
    prior: Array
    """Standard deviations of the numbers before anything was measured, about 0. Shape: (parameters,)."""
    usual: float
    """Root mean square of what is left of features once the numbers are known, in the median robot."""

    def posterior(self, features: Array) -> tuple[Array, Array, float]:
        """The most probable numbers of a robot, their covariance, and how unlike simulated robots it is (1: as they are).

        Features that no numbers give are another kind of error: the covariance grows with them.
        """
        away = (features - self.centre) / self.size
        left = away @ self.weights - self.base
        mean, _ = self._conditioned(left, 1.0)
        unlike = rms(away - self.features[0] - mean @ self.features[1:]) / self.usual
        return *self._conditioned(left, max(1.0, unlike) ** 2), unlike

    def _conditioned(self, left: Array, widened: float) -> tuple[Array, Array]:
        information = np.linalg.solve(self.noise * widened, self.slopes).T
        covariance = np.linalg.inv(information @ self.slopes + np.diag(self.prior**-2.0))
        return covariance @ information @ left, (covariance + covariance.T) / 2


def learn(numbers: Array, features: Array, prior: Array) -> Inference:
    """Learn from robots. Shapes: (robots, parameters), scaled, (robots, features) and (parameters,)."""
    columns = features.reshape(len(features), -1, len(LEVELS))
    moves = np.repeat(columns.std(axis=(0, 2)), len(LEVELS))
    centre, size = features.mean(axis=0), np.hypot(features.std(axis=0), FINE * moves) + 1e-9
    away, fold = (features - centre) / size, np.arange(len(features)) % FOLDS
    trials = []
    for penalty in PENALTIES:
        parts = [_ridge(away[fold != f], numbers[fold != f], penalty) for f in range(FOLDS)]
        unseen = np.stack([away[i] @ parts[f] for i, f in enumerate(fold)])  # of robots that were not learnt from
        trials.append((float(((unseen - numbers + numbers.mean(axis=0)) ** 2).sum()), unseen, np.mean(parts, axis=0)))
    _, statistics, weights = min(trials, key=lambda trial: trial[0])
    known = np.column_stack([np.ones(len(numbers)), numbers])
    line, field = (np.linalg.lstsq(known, y, rcond=None)[0] for y in (statistics, away))
    error = statistics - known @ line
    noise = error.T @ error / (len(numbers) - known.shape[1])
    usual = np.median([rms(each) for each in away - known @ field])
    tiny = 1e-9 * np.trace(noise) * np.eye(len(noise))
    return Inference(centre, size, weights, line[0], line[1:].T, noise + tiny, field, prior, float(usual))


def _ridge(features: Array, numbers: Array, penalty: float) -> Array:
    """Weights from features to numbers, both about their means. Shape: (features, parameters)."""
    near = features - features.mean(axis=0)
    return np.linalg.solve(near.T @ near + penalty * len(near) * np.eye(near.shape[1]), near.T @ numbers)


def rms(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2)))
