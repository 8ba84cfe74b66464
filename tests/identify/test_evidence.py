"""Evidence for causes on linear models whose answer is known."""

from dataclasses import replace

import numpy as np
import pytest

from gapless.identify.evidence import DECISIVE, off, suspects
from gapless.identify.sensitivity import Sensitivity
from gapless.twin import Twin

SPACE = Twin.load("arm").space.select("gains.kp/*", "offset.encoder/*", "disturbance.cable/*", "inertia.mass/*")
SLOPES = np.random.default_rng(0).normal(size=(3000, len(SPACE)))


def of(quantity: str) -> np.ndarray:
    return np.array([p.quantity == quantity for p in SPACE.parameters])


def sensed(truth: np.ndarray, noise: float = 1.0) -> Sensitivity:
    """A linear robot whose numbers are off by so much from where the fit has them, scaled."""
    n, none = len(SLOPES), np.zeros(len(SLOPES))
    errors = noise * np.random.default_rng(1).normal(size=n) - SLOPES @ truth
    return Sensitivity(SPACE, errors, none.astype(int), none > 0, SLOPES, np.empty((n, 0)), none[:1])


def test_a_robot_within_its_tolerances_is_not_suspected():
    within = np.random.default_rng(2).uniform(*SPACE.tolerated)
    assert suspects(sensed(np.where(of("gains.kp"), 0.0, within)), {"gains.kp": True}) == []


def test_a_cause_of_all_joints_is_told_from_one_of_each():
    alike = suspects(sensed(0.8 * of("disturbance.cable")), {"gains.kp": True})
    assert [(s.quantity, s.own) for s in alike] == [("disturbance.cable", False)]
    assert alike[0].evidence > DECISIVE
    each = np.where(of("offset.encoder"), np.random.default_rng(3).normal(size=len(SPACE)), 0.0)
    assert [(s.quantity, s.own) for s in suspects(sensed(each), {"gains.kp": True})] == [("offset.encoder", True)]


def test_several_causes_are_found_together_and_what_was_fitted_is_none():
    both = 0.8 * of("disturbance.cable") - 1.5 * of("offset.encoder") + 0.5 * of("gains.kp")
    assert {s.quantity for s in suspects(sensed(both), {"gains.kp": True})} == {"disturbance.cable", "offset.encoder"}


def test_what_the_errors_hide_is_not_suspected():
    assert suspects(sensed(0.3 * of("disturbance.cable"), noise=1.0), {"gains.kp": True}) != []
    loud = sensed(np.zeros(len(SPACE)), noise=1.0)
    assert suspects(loud, {}) == []


@pytest.mark.parametrize(("own", "apart"), [(False, 0.05), (True, 1.05)])
def test_joints_share_a_mismatch_and_differ_by_tolerance_or_by_their_own(own, apart):
    covariance = off(SPACE, *((["gains.kp"], []) if not own else ([], ["gains.kp"])))
    rows = np.flatnonzero(of("gains.kp"))
    assert covariance[rows[0], rows[1]] == 1.0
    assert covariance[rows[0], rows[0]] - covariance[rows[0], rows[1]] == pytest.approx(apart, abs=0.05)


def test_a_torque_limit_is_no_better_known_than_the_strength_that_a_fitted_gain_stands_for():
    space = Twin.load("arm").space.select("gains.kp/*", "motor.limit/*")
    limits = [p.quantity == "motor.limit" for p in space.parameters]
    assert np.diag(off(space, [], []))[limits].max() < 0.1
    assert np.diag(off(space, ["gains.kp"], []))[limits].min() > 1.0


def test_a_cause_that_errors_do_not_tell_from_another_is_its_rival():
    cable, zero = of("disturbance.cable"), of("offset.encoder")
    slopes = SLOPES.copy()
    slopes[:, zero] = slopes[:, cable] + 0.01 * slopes[:, zero]  # zeros move joints nearly as cables do
    apart, alike = sensed(0.8 * cable), replace(sensed(0.8 * cable), slopes=slopes)
    assert [s.rivals for s in suspects(apart, {"gains.kp": True})] == [()]
    (found,) = suspects(alike, {"gains.kp": True})
    assert {found.quantity, *found.rivals} == {"disturbance.cable", "offset.encoder"}
