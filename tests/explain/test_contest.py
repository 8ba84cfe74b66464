"""The contest of hypotheses: boxes of tolerances, residuals in floors, slopes that are shared, and a step that helps."""

import numpy as np
import pytest

from gapless.explain.calibrate import contest_of
from gapless.explain.compete import compete, step, tolerances
from gapless.explain.contest import Contest
from gapless.explain.physics import noise_of, observed
from gapless.twin import Twin
from gapless.worlds import StandInSpec as Spec
from tests.measure.made import recorded


@pytest.fixture(scope="module")
def contest() -> Contest:
    data = observed(Twin.load("bench"), [recorded(Spec("bench", tolerance=0, change={"gains.kp/*": "x0.6"}), 8.0)[1]])
    return contest_of(data, noise_of(data), np.random.default_rng(0), {})[0]


def test_nominal_is_within_every_tolerance_and_within_reach(contest):
    low, high = contest.box
    assert (low <= 0).all() and (high >= 0).all()
    down, up = contest.reach
    assert (down <= low + 1e-9).all() and (up >= high - 1e-9).all()


def test_scaled_zeros_are_the_nominal_values(contest):
    twin = contest.arenas[""].twin
    np.testing.assert_allclose(contest.values(np.zeros((1, len(contest.space))))[0], twin.space.nominal)


def test_outliers_are_drawn_in(contest):
    errors = np.zeros((1, 4, len(contest.floor)))
    errors[0, 0] = 1e3 * contest.floor
    plain = contest.drawn_in(errors)
    assert plain.max() == pytest.approx(1e3)
    bounded = Contest(contest.arenas, contest.space, contest.floor, contest.slopes, outlier=5.0).drawn_in(errors)
    assert bounded.max() == pytest.approx(5.0, rel=1e-3)


def test_tolerances_stay_in_their_box_and_never_make_it_worse(contest):
    start = contest.nominal
    better = tolerances(contest, start)
    low, high = contest.box
    assert better.left <= start.left
    assert (better.x >= low - 1e-9).all() and (better.x <= high + 1e-9).all()
    assert (np.abs(step(contest, start, None, 0.0)[contest.numbers(["gains.kp"])]) <= np.abs(high).max() + 1e-9).all()


def test_the_true_cause_wins_and_an_unused_number_costs_nothing(contest):
    base = tolerances(contest, contest.nominal)
    ranked = compete(contest, base, ["gains.kp", "latency.action", "armature.inertia"])
    assert ranked[0].causes == ("gains.kp",)
    assert ranked[0].left < 0.2 * base.left
    assert contest.evidence(ranked[0]) < contest.evidence(base)
