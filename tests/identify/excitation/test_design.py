"""Excitation: what a motion tells, motions that keep limits on robots they were not designed on, and designs that tell more."""

import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.identify.excitation import design
from gapless.identify.excitation.design import WORK, excite
from gapless.identify.excitation.information import Judge, Uncertain, uncertain
from gapless.identify.excitation.limits import Guard, home_pose, limits_of
from gapless.identify.excitation.simulate import Simulator
from gapless.twin import Box, Gaussian, Particles, Point, Twin
from gapless.worlds import StandIn, StandInSpec as Spec, plan_motion as plan, record

pytestmark = pytest.mark.xdist_group("design")  # one worker makes the fixtures, once

QUANTITIES = ("friction.*", "armature.*", "latency.action", "inertia.mass/*")


def known(twin, spread=0.5):
    space = twin.space.select(*QUANTITIES)
    centre = np.where(np.array(space.names) == "latency.action", 1.0, 0.0)
    return Gaussian(space, centre, spread**2 * np.eye(len(space)))


@pytest.fixture(scope="module")
def servo():
    twin = Twin.load("bench")
    return excite(twin, known(twin), 6.0, limits_of(twin), np.random.default_rng(0), work=0.01 * WORK)


def test_simulated_robots_do_what_stand_ins_do():
    twin = Twin.load("arm")
    belief = known(twin)
    truth, motion = belief.sample(1, np.random.default_rng(2)), plan("chirp", twin, 3.0, np.random.default_rng(1))
    simulator = Simulator(twin, home_pose(twin))
    simulated = simulator(motion[None], twin.expand(truth, belief.space))
    change = dict(zip(belief.space.names, truth[0].tolist(), strict=True))
    told = np.concatenate([np.tile(home_pose(twin), (simulator.lead, 1)), motion])  # it stands before it moves
    log = record(StandIn(Spec("arm", tolerance=0, timestep=twin.model.opt.timestep, change=change)), told)
    q, dq, tau = (log[s].values[simulator.lead : -1] for s in ("q", "dq", "tau"))
    np.testing.assert_allclose(simulated.q[0], q, atol=1e-9)
    assert (simulated.peaks.speed[0] >= np.abs(dq).max(axis=0) - 1e-9).all()
    assert (simulated.peaks.torque[0] >= 0.9 * np.abs(tau).max(axis=0)).all()  # over a period


def test_what_is_left_is_the_inverse_of_prior_and_gained_information():
    rng = np.random.default_rng(0)
    root, jacobian = rng.normal(size=(4, 4)), rng.normal(size=(50, 4))
    what = Uncertain(Twin.load("bench").space.select("gains.*"), np.zeros(4), root, np.zeros((0, 0)))
    direct = np.linalg.inv(np.linalg.inv(root @ root.T) + jacobian.T @ jacobian)
    np.testing.assert_allclose(what.after(jacobian.T @ jacobian), np.sqrt(np.diag(direct)), rtol=1e-6)
    assert what.left(what.after(np.zeros((4, 4)))) == pytest.approx(1.0)
    assert what.left(0.1 * what.spread) == pytest.approx(0.1)


def test_positions_do_not_tell_a_servos_scale():
    """Gain, damping, dry friction, armature and link inertia all doubled give the same motion where there is no gravity."""
    twin = Twin.load("arm")
    space = twin.space.select("gains.*/wrist_roll", "friction.*/wrist_roll", "armature.inertia/wrist_roll")
    judge = Judge(twin, uncertain(twin, Point(space, space.nominal), np.random.default_rng(0)), limits_of(twin), 0.001)
    information = judge.information(plan("chirp", twin, 5.0, np.random.default_rng(0))[None], np.zeros(len(space)))
    per_factor = {"friction.coulomb/wrist_roll": 1.0}  # an amount, whose nominal value is one unit of scale
    scale = np.array([per_factor.get(p.name, 1.0 / p.scale) for p in space.parameters])
    along = scale / np.linalg.norm(scale)
    assert along @ information[0] @ along < 1e-3 * np.trace(information[0])


def test_every_belief_has_a_mean_and_a_spread():
    twin, rng = Twin.load("bench"), np.random.default_rng(0)
    space = twin.space.select("armature.*", "friction.coulomb/*")
    low, high = space.from_scaled([-1.0, -0.5]), space.from_scaled([1.0, 0.5])
    box = uncertain(twin, Box(space, low, high), rng)
    np.testing.assert_allclose(box.spread, np.array([2.0, 1.0]) / np.sqrt(12))
    values = Box(space, low, high).sample(4000, rng)
    cloud = uncertain(twin, Particles(space, values, np.full(4000, 1 / 4000)), rng)
    np.testing.assert_allclose(cloud.spread, box.spread, rtol=0.05)
    np.testing.assert_allclose(uncertain(twin, Point(space, space.nominal), rng).spread, 1.0)
    assert "latency.action" in uncertain(twin, None, rng).space.names


