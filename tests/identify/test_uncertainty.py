"""What the data cannot tell, and how sure they are of the rest, on problems whose answer is known."""

from dataclasses import replace

import numpy as np
import pytest

from gapless.identify.evidence import MISMATCH, SELDOM
from gapless.identify.least_squares import lasting
from gapless.identify.sensitivity import Sensitivity
from gapless.identify.uncertainty import LOOSE, WRONG, _damping_as_stated, belief, free, heavier
from gapless.twin import Twin

EVERY = Twin.load("bench").space.select("gains.kd/*", "friction.viscous/*", "friction.coulomb/*", "inertia.mass/*")
SPACE = EVERY.select("gains.kd/*", "friction.viscous/*", "friction.coulomb/*")
WEIGHT = EVERY.names.index("inertia.mass/arm")


def sensed(rng: np.random.Generator, slopes: np.ndarray | None = None, **changes: object) -> Sensitivity:
    """White errors of size 1 about a fit; the mass, which was not fitted, moves nothing unless slopes are given."""
    n = 4000
    slopes = rng.normal(size=(n, 4)) * [0.5, 1.0, 1.5, 0.0] if slopes is None else slopes
    basis, errors = np.linalg.qr(slopes[:, :3])[0], rng.normal(size=n)
    errors -= basis @ (basis.T @ errors)  # a fit leaves what its numbers cannot explain
    half, none = np.arange(n) % 2 == 0, np.zeros(1)
    plain = Sensitivity(EVERY, errors, np.arange(n) // 500, half, slopes, np.empty((n, 0)), none)
    return replace(plain, **changes)  # type: ignore[arg-type]


def spread(every: Sensitivity) -> np.ndarray:
    return np.sqrt(np.diag(belief(SPACE, np.zeros(3), every).covariance))


def test_an_interval_of_white_noise_is_that_of_linear_regression():
    every = sensed(np.random.default_rng(0))
    slopes = every.slopes[:, :3]
    exact = np.sqrt(np.diag(np.linalg.inv(slopes.T @ slopes)))
    wider = spread(every) / exact  # eight stretches of one joint may disagree by chance
    assert (wider > 0.95).all()
    assert (wider < 2.0).all()
    assert np.median(wider) < 1.4


def test_what_a_number_that_was_not_fitted_would_have_done_widens_it():
    rng = np.random.default_rng(1)
    slopes = rng.normal(size=(4000, 4))
    slopes[:, WEIGHT] = slopes[:, 0] / 3  # masses that are off by three units look like one of the first
    assert spread(sensed(rng, slopes))[0] == pytest.approx(MISMATCH / 3, rel=0.1)
    assert spread(sensed(rng, slopes))[1] < 0.05


def test_a_quantity_that_was_not_fitted_may_be_off_by_far():
    rng = np.random.default_rng(1)
    slopes = rng.normal(size=(4000, 4))
    slopes[:, 2] = slopes[:, 0]  # dry friction looks like damping
    both = SPACE.select("gains.kd/*", "friction.viscous/*")
    covariance = belief(both, np.zeros(2), sensed(rng, slopes)).covariance
    # either may be off, each by as much as it may
    assert np.sqrt(covariance[0, 0]) == pytest.approx(1 / np.hypot(1 / MISMATCH, 1 / (np.sqrt(SELDOM) * WRONG)), rel=0.1)


def weighed(lighter: float) -> Sensitivity:
    """A fit whose positions do not tell all torques from the mass, with torques of a robot so many times as heavy."""
    rng = np.random.default_rng(1)
    along = np.array([(1.0 if p.log else p.nominal) / p.scale for p in EVERY.parameters])
    slopes = rng.normal(size=(4000, 4))
    slopes -= np.outer(slopes @ along, along / (along @ along))
    positions, needed = sensed(rng, slopes), rng.normal(size=4000)
    torques = 3 * np.outer(needed, along / (along @ along))  # known to a sixtieth
    errors = 3 * np.log(1 / lighter) * needed + rng.normal(size=4000)
    return replace(positions, torque=replace(positions, residual=errors, slopes=torques))


def test_masses_that_are_off_are_a_common_factor_of_what_was_fitted_unless_torques_weigh_them():
    kd, right, light = EVERY.parameters[0], weighed(1.0), weighed(0.85)
    assert spread(replace(right, torque=None))[0] == pytest.approx(
        MISMATCH * EVERY.parameters[WEIGHT].scale / kd.scale, rel=0.15
    )
    assert spread(right)[0] < 0.1
    assert spread(light)[0] == pytest.approx(-np.log(0.85) / kd.scale, rel=0.15)
    covariance = belief(SPACE, np.zeros(3), light).covariance
    assert covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1]) > 0.9  # their ratio is known all the same
    for every, truth in ((right, 1.0), (light, 0.85)):
        logarithm, sd = heavier(SPACE, every) or (np.nan, np.nan)
        assert logarithm == pytest.approx(np.log(truth), abs=0.02)
        assert 0.003 < sd < 0.02
    assert heavier(SPACE, replace(light, torque=None)) is None


