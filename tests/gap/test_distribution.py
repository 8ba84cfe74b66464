"""Distances between distributions: closed forms, one for the same distribution, blind to when things happened."""

import numpy as np
import pytest

from gapless.gap.distribution import between, discrepancy, states, wasserstein


def test_wasserstein_of_shifted_and_stretched_normals():
    rng = np.random.default_rng(0)
    one = rng.standard_normal((20000, 2))
    other = rng.standard_normal((20000, 2)) * [1.0, 2.0] + [0.7, 0.0]
    # a shift costs itself; stretching N(0, 1) by 2 moves each quantile by itself: E|x| = sqrt(2 / pi)
    np.testing.assert_allclose(wasserstein(one, other), [0.7, np.sqrt(2 / np.pi)], atol=0.03)


def test_mean_discrepancy_of_two_normals():
    rng = np.random.default_rng(1)
    shift, width = 1.0, 1.5
    one, other = rng.standard_normal((3000, 1)), rng.standard_normal((3000, 1)) + shift
    own = width / np.sqrt(width**2 + 2)
    exact = np.sqrt(2 * own * (1 - np.exp(-(shift**2) / (2 * (width**2 + 2)))))
    assert discrepancy(one, other, width) == pytest.approx(exact, rel=0.05)
    assert discrepancy(one[:1500], one[1500:], width) < 0.05


def gait(seconds: float, phase: float, rng: np.random.Generator, size: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """States of a leg that goes round at 1.3 Hz, and the block that each is of."""
    t = np.arange(0, seconds, 0.02)
    angle = 2 * np.pi * 1.3 * t + phase + 0.3 * np.cumsum(rng.standard_normal(len(t))) * np.sqrt(0.02)
    rows = size * np.stack([np.sin(angle), np.cos(angle)], axis=1) + 0.05 * rng.standard_normal((len(t), 2))
    return rows, (t / 2).astype(np.int64)


def test_the_same_gait_out_of_step_is_the_same_and_a_smaller_one_is_not():
    rng = np.random.default_rng(2)
    (robot, a), (late, b), (small, c) = gait(60, 0.0, rng), gait(60, 2.0, rng), gait(60, 2.0, rng, size=0.8)
    assert np.sqrt(np.mean((robot - late) ** 2)) > 0.7  # as far apart as can be, moment by moment
    same = between([({"q": robot}, a)], [({"q": late}, b)], {"q": ("x", "y")}, rng)
    other = between([({"q": robot}, a)], [({"q": small}, c)], {"q": ("x", "y")}, rng)
    assert set(same.columns) == {"q/x", "q/y"}
    assert same.sliced.ratio < 1.7
    assert other.sliced.ratio > 3
    assert same.mmd.ratio < 1.5
    assert other.mmd.ratio > 1.5
    # all quantiles of a circle's projection shrink by a fifth: E|sin| = 2 / pi, in units of the deviation sqrt(1 / 2)
    assert other.columns["q/x"].size == pytest.approx(0.2 * 2 / np.pi * np.sqrt(2), rel=0.2)


def test_a_state_has_gravity_instead_of_a_heading():
    rng = np.random.default_rng(3)
    yaw = rng.uniform(0, 2 * np.pi, 50)
    turned = np.stack([np.cos(yaw / 2), 0 * yaw, 0 * yaw, np.sin(yaw / 2)], axis=1)
    names, rows = states({"q": np.zeros((50, 1)), "quat": turned}, {"q": ("knee",), "quat": ("w", "x", "y", "z")})
    assert names == ["q/knee", "gravity/x", "gravity/y", "gravity/z"]
    np.testing.assert_allclose(rows, np.tile([0, 0, 0, -1], (50, 1)), atol=1e-12)


def test_too_little_to_split_gives_no_distance():
    still = [({"q": np.ones((5, 1))}, np.zeros(5, int))]
    none = between(still, still, {"q": ("x",)}, np.random.default_rng(0))
    assert none.columns == {}
    assert np.isnan(none.sliced.size)
