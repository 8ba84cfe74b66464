"""The box step agrees with an independent solver."""

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from gapless.explain.bounded_qp import boxed


@pytest.mark.parametrize("seed", range(5))
def test_the_step_is_the_bounded_least_squares_solution(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((60, 12)), rng.standard_normal(60)
    low, high = -rng.uniform(0, 0.2, 12), rng.uniform(0, 0.2, 12)
    high[3] = low[3] = 0.0
    ours = boxed(a.T @ a, a.T @ b, low, high)
    theirs = lsq_linear(a, -b, (low - 1e-12, high + 1e-12), tol=1e-12).x
    assert np.allclose(ours, theirs, atol=1e-4)
    assert (ours >= low).all() and (ours <= high).all()


def test_a_direction_that_nothing_determines_stays_where_it_is() -> None:
    assert np.allclose(
        boxed(np.diag([1.0, 0.0]), np.array([-1.0, 0.0]), np.full(2, -5.0), np.full(2, 5.0)), [1.0, 0.0], atol=1e-6
    )
