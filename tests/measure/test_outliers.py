"""Outliers: single blocks that are far off, and never a model that is wrong everywhere."""

import numpy as np
import pytest

from gapless.measure import outlying, soft, usual


def test_a_block_far_above_the_usual_is_one_and_a_third_of_them_are_none():
    square = np.full(12, 1e-6)
    square[3], square[5] = 4e-5, np.nan
    assert np.flatnonzero(outlying(square)).tolist() == [3]
    square[:5] = 4e-5
    assert not outlying(square).any()


def test_the_few_largest_do_not_count_as_usual():
    square = np.ones((100, 2))
    square[:5, 0] = 1e6
    np.testing.assert_allclose(usual(square), 1.0)


@pytest.mark.parametrize("size", [0.1, 2.0])
def test_soft_errors_are_errors_when_small_and_grow_like_a_root_when_large(size):
    small, large = soft(np.array([1e-3, 1e3]) * size, size)
    assert small == pytest.approx(1e-3 * size, rel=1e-5)
    assert large**2 == pytest.approx(2 * 1e3 * size**2, rel=0.01)
