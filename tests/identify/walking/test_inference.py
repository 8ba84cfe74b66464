"""Numbers from quantiles: a linear robot has a closed form, and one that is like no simulated robot is less sure."""

import numpy as np
import pytest

from gapless.identify.walking.inference import learn, quantiles

PRIOR = np.array([1.0, 1.0, 1.0])
NOISE = 0.5


@pytest.fixture(scope="module")
def linear():
    """Robots whose features are linear in two of three numbers, and what was learnt from them."""
    rng = np.random.default_rng(0)
    slopes = np.zeros((3, 45))
    slopes[:2] = rng.normal(size=(2, 45)) * 0.2
    numbers = rng.normal(size=(3000, 3))
    return slopes, learn(numbers, 5.0 + numbers @ slopes + NOISE * rng.normal(size=(3000, 45)), PRIOR)


def test_the_posterior_of_a_linear_robot_is_the_exact_one(linear):
    slopes, learnt = linear
    exact = np.linalg.inv(slopes @ slopes.T / NOISE**2 + np.eye(3))
    truth, rng = np.array([0.8, -1.2, 0.5]), np.random.default_rng(1)
    features = 5.0 + truth @ slopes + NOISE * rng.normal(size=45)
    mean, covariance, unlike = learnt.posterior(features)
    np.testing.assert_allclose(mean, exact @ slopes @ (features - 5.0) / NOISE**2, atol=0.12)
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), np.sqrt(np.diag(exact)), rtol=0.2)
    assert unlike == pytest.approx(1.0, abs=0.3)


def test_what_no_feature_depends_on_stays_as_uncertain_as_it_was(linear):
    mean, covariance, _ = linear[1].posterior(np.full(45, 5.0) + linear[0][0])
    assert covariance[2, 2] == pytest.approx(1.0, abs=0.1)
    assert abs(mean[2]) < 0.2
    assert covariance[0, 0] < 0.5


def test_a_robot_like_no_simulated_one_is_less_sure(linear):
    slopes, learnt = linear
    like = 5.0 + np.array([0.5, 0.5, 0.0]) @ slopes
    strange = like + 3 * NOISE * np.where(np.arange(45) % 2, 1.0, -1.0)
    _, narrow, _ = learnt.posterior(like)
    _, wide, unlike = learnt.posterior(strange)
    assert unlike > 2
    assert (np.diag(wide)[:2] > 2 * np.diag(narrow)[:2]).all()


def test_quantiles_do_not_depend_on_when():
    rng = np.random.default_rng(2)
    states = rng.normal(size=(3, 500, 4))
    assert quantiles(states).shape == (3, 36)
    np.testing.assert_array_equal(quantiles(states), quantiles(rng.permuted(states, axis=1)))