def test_a_delay_is_known_to_a_share_of_the_time_step():
    whole = Twin.load("bench").space.select("latency.action", "gains.kd/*", "friction.viscous/*", "friction.coulomb/*")
    every = replace(sensed(np.random.default_rng(0)), space=whole, step=0.005)
    fitted = whole.select("latency.action", "gains.kd/*")
    found, exact = (np.sqrt(np.diag(belief(fitted, np.zeros(2), e).covariance)) for e in (every, replace(every, step=0.0)))
    assert found[0] == pytest.approx(np.hypot(exact[0], 0.005 / np.sqrt(12) / whole.parameters[0].scale), rel=0.01)
    assert found[1] == pytest.approx(exact[1])


def test_a_damping_gain_may_be_as_stated_with_viscous_friction_for_the_rest():
    every = sensed(np.random.default_rng(0))
    half, whole = belief(SPACE, np.array([-1.0, 0.2, 0.0]), every), belief(SPACE, np.array([0.0, 0.2, 0.0]), every)
    found, exact = (np.sqrt(np.diag(each.covariance)) for each in (half, whole))
    assert found[0] == pytest.approx(np.hypot(np.sqrt(0.5), exact[0]), rel=0.1)
    assert half.covariance[0, 1] < 0  # their sum is as well known as before
    assert found[2] == pytest.approx(exact[2], rel=0.1)


def test_a_damping_gain_may_be_as_stated_though_there_is_too_little_viscous_friction_to_make_up_for_all_of_it():
    space = Twin.load("quadruped").space.select("gains.kd/FL_calf", "friction.viscous/FL_calf")
    ((gain, viscous),) = _damping_as_stated(space, np.array([-1.2, 1.0]))
    assert gain == pytest.approx(np.sqrt(0.5) * 1.2) and viscous == -MISMATCH  # none at all would be a way without end


def test_what_a_finer_time_step_would_make_of_a_number_widens_it():
    every, centre = sensed(np.random.default_rng(2)), np.array([0.0, 0.2, 0.0])
    finer = belief(SPACE, centre, every, finer=np.array([0.0, 0.7, 0.0]))
    assert np.sqrt(finer.covariance[1, 1]) == pytest.approx(np.sqrt(4 / 3) * 0.5, rel=0.05)
    assert np.sqrt(finer.covariance[0, 0]) < 0.1


def test_stretches_that_disagree_widen_it_by_as_much_as_they_differ():
    rng = np.random.default_rng(3)
    every = sensed(rng)
    moved = rng.normal(size=8) * 0.3
    apart = replace(every, residual=every.residual + every.slopes[:, 1] * moved[every.stretch])
    assert spread(every)[1] < 0.05
    assert spread(apart)[1] == pytest.approx(np.std(moved, ddof=1), rel=0.3)
    assert spread(apart)[0] < 0.1


def test_what_the_logs_do_not_tell_is_as_uncertain_as_a_real_mismatch_and_no_more():
    rng = np.random.default_rng(4)
    slopes = rng.normal(size=(4000, 4)) * [0.0, 1.0, 1.0, 0.0]
    assert LOOSE < spread(sensed(rng, slopes))[0] < 1.1


def test_what_the_logs_do_not_tell_is_as_the_model_says_and_what_they_tell_stays():
    rng = np.random.default_rng(4)
    slopes = rng.normal(size=(4000, 4)) * [0.0, 1.0, 1.0, 0.0]
    centre = np.array([-3.0, 0.8, 0.0])  # the first drifted away
    assert belief(SPACE, centre, sensed(rng, slopes)).centre == pytest.approx([0.0, 0.8, 0.0], abs=0.01)
    slopes[:, 0] = slopes[:, 1]  # now only their sum is known
    found = belief(SPACE, centre, sensed(rng, slopes)).centre
    assert found[0] + found[1] == pytest.approx(-2.2, abs=0.01)
    assert found[0] == pytest.approx(found[1], abs=0.01)


def test_a_number_is_not_known_because_another_should_not_be_as_far_off_as_it_is():
    rng = np.random.default_rng(4)
    slopes = rng.normal(size=(4000, 4)) * [1.0, 1.0, 1.0, 0.0]
    slopes[:, 2] = slopes[:, 0] / 10  # ten units of dry friction look like one of damping: a scale that no position tells
    usual, far = (belief(SPACE, np.array([0.0, 0.0, dry]), sensed(rng, slopes)).covariance for dry in (0.0, 12.0))
    assert np.sqrt(usual[0, 0]) == pytest.approx(0.1 * MISMATCH, rel=0.1)
    assert LOOSE < np.sqrt(far[0, 0]) < 1.1 * MISMATCH
    assert np.sqrt(far[1, 1]) < 0.05  # what does not depend on either is as well known as before