def test_a_designed_motion_tells_more_than_the_usual_ones(servo):
    assert servo.left["designed"] < 0.9 * min(servo.left["chirp"], servo.left["multisine"])
    assert (servo.after["designed"] <= servo.what.spread + 1e-9).all()
    assert servo.motion.shape == (300, 1)
    assert set(servo.baselines) == {"chirp", "multisine"}


def test_the_same_seed_gives_the_same_motion(servo):
    twin = servo.twin
    again = excite(twin, known(twin), 6.0, limits_of(twin), np.random.default_rng(0), work=0.01 * WORK)
    np.testing.assert_array_equal(again.motion, servo.motion)


@pytest.mark.parametrize("robot", ["bench", "arm"])
def test_no_stand_in_breaks_a_limit(robot):
    twin = Twin.load(robot)
    belief, bounds, guard = known(twin), limits_of(twin, speed=2.0, torque=0.7, reach=0.8), Guard(twin, clearance=0.0)
    found = excite(twin, belief, 5.0, bounds, np.random.default_rng(3), work=0.01 * WORK)
    for motion in (found.motion, *found.baselines.values()):
        for seed, truth in enumerate(belief.sample(4, np.random.default_rng(4))):
            change = dict(zip(belief.space.names, truth.tolist(), strict=True))
            log = record(StandIn(Spec(robot, seed, change=change)), motion)  # what is not named is off by its tolerance
            q, dq, tau = (log[s].values for s in ("q", "dq", "tau"))
            assert bounds.broken(q, dq, tau) == []
            assert not guard.touches(q)
    assert (found.peaks.speed <= 2.0).all()
    assert np.ptp(found.motion, axis=0).min() > 0.01  # and it does move


def test_links_that_a_model_lets_pass_through_each_other_are_seen():
    twin = Twin.load("arm")
    guard, home = Guard(twin), np.array([[0, -0.5, 0.6, 0.5, 0, 0.4]])
    assert not guard.touches(home)
    assert guard.touches(np.array([[0, 1.4, 0.6, 0.5, 0, 0.4]]))  # into the table
    assert guard.touches(np.array([[0, 0.6, 1.69, 1.6, 0, 0.4]]))  # the hand folds back


def test_what_a_model_does_not_state_is_said_not_to_be_checked(tmp_path, servo):
    joint = '<joint name="hinge" axis="0 1 0" range="-1 1" armature="0.01" damping="0.2" frictionloss="0.02"/>'
    body = f'<body>{joint}<inertial pos="0 0 -0.1" mass="0.3" diaginertia="1e-3 1e-3 1e-3"/></body>'
    actuator = '<actuator><position joint="hinge" kp="10" kv="0.2"/></actuator>'
    (tmp_path / "bare.xml").write_text(f'<mujoco><compiler angle="radian"/><worldbody>{body}</worldbody>{actuator}</mujoco>')
    twin = Twin.load(tmp_path / "bare.xml")
    found = excite(twin, known(twin), 3.0, limits_of(twin), np.random.default_rng(0), work=1e5)
    assert [w.partition(":")[2] for w in found.warnings] == [" collisions were not checked", " torque was not checked"]
    assert servo.warnings == ()


def test_an_interrupted_search_keeps_the_best_so_far():
    def interrupt(done: float, words: str) -> None:
        if "leaves" in words:
            raise KeyboardInterrupt

    twin = Twin.load("bench")
    found = excite(twin, known(twin), 5.0, limits_of(twin), np.random.default_rng(0), tick=interrupt)
    assert found.candidates == 8
    assert found.left["designed"] < 1


def test_where_no_stretch_keeps_the_limits_a_usual_motion_that_does_is_given_and_said(monkeypatch):
    monkeypatch.setattr(design, "TRIES", 0)  # no stretch is drawn in until it keeps them
    twin = Twin.load("bench")
    bounds = limits_of(twin)
    found = excite(twin, known(twin), 5.0, bounds, np.random.default_rng(0), work=0.001 * WORK)
    assert any("no stretch of motion kept limits" in warning for warning in found.warnings)
    assert found.left["designed"] == min(found.left.values()) < 1
    assert (found.peaks.torque <= bounds.torque).all() and (found.peaks.speed <= bounds.speed).all()


SERVO = '<position joint="{0}" kp="{1}" kv="{2}" forcerange="-{3} {3}"/>'
LINK = """<body pos="0 0 {0}"><joint name="{1}" axis="0 1 0" range="{2}" armature="0.02" damping="0.1" frictionloss="0.05"/>
<inertial pos="0.1 0 0" mass="0.3" diaginertia="1e-3 1e-3 1e-3"/>{3}</body>"""
WRIST = SERVO.format("wrist", 1000, 3, 3)


