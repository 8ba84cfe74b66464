"""Exact statistics against closed forms."""

import numpy as np
import pytest

from gapless.check.exact import interval, mcnemar, mean_interval, more_for_mean, runs_to_decide


def test_no_failure_in_n_runs_has_a_closed_form():
    low, high = interval(50, 50, 0.9)
    assert low == pytest.approx(0.05 ** (1 / 50)) and high == 1.0
    assert interval(0, 0) == (0.0, 1.0)


def test_an_interval_holds_as_often_as_it_says():
    rng = np.random.default_rng(0)
    held = [low <= 0.93 <= high for low, high in (interval(int(rng.binomial(60, 0.93)), 60) for _ in range(200))]
    assert np.mean(held) >= 0.9


def test_runs_that_would_decide_do_decide():
    more = runs_to_decide(0.98, 0.95, 60)
    low, _ = interval(round(0.98 * (60 + more)), 60 + more)
    assert low >= 0.95 > interval(59, 60)[0]
    assert runs_to_decide(0.95, 0.95, 60) is None
    values = np.random.default_rng(1).normal(0.28, 0.1, 20)
    more = more_for_mean(values, 0.3)
    assert more is not None and mean_interval(np.resize(values, 20 + more))[1] < 0.31


def test_pairs_that_differ_are_tossed_coins():
    before, after = np.array([True] * 6 + [False] * 4), np.zeros(10, bool)
    assert mcnemar(before, after) == pytest.approx(2 * 0.5**6)
    assert mcnemar(before, before) == 1.0
