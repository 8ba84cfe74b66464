"""The next experiment: what tells about what matters is worth more; where nothing tells more, training is next."""

import numpy as np
import pytest

from gapless.close.worth import TRAINING, Experiment, matters, next_experiment, told
from gapless.twin import Gaussian, Twin


@pytest.fixture(scope="module")
def belief():
    space = Twin.load("pendulum").space.select("gains.kp/*", "gains.kd/shoulder")
    return Gaussian(space, np.zeros(3), np.eye(3))


def linear(name, slopes, noise, seconds=4.0):
    def measure(x, rng):
        return x @ np.array(slopes).T + noise * rng.standard_normal((len(x), len(slopes)))

    return Experiment(name, seconds, measure)


MANY = 18
SHOWS_FIRST, SHOWS_SECOND = ([[1.0, 0, 0]] * MANY, [[0, 1.0, 0]] * MANY)


def test_what_matters_decides_which_experiment_is_next(belief):
    rng = np.random.default_rng(0)
    one, other = linear("one", SHOWS_FIRST, 0.5), linear("other", SHOWS_SECOND, 0.5)
    for slopes, name in ((SHOWS_FIRST, "one"), (SHOWS_SECOND, "other")):
        metric = matters(belief, linear("rollout", slopes, 0.01).measure, rng)
        assert next_experiment(belief, [one, other], metric, rng)[0] == name


def test_worth_is_per_second(belief):
    rng = np.random.default_rng(0)
    metric = matters(belief, linear("rollout", SHOWS_FIRST, 0.01).measure, rng)
    name, ranked = next_experiment(
        belief, [linear("long", SHOWS_FIRST, 0.5, 40.0), linear("short", SHOWS_FIRST, 0.6, 2.0)], metric, rng
    )
    assert name == "short" and ranked[0].worth > ranked[1].worth


def test_the_posterior_is_that_of_a_linear_gaussian_model(belief):
    rng = np.random.default_rng(0)
    metric = matters(belief, linear("rollout", SHOWS_FIRST, 0.01).measure, rng)
    found = told(belief, linear("one", SHOWS_FIRST, 1.0), metric, rng)
    exact = 1 / (1 + MANY)  # MANY measurements of size 1 beside a prior of size 1
    assert exact < found.left < 5 * exact  # never surer than is right; learnt from robots, so less sure
    after = found.posterior(np.full(MANY, 1.5))
    assert after.centre[0] == pytest.approx(1.5 * (1 - exact), abs=0.35)
    assert abs(after.centre[1]) < 0.3 and after.covariance[1, 1] > 0.6


def test_where_no_experiment_tells_more_training_is_next(belief):
    rng = np.random.default_rng(0)
    metric = matters(belief, linear("rollout", SHOWS_FIRST, 0.01).measure, rng)
    assert next_experiment(belief, [linear("other", SHOWS_SECOND, 0.5)], metric, rng)[0] == TRAINING
