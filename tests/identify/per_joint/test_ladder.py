"""The ladder: joints of one actuator type share their numbers until held-out error says otherwise."""

import mujoco
import numpy as np
import pytest

from gapless.identify import Fit, fit
from gapless.identify.per_joint.ladder import OWN, RUNGS
from gapless.twin import Friction, Twin
from gapless.worlds import StandIn, StandInSpec as Spec, build_standin as build, plan_motion as plan, record

pytestmark = pytest.mark.xdist_group("ladder")  # one worker makes the fixtures, once


@pytest.mark.parametrize(
    ("rung", "add", "name", "truth"),
    [
        ("+ backlash", {"backlash": {"width": 0.04}}, "backlash.width/servo", 0.04),
        ("+ flex between motor and link", {"flex": {"stiffness": 20.0, "damping": 0.05}}, "flex.stiffness/servo", 20.0),
        ("+ torque-speed line", {"motor": {"no_load_speed": 4.0}}, "motor.no_load_speed/servo", 4.0),
    ],
)
def test_a_structure_that_the_model_lacks_is_found_and_installed(rung, add, name, truth, tmp_path):
    secrets: dict[str, float | str] = {"gains.kp/*": "x0.8", "friction.coulomb/*": "x1.5", "latency.action": 0.01}
    spec = Spec("bench", seed=1, tolerance=0, change=secrets, add=add, sensors={"noise_q": 0.0003, "noise_dq": 0.01})
    stand_in = StandIn(spec)
    log = record(stand_in, plan("rich", build(spec), 20.0, np.random.default_rng(0)), stand_in.signal)
    found = fit(Twin.load("bench", add=[Friction(full=True)]), [log])
    climbed = {r.name for r in found.ladder if r.added}
    assert rung in climbed
    assert not climbed & {r for r, _ in RUNGS[2:] if r != rung}
    assert found.values[found.twin.space.names.index(name)] == pytest.approx(truth, rel=0.15)
    assert np.degrees(found.heldout.fit) < 0.04
    found.twin.save(tmp_path / "twin.xml", found.values)
    mujoco.MjModel.from_xml_path(str(tmp_path / "twin.xml"))


def legs(change: dict[str, float | str]) -> Fit:
    """A quadruped in the air that differs from its model in this, fitted."""
    spec = Spec("quadruped", in_air=True, tolerance=0, change=change, sensors={"noise_q": 0.0003, "noise_dq": 0.01})
    stand_in = StandIn(spec)
    log = record(stand_in, plan("rich", build(spec), 5.0, np.random.default_rng(0)), stand_in.signal)
    return fit(Twin.load("quadruped", add=[Friction(full=True)], in_air=True), [log])


@pytest.fixture(scope="module")
def alike() -> Fit:
    return legs({"gains.kp/*": "x0.7", "friction.coulomb/*": "x2"})


def test_joints_of_one_type_that_are_alike_share_one_number(alike):
    assert not next(r for r in alike.ladder if r.name == OWN).added
    tied = [p for p in alike.belief.space.parameters if len(p.members) > 1]
    assert {"gains.kp", "friction.coulomb"} <= {p.quantity for p in tied}
    space = alike.twin.space
    values = [alike.values[space.names.index(n)] / space.nominal[space.names.index(n)] for n in space.match("gains.kp/*")]
    assert values == pytest.approx([0.7] * 12, rel=0.05)


def test_a_shared_number_is_drawn_once_for_all_of_its_joints(alike):
    robots = alike.twin.expand(alike.belief.sample(5, np.random.default_rng(0)), alike.belief.space)
    tied = next(p for p in alike.belief.space.parameters if p.quantity == "gains.kp" and len(p.members) > 1)
    drawn = robots[:, [alike.twin.space.names.index(m) for m in tied.members]]
    assert (np.ptp(drawn, axis=1) == 0).all()
    assert np.ptp(drawn[:, 0]) > 0


def test_a_type_whose_joints_differ_is_freed():
    found = legs({"friction.coulomb/FL_*": "x6", "gains.kp/FL_*": "x0.6"})
    assert next(r for r in found.ladder if r.name == OWN).added
    assert "gains.kp/FL_hip" in found.belief.space.names
