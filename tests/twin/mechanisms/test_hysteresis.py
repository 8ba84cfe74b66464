"""Hysteresis: a joint winds up under load as the closed form of a bristle says, then slips; it is named and fitted."""

import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.explain import explain
from gapless.identify import fit
from gapless.logs import Log
from gapless.twin import Friction, Twin
from gapless.twin.mechanisms.hysteresis import Hysteresis
from gapless.worlds import StandIn, StandInSpec as Spec, plan_motion as plan, record
from tests.twin.models import INERTIA, one_world, run, twin_of, wheel

TORQUE, WINDUP = 0.4, 0.05


def test_below_its_torque_a_joint_winds_up_and_stays_there():
    worlds = one_world(twin_of(wheel(joint='damping="0.5"'), Hysteresis(windup=WINDUP)), {"hysteresis.torque/axle": TORQUE})
    q = run(worlds, 0.6 * TORQUE, 2.0)[:, 0]
    assert q[-1] == pytest.approx(-WINDUP * np.log(1 - 0.6), rel=0.01)
    assert np.ptp(q[-100:]) < 1e-4


def test_above_its_torque_it_slips_and_takes_that_torque_off():
    worlds = one_world(twin_of(wheel(), Hysteresis(windup=WINDUP)), {"hysteresis.torque/axle": TORQUE})
    v = run(worlds, 2 * TORQUE, 0.5)[:, 1]
    assert (v[-1] - v[-50]) / (49 * 0.002) == pytest.approx(TORQUE / INERTIA, rel=0.01)


def test_a_windup_that_is_none_is_refused():
    with pytest.raises(BadInput, match="less is dry friction, more a spring"):
        twin_of(wheel(), Hysteresis(windup=0.0))
    with pytest.raises(BadInput, match="unknown joint 'knee'"):
        twin_of(wheel(), Hysteresis(joints="knee"))


@pytest.fixture(scope="module")
def log() -> Log:
    hysteresis = {"hysteresis": {"windup": WINDUP}}
    sensors = {"noise_q": 0.0003, "noise_dq": 0.01}
    spec = Spec("bench", tolerance=0, change={"hysteresis.torque/servo": f"+{TORQUE}"}, add=hysteresis, sensors=sensors)
    stand_in = StandIn(spec)
    return record(stand_in, plan("rich", Twin.load("bench"), 12.0, np.random.default_rng(0)), stand_in.signal)


def test_it_is_named_as_a_cause_though_the_twin_lacks_it(log):
    first = explain(Twin.load("bench", add=[Friction(full=True)]), [log]).mechanisms[0]
    assert first.name == "hysteresis.torque"
    assert first.parameters["hysteresis.torque/servo"].value == pytest.approx(TORQUE, rel=0.2)


def test_it_is_fitted_though_the_twin_lacks_it(log):
    found = fit(Twin.load("bench", add=[Friction(full=True)]), [log])
    assert next(r for r in found.ladder if r.name == "+ hysteresis").added
    values = dict(zip(found.twin.space.names, found.values, strict=True))
    assert values["hysteresis.torque/servo"] == pytest.approx(TORQUE, rel=0.15)
    assert values["hysteresis.windup/servo"] == pytest.approx(WINDUP, rel=0.3)


def test_dry_friction_alone_is_not_taken_for_it():
    spec = Spec("bench", seed=1, change={"friction.coulomb/*": "x3"}, sensors={"noise_q": 0.0003, "noise_dq": 0.01})
    stand_in = StandIn(spec)
    log = record(stand_in, plan("rich", Twin.load("bench"), 12.0, np.random.default_rng(0)), stand_in.signal)
    assert not any(r.added for r in fit(Twin.load("bench"), [log]).ladder if r.name == "+ hysteresis")
