"""What the data cannot tell, on problems whose answer is known."""

import numpy as np
import pytest

from gapless.identify.uncertainty import Part, belief, free
from gapless.twin import Twin

SPACE = Twin.load("bench").space.select("gains.kd/*", "friction.viscous/*", "friction.coulomb/*")


def part(jacobian: np.ndarray, rng: np.random.Generator, last: int = 1) -> Part:
    """White errors, or errors that each last for some samples."""
    noise = np.repeat(rng.normal(size=len(jacobian) // last), last)
    return Part(SPACE.names, noise, jacobian, np.arange(len(jacobian)) // 100, 1)


def test_an_interval_of_white_noise_is_that_of_linear_regression():
    rng = np.random.default_rng(0)
    jacobian = rng.normal(size=(4000, 3)) * [0.5, 1.0, 1.5]
    found = belief(SPACE, np.zeros(3), np.zeros((2, 3)), [part(jacobian, rng)], rng)
    exact = np.sqrt(np.diag(np.linalg.inv(jacobian.T @ jacobian)))
    np.testing.assert_allclose(np.sqrt(np.diag(found.covariance)), exact, rtol=0.35)


def test_errors_that_last_widen_it():
    rng = np.random.default_rng(0)
    jacobian = np.repeat(rng.normal(size=(200, 3)), 20, axis=0)
    short, long = (belief(SPACE, np.zeros(3), np.zeros((2, 3)), [part(jacobian, rng, n)], rng).covariance for n in (1, 20))
    assert (np.diag(long) > 5 * np.diag(short)).all()


def test_what_only_acts_as_a_sum_is_named_as_one():
    covariance = np.diag([1e-4, 1e-4, 1e-4])
    covariance[:2, :2] += 4 * np.array([[1.0, -1.0], [-1.0, 1.0]])
    found = free(SPACE, covariance, electric=False, position_only=False)
    assert len(found) == 1
    assert set(found[0].parameters) == set(SPACE.names[:2])
    assert "only their sum" in found[0].meaning


@pytest.mark.parametrize(("electric", "words"), [(True, "kt and friction are coupled"), (False, "one free scale")])
def test_what_no_position_can_tell_is_always_said(electric, words):
    found = free(SPACE, np.eye(3) * 1e-4, electric, position_only=True)
    assert [words in u.meaning for u in found] == [True]


def test_halves_that_disagree_widen_it():
    rng = np.random.default_rng(0)
    jacobian = rng.normal(size=(4000, 3)) * [10.0, 20.0, 30.0]
    halves = np.array([[0.0, 0.2, 0.0], [0.0, -0.2, 0.0]])
    found = belief(SPACE, np.zeros(3), halves, [part(jacobian, rng)], rng)
    assert np.sqrt(np.diag(found.covariance))[1] == pytest.approx(0.2)
    assert np.sqrt(np.diag(found.covariance))[[0, 2]].max() < 0.01
