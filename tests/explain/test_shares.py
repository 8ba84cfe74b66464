"""Shapley values against their definition."""

from itertools import permutations

import numpy as np
import pytest

from gapless.explain.shares import shapley


@pytest.mark.parametrize("players", [1, 2, 3, 4])
def test_shapley_is_the_mean_over_all_orders_of_joining(players: int) -> None:
    value = np.random.default_rng(players).uniform(size=2**players)
    value[0] = 0.0
    expected = np.zeros(players)
    orders = list(permutations(range(players)))
    for order in orders:
        team = 0
        for k in order:
            expected[k] += (value[team | 1 << k] - value[team]) / len(orders)
            team |= 1 << k
    assert np.allclose(shapley(value), expected)


def test_shares_of_all_players_sum_to_what_they_explain_together() -> None:
    value = np.random.default_rng(0).uniform(size=8)
    assert shapley(value).sum() == pytest.approx(value[-1] - value[0])