def made(folder, wrist="-1 1", actuator=WRIST, strength=3.0):
    """Two links in a row, held out level, with servos as stiff as those of small arms."""
    arm = LINK.format(0.5, "shoulder", "-1 1", LINK.format(0, "wrist", wrist, ""))
    head = '<mujoco><compiler angle="radian"/><option timestep="0.004"/>'
    drives = SERVO.format("shoulder", 1000, 3, strength) + actuator
    (folder / "made.xml").write_text(f"{head}<worldbody>{arm}</worldbody><actuator>{drives}</actuator></mujoco>")
    return Twin.load(folder / "made.xml")


def test_stiff_servos_that_a_jump_of_the_command_saturates_are_moved_gently(tmp_path):
    twin = made(tmp_path)
    bounds = limits_of(twin)
    result = excite(twin, None, 3.0, bounds, np.random.default_rng(0), work=0.01 * WORK)
    assert np.ptp(result.motion, axis=0).min() > 0.005
    assert (result.peaks.torque <= bounds.torque).all()
    assert (result.peaks.speed <= bounds.speed).all()


def test_a_home_at_the_end_of_a_range_is_left_before_the_motion_starts(tmp_path):
    twin = made(tmp_path, wrist="0 1")
    result = excite(twin, None, 2.0, limits_of(twin), np.random.default_rng(0), work=0.01 * WORK)
    np.testing.assert_allclose(result.motion[0], [0.0, 0.03])
    assert result.peaks.low[1] >= 0.0
    assert any("go there first: wrist at 0.030" in w for w in result.warnings)


def test_joints_that_are_no_position_servos_hold_still(tmp_path):
    twin = made(tmp_path, actuator='<velocity joint="wrist" kv="5" ctrlrange="-5 5"/>')
    result = excite(twin, None, 2.0, limits_of(twin), np.random.default_rng(0), work=0.01 * WORK)
    assert np.ptp(result.motion, axis=0)[0] > 0.005
    assert not result.motion[:, 1].any()
    assert not any(name.endswith("/wrist") for name in result.what.space.names)
    assert any("wrist" in w for w in result.warnings)


def test_a_drive_that_cannot_hold_its_joint_is_named_at_once(tmp_path):
    twin = made(tmp_path, strength=0.7)  # 0.3 kg at 0.1 m, twice, take 0.59 N m
    with pytest.raises(BadInput, match=r"cannot stand at home .*: shoulder takes 0.5\d* N m, of 0.535 .*--torque") as caught:
        excite(twin, None, 4.0, limits_of(twin, torque=0.9), np.random.default_rng(0))
    assert "\n" not in str(caught.value)


def test_a_lift_is_told_in_newtons_and_metres(tmp_path):
    lift = LINK.format(0.5, "lift", "0 0.5", "").replace('axis="0 1 0"', 'type="slide" axis="0 0 1"')
    drive = SERVO.format("lift", 1000, 30, 3.2)  # 0.3 kg weigh 2.94 N
    (tmp_path / "lift.xml").write_text(f"<mujoco><worldbody>{lift}</worldbody><actuator>{drive}</actuator></mujoco>")
    twin = Twin.load(tmp_path / "lift.xml")
    with pytest.raises(BadInput, match=r"lift takes 2.9\d* N, of 2.18 "):
        excite(twin, None, 2.0, limits_of(twin, torque=0.8), np.random.default_rng(0), work=0.01 * WORK)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"seconds": 0.5}, "lasts between"),
        ({"noise": 0.0}, "noise"),
        ({"reach": 0.005}, "no room"),
        ({"reach": 0.0}, "positive number"),
        ({"speed": float("nan")}, "positive number"),
        ({"quantities": ("sensors.*",)}, "no motion tells"),
        ({"spread": 0.0}, "nothing uncertain"),
        ({"robot": "quadruped"}, "--in-air"),
        ({"belief_of": "bench"}, "not about arm"),
    ],
)
def test_bad_input_is_one_sentence(change, sentence):
    twin = Twin.load(change.get("robot", "arm"))
    other = Twin.load(change.get("belief_of", change.get("robot", "arm")))
    space = other.space.select(*change.get("quantities", ("friction.*",)))
    belief = Gaussian(space, np.zeros(len(space)), change.get("spread", 1.0) ** 2 * np.eye(len(space)))
    with pytest.raises(BadInput, match=sentence) as caught:
        bounds = limits_of(twin, speed=change.get("speed", 3.0), reach=change.get("reach", 3.0))
        excite(twin, belief, change.get("seconds", 5.0), bounds, np.random.default_rng(0), change.get("noise", 0.001))
    assert "\n" not in str(caught.value)