def test_numbers_that_should_be_alike_and_are_not_may_be_what_the_others_are():
    every = sensed(np.random.default_rng(0))
    centre = np.array([0.0, 0.1, 2.0])
    plain, apart = belief(SPACE, centre, every), belief(SPACE, centre, every, [[0, 1, 2]])
    assert apart.centre == pytest.approx([0.05, 0.1, 1.05])
    assert np.diag(apart.covariance) == pytest.approx(np.diag(plain.covariance) + [0.05**2, 0.0, 0.95**2])


def test_halves_that_end_far_from_the_fit_widen_it_by_as_much_and_no_more_than_a_real_mismatch():
    every, halves = sensed(np.random.default_rng(4)), np.array([[0.0, 0.3, 5.0], [0.0, -0.3, 0.0]])
    found = np.sqrt(np.diag(belief(SPACE, np.zeros(3), every, halves=halves).covariance))
    assert found[0] == pytest.approx(spread(every)[0])
    assert found[1] == pytest.approx(0.3, rel=0.05)
    assert found[2] == pytest.approx(MISMATCH, rel=0.05)


def test_zeros_of_single_logs_take_their_part_of_the_errors():
    rng = np.random.default_rng(5)
    every = sensed(rng)
    nuisance = 0.5 * every.slopes[:, :1]  # a zero that may be off by a half looks just like the first number
    assert spread(replace(every, nuisance=nuisance))[0] == pytest.approx(0.5, rel=0.15)


def test_an_error_lasts_as_long_as_it_repeats_itself():
    rng = np.random.default_rng(6)
    assert lasting(rng.normal(size=4000)) < 1.5
    assert lasting(np.repeat(rng.normal(size=400), 10)) == pytest.approx(10, rel=0.3)


def test_what_only_acts_as_a_sum_is_named_as_one():
    covariance = np.diag([1e-4, 1e-4, 1e-4])
    covariance[:2, :2] += 4 * np.array([[1.0, -1.0], [-1.0, 1.0]])
    unknown = free(SPACE, covariance, electric=False, position_only=False)
    assert len(unknown) == 1
    assert set(unknown[0].parameters) == set(SPACE.names[:2])
    assert "only their sum" in unknown[0].meaning


@pytest.mark.parametrize(("electric", "words"), [(True, "kt and friction are coupled"), (False, "one free scale")])
def test_what_no_position_can_tell_is_always_said(electric, words):
    unknown = free(SPACE, np.eye(3) * 1e-4, electric, position_only=True)
    assert [words in u.meaning for u in unknown] == [True]


def test_a_number_that_may_be_right_since_another_is_off_instead_is_uncertain_by_half_of_the_way():
    rng = np.random.default_rng(1)
    slopes = rng.normal(size=(4000, 4))
    slopes[:, 1] += slopes[:, 2]  # what the third does, the second does too
    every, centre = sensed(rng, slopes), np.array([0.0, 0.3, 1.4])
    sure, unsure = (belief(SPACE, centre, every, instead=each).covariance for each in ((), ("friction.coulomb",)))
    assert np.sqrt(sure[2, 2]) < 0.1
    assert np.sqrt(unsure[2, 2]) == pytest.approx(1.4 / np.sqrt(2), rel=0.05)
    assert unsure[1, 2] / unsure[2, 2] == pytest.approx(-0.5, abs=0.05)  # which takes half of it over
    assert np.sqrt(unsure[0, 0]) < 0.1


def test_a_number_that_may_hide_what_the_model_lacks_is_uncertain_by_half_of_the_way_and_moves_no_other():
    every, centre = sensed(np.random.default_rng(0)), np.array([0.0, 0.2, 0.8])
    sure, unsure = (belief(SPACE, centre, every, hiding=each).covariance for each in ((), ("friction.coulomb",)))
    assert unsure[2, 2] == pytest.approx(sure[2, 2] + 0.8**2 / 2)
    assert np.diag(unsure)[:2] == pytest.approx(np.diag(sure)[:2])


def test_errors_of_slopes_are_no_information():
    rng = np.random.default_rng(2)
    exact = rng.normal(size=(4000, 4)) * [1.0, 1.0, 1.0, 0.3]
    exact[:, 3] += exact[:, 0]
    errors = np.array([0.0, 0.0, 0.0, 0.6])
    noisy = exact + errors * rng.normal(size=exact.shape)
    right, wrong = (sensed(rng, slopes).says()[0] for slopes in (exact, noisy))
    mended = sensed(rng, noisy, blur=np.diag(4000 * errors**2)).says()[0]

    def known(information: np.ndarray) -> float:
        """Information about the last number once the others are free."""
        return float(1 / np.linalg.inv(information)[3, 3])

    assert known(wrong) > 3 * known(right)
    assert known(mended) == pytest.approx(known(right), rel=0.25)
