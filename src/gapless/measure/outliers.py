"""Outliers: errors that no property of a robot makes: blocked, slipped or touched, a lost command, someone at the table."""

import numpy as np

from gapless.arrays import Array, Bools

FAR = 4.0  # times the median error of a block
RARE = 0.05  # share of the largest errors that single events may make


def outlying(square: Array) -> Bools:
    """Blocks whose mean squared error is far above the usual; none where a third are, as then the model is to blame.

    square: NaN where nothing was measured. Shape of both: (blocks,).
    """
    size = np.sqrt(square)
    bad = np.nan_to_num(size) > FAR * np.nanmedian(size)
    return bad if bad.sum() < np.isfinite(size).sum() / 3 else np.zeros(len(bad), dtype=bool)


def usual(square: Array) -> Array:
    """Mean of squared errors without the few largest. square: (samples, columns); shape: (columns,)."""
    return np.asarray(np.sort(square, axis=0)[: round((1 - RARE) * len(square))].mean(axis=0))


def soft(error: Array, size: float | Array) -> Array:
    """Errors whose squares grow like the error itself beyond `size`, so that few large ones do not rule (pseudo-Huber)."""
    root = np.sqrt(1 + (error / size) ** 2)
    return np.asarray(error * np.sqrt(2 / (1 + root)))


def soft_slope(error: Array, size: float | Array) -> Array:
    """The slope of `soft`: 1 for small errors, less for large ones."""
    root = np.sqrt(1 + (error / size) ** 2)
    return np.asarray(np.sqrt((1 + root) / 2) / root)
