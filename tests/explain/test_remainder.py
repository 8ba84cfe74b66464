"""A remainder planted in one joint and phase is found there."""

import numpy as np

from gapless.explain.remainder import Remainder, located
from gapless.measure import Trace

TIME = np.arange(0, 20, 0.02)


def planted(where: np.ndarray, joint: int) -> Remainder:
    """What is located of an error of 10 mrad that is planted in one of two joints, which move as sines."""
    error = 1e-4 * np.random.default_rng(0).standard_normal((len(TIME), 2))
    error[:, joint] += 0.01 * where
    q = np.column_stack([np.sin(2 * TIME), np.sin(3 * TIME)])
    dq = np.column_stack([2 * np.cos(2 * TIME), 3 * np.cos(3 * TIME)])
    number = (TIME // 2).astype(np.int64)
    columns = (q, 1.1 * q, 1.1 * q, q, q + error, q + error, dq, 0.1 * q)
    return located([Trace("log", ("hip", "knee"), TIME, *columns, np.full(len(TIME), np.nan), number, number)], 0.5, 9.0)


def test_an_error_that_grows_is_late_in_the_log_and_suggests_heating() -> None:
    found = planted(np.maximum(TIME - 13, 0) / 7, 1)
    assert found.where[0].startswith("knee") and any("late in the log" in s and "heating" in s for s in found.where)
    assert found.joints["knee"] > 0.9


def test_an_error_at_reversals_suggests_play() -> None:
    turning = np.abs(np.cos(2 * TIME)) < 0.08
    found = planted(turning.astype(float), 0)
    assert any(s.startswith("hip") and "reversals" in s and "play" in s for s in found.where)


def test_errors_everywhere_suggest_a_missing_degree_of_freedom() -> None:
    found = planted(np.random.default_rng(1).standard_normal(len(TIME)), 0)
    assert "degree of freedom" in found.where[0]
