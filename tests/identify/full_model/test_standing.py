"""Fits of a robot that stands on its own feet: positions and IMU only, and where windows begin was not measured."""

import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.identify import Fit, fit
from gapless.logs import Log
from gapless.measure import windows
from gapless.twin import Friction, Twin
from gapless.worlds import StandIn, StandInSpec as Spec, build_standin as build, plan_motion as plan, record

pytestmark = pytest.mark.xdist_group("standing")  # one worker makes the fixtures, once

SECRETS: dict[str, float | str] = {"gains.kp/*": "x0.75", "friction.coulomb/*": "x2.5", "latency.action": 0.012}


def standing(seconds: float = 6.0) -> Log:
    spec = Spec("quadruped", seed=1, tolerance=0, change=SECRETS, sensors={"noise_q": 0.0003, "noise_dq": 0.01})
    stand_in = StandIn(spec)
    return record(stand_in, plan("rich", build(spec), seconds, np.random.default_rng(0)), stand_in.signal)


@pytest.fixture(scope="module")
def found() -> Fit:
    return fit(Twin.load("quadruped", add=[Friction(full=True)]), [standing()])


def test_a_standing_robot_is_predicted_far_better_than_by_its_model(found):
    e = found.heldout
    assert e.fit < 0.1 * min(e.given, e.delay, e.command)
    assert found.predicts


def test_its_gains_friction_and_delay_are_found(found):
    values = dict(zip(found.twin.space.names, found.values, strict=True))
    assert values["gains.kp/FL_thigh"] == pytest.approx(37.5, rel=0.1)
    assert values["friction.coulomb/FL_calf"] == pytest.approx(0.5, rel=0.15)
    assert values["latency.action"] == pytest.approx(0.012, abs=0.002)


def test_masses_and_gains_share_a_scale_and_the_fit_says_so(found):
    assert any("one free scale" in u.meaning for u in found.undetermined)


def test_a_signal_that_the_log_lacks_cannot_be_fitted_to():
    log = standing()
    bare = Log.from_arrays(log.joints, log["q"].time, {s: log[s].values for s in ("q", "q_cmd")})
    twin = Twin.load("quadruped", in_air=True)
    with pytest.raises(BadInput, match="no tau of every joint"):
        windows(twin, [bare], signals=("q", "tau"))
