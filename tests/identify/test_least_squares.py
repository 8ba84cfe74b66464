"""Least squares against problems whose answer is known."""

import numpy as np

from gapless.identify.least_squares import least_squares

FREE = np.full(3, 1e9)


def test_a_linear_problem_is_solved_exactly():
    rng = np.random.default_rng(0)
    a, truth = rng.normal(size=(50, 3)), np.array([0.7, -1.2, 0.3])
    found = least_squares(lambda x: x @ a.T - a @ truth, np.zeros(3), -FREE, FREE)
    np.testing.assert_allclose(found.x, truth, atol=1e-4)


def test_bounds_hold():
    a = np.eye(3)
    found = least_squares(lambda x: x @ a - np.array([2.0, -2.0, 0.5]), np.zeros(3), np.full(3, -1.0), np.full(3, 1.0))
    np.testing.assert_allclose(found.x, [1.0, -1.0, 0.5], atol=0.05)


def test_what_the_data_leave_free_stays_where_it_was():
    def residuals(x):
        return np.stack([x[:, 0] + x[:, 1] - 1.0] * 20, axis=1)  # only the sum is seen, and the third not at all

    found = least_squares(residuals, np.array([0.0, 0.0, 0.25]), -FREE, FREE)
    np.testing.assert_allclose(found.x, [0.5, 0.5, 0.25], atol=0.05)


def test_a_kinked_cost_does_not_stall_it():
    def residuals(x):
        return np.stack([np.maximum(x[:, 0] - 1.0, 0.0) + 0.1 * x[:, 0], np.abs(x[:, 0] - 0.5) + 0.2], axis=1)

    found = least_squares(residuals, np.array([3.0]), np.array([-5.0]), np.array([5.0]))
    assert abs(found.x[0] - 0.5) < 0.2


def test_slopes_that_hold_over_a_short_way_only_do_not_stall_it():
    found = least_squares(lambda x: np.arctan(20 * x), np.array([1.0]), np.array([-9.0]), np.array([9.0]), prior=1e3)
    assert abs(found.x[0]) < 0.01
