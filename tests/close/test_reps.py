"""REPS: a Gaussian moves to where costs are low, by no more than a bound on its divergence."""

import numpy as np
import pytest

from gapless.close.reps import divergence, reps
from gapless.errors import BadInput
from gapless.twin import Gaussian, Twin


@pytest.fixture(scope="module")
def belief():
    space = Twin.load("pendulum").space.select("gains.kp/*", "gains.kd/*", "armature.inertia/*")
    return Gaussian(space, np.zeros(6), np.eye(6))


def test_the_divergence_is_that_of_samples(belief):
    rng = np.random.default_rng(0)
    root = np.linalg.qr(rng.standard_normal((6, 6)))[0] * 0.6
    other = Gaussian(belief.space, np.full(6, 0.3), root @ root.T + 0.1 * np.eye(6))
    from scipy.stats import multivariate_normal as normal

    x = rng.multivariate_normal(other.centre, other.covariance, 200_000)
    sampled = normal.logpdf(x, other.centre, other.covariance) - normal.logpdf(x, belief.centre, belief.covariance)
    assert divergence(other, belief) == pytest.approx(sampled.mean(), rel=0.02)
    assert divergence(belief, belief) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("bound", [0.05, 0.5, 2.0])
@pytest.mark.parametrize("n", [20, 300])
def test_no_update_goes_farther_than_the_bound(belief, bound, n):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x = rng.standard_normal((n, 6))
        for costs in (((x - 4) ** 2).sum(axis=1), rng.standard_cauchy(n), np.zeros(n)):
            assert divergence(reps(belief, x, costs, bound), belief) <= bound + 1e-9


def test_updates_reach_a_minimum_far_outside_the_first_belief(belief):
    rng, target = np.random.default_rng(0), np.array([3.0, -3.0, 2.0, 0.0, 1.0, -1.0])
    for _ in range(25):
        x = belief.centre + rng.standard_normal((300, 6)) @ np.linalg.cholesky(belief.covariance).T
        belief = reps(belief, x, ((x - target) ** 2).sum(axis=1))
    np.testing.assert_allclose(belief.centre, target, atol=0.2)


def test_robots_that_broke_do_not_count_and_too_few_are_refused(belief):
    x = np.random.default_rng(0).standard_normal((300, 6))
    costs = (x**2).sum(axis=1)
    costs[x[:, 0] < 0] = np.nan
    assert reps(belief, x, costs).centre[0] > 0
    with pytest.raises(BadInput, match="only 10 of 300 simulated robots"):
        reps(belief, x, np.where(np.arange(300) < 10, 1.0, np.nan))
