"""Check: good policies pass and walk as at home, broken copies are named, logs are audited, any callable can be checked."""

import json
from dataclasses import replace
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest

import gapless
from bench.check import copies, frames
from gapless.check import audit, check, walk
from gapless.check.frames import Signals, frame_columns, predict
from gapless.check.network import asymmetry
from gapless.check.preflight import Subject, _by_physics
from gapless.check.sequence import motion
from gapless.cli import main
from gapless.errors import BadInput
from gapless.logs import Log, read, write
from gapless.policy import Observer, read_policy
from gapless.robots import load_robot
from gapless.twin import Twin
from tests.check.made import still
from tests.data import DATA, needs_data
from tests.logs import bags
from tests.policy import made

POLICIES = DATA / "policies"
pytestmark = needs_data


@pytest.fixture(scope="module")
def go2():
    pytest.importorskip("torch")
    robot = load_robot(POLICIES / "models" / "go2.xml")
    return robot, read_policy(POLICIES / "rl_sar_go2", robot)


@pytest.fixture(scope="module")
def g1():
    robot = load_robot(POLICIES / "models" / "g1.xml")
    return robot, read_policy(POLICIES / "unitree_rl_lab_g1", robot)


def test_policies_walk_as_at_home(go2, g1):
    """Their authors' page: 8 m at 1 m/s, 4.7 m at 0.5 m/s."""
    for (robot, good), speed, metres in ((go2, 1.0, 8.0), (g1, 0.5, 4.7)):
        result = check(good, robot, command=(speed, 0, 0))
        assert result.outcome == "pass"
        assert result.walk.distance == pytest.approx(metres, rel=0.05)


def test_a_hand_kept_yaml_is_found_out(g1):
    result = check(POLICIES / "unitree_rl_mjlab_g1", g1[0], seconds=5)
    warned = [c for c in result.checks if c.status == "warn"]
    assert result.outcome == "pass"
    assert [c.name for c in warned] == ["action scale"]
    assert "waist_yaw_joint" in warned[0].sentence


@pytest.mark.parametrize("case", ["joint order", "quaternion order", "wrong period", "degrees", "gains x2"])
def test_broken_copies_are_named_by_golden_frames(go2, case):
    robot, good = go2
    golden = frames(good, robot, (1.0, 0.0, 0.0))
    copy = dict(copies(good, robot, golden))[case]
    result = check(copy.candidate, robot, command=(1.0, 0, 0))
    assert result.finding in copy.names
    assert result.exit_code == 1
    boundary = result.json()["boundary"]
    order = ["observation to action", "signals to observation", "action to torque", "torque to next state"]
    assert all(c.status == "skip" for c in result.checks if order.index(c.boundary) > order.index(boundary))


def test_speeds_that_are_mostly_noise_are_not_held_for_another_unit():
    rng, dt = np.random.default_rng(0), 0.02
    position = 0.02 * np.cumsum(rng.normal(size=(400, 4)), axis=0)
    speed = np.gradient(position, dt, axis=0)
    contract, joints = SimpleNamespace(timing=SimpleNamespace(control_dt=dt)), {"q": tuple("abcd"), "dq": tuple("abcd")}

    def judged(dq):
        return [c.status for c in motion(contract, Signals({"q": position, "dq": dq}, joints))]

    noisy = speed + 0.8 * np.std(speed) * rng.normal(size=speed.shape)
    assert judged(noisy) == ["pass"] and judged(4 * noisy) == ["fail"] and judged(speed / 2) == ["fail"]


def test_frames_of_commands_that_act_in_a_later_period_are_not_held_against_physics(go2):
    robot, good = go2
    copy = dict(copies(good, robot, frames(good, robot, (1.0, 0.0, 0.0))))["gains x2"].candidate
    subject = Subject.of(copy, robot)
    assert _by_physics(subject, []) is not None
    late = replace(subject.contract, timing=replace(subject.contract.timing, delay_range=(0.03, 0.05)))
    assert _by_physics(replace(subject, contract=late), []) is None


@pytest.mark.parametrize("case", ["history reversed", "history by frame", "gains permuted", "gains of 1 and 0"])
def test_broken_copies_are_named_without_golden_frames(g1, case):
    robot, good = g1
    copy = dict(copies(good, robot, None))[case]
    assert check(copy.candidate, robot).finding in copy.names


def test_a_joint_order_is_named_where_the_gains_are_kept_by_motor(g1):
    robot, good = g1
    contract = good.contract
    names = tuple(sorted(contract.joints.names, key=robot.joints.index))
    by_name = [dict(zip(contract.joints.names, g, strict=True)) for g in (contract.joints.kp, contract.joints.kd)]
    kp, kd = (tuple(g[n] for n in names) for g in by_name)
    wrong = replace(
        contract, joints=replace(contract.joints, names=names, kp=kp, kd=kd), action=replace(contract.action, joints=names)
    )
    assert check(replace(good, contract=wrong), robot, command=(0.5, 0, 0), seconds=4).finding == "joint order"


def test_a_network_that_is_not_the_one_of_its_golden_frames_fails_at_the_first_boundary(go2):
    robot, good = go2
    observation, action = frames(good, robot, (1.0, 0.0, 0.0))
    result = check(replace(good, golden=(observation, action[:, ::-1])), robot)
    assert result.finding == "joint order"
    assert result.json()["boundary"] == "observation to action"
    assert check(replace(good, golden=(observation, 2 * action)), robot).finding == "action scale"


def test_frame_columns_find_what_the_observer_wrote():
    for major in ("term", "frame"):
        for order in ("oldest_first", "newest_first"):
            contract = made.contract(made.terms(3), major=major, order=order)
            observer, rng = Observer(contract, 1), np.random.default_rng(0)
            shown = [observer(*made.frame(1, rng))[0] for _ in range(4)]
            for name in frame_columns(contract):
                assert np.array_equal(shown[2][frame_columns(contract, 0)[name]], shown[3][frame_columns(contract, 1)[name]])


def test_physics_lead_from_frame_to_frame_by_the_right_gains_only(go2):
    robot, good = go2
    golden = frames(good, robot, (1.0, 0.0, 0.0))
    joints = good.contract.joints
    kp, kd = (tuple(2 * k for k in gains) for gains in (joints.kp, joints.kd))
    twice = replace(good.contract, joints=replace(joints, kp=kp, kd=kd))
    assert predict(good.contract, robot, *golden).error < 0.75 * predict(twice, robot, *golden).error


def test_symmetry_needs_sides():
    block = np.arange(16.0).reshape(4, 4)
    assert np.isnan(asymmetry(block, ("a", "b", "c", "d")))
    assert asymmetry(np.ones((2, 2)), ("left_hip", "right_hip")) == 0.0


def log_of(good, robot, change=lambda name, values: values) -> Log:
    """A deployment log of a walk, with a runtime whose readings were wrong while the log holds the right ones."""
    contract, policy = good.contract, good.policy

    class Runtime:
        def reset(self):
            policy.reset()

        def __call__(self, observation):
            wrong = observation.copy()
            for name, columns in frame_columns(contract).items():
                wrong[:, columns] = change(name, wrong[:, columns])
            return policy(wrong)

    _, trace = walk(Runtime(), contract, robot, (0.5, 0.0, 0.0), 3.0)
    signals = {"q": trace.q, "dq": trace.dq, "quat": trace.quat, "gyro": trace.gyro, "q_cmd": trace.target}
    time = 0.02 * np.arange(len(trace.q))
    made_log = Log.from_arrays(contract.joints.names, time, {k: v for k, v in signals.items() if k in ("q", "dq", "q_cmd")})
    base = Log.from_arrays((), time, {k: signals[k] for k in ("quat", "gyro")})
    return replace(made_log, signals={**made_log.signals, **base.signals})


@pytest.mark.parametrize("ros", [False, True])
def test_files_of_our_recorder_and_of_ros_are_audited_alike(go2, tmp_path, ros):
    """MCAP of this project, and one of JointState, Imu and JointTrajectory by the libraries of others."""
    robot, good = go2
    for name, turned, finding in (("right", 1.0, ""), ("wrong", -1.0, "sign")):
        log = log_of(good, robot, lambda term, values, by=turned: by * values if term == "ang_vel" else values)
        path = tmp_path / f"{name}.mcap"
        if ros:
            pytest.importorskip("rosbags")
            writer = bags.Writer(tmp_path / name, mcap=True)
            for part in (bags.states, bags.imu, bags.trajectories):
                part(writer, log)
            writer.close()
            path = next((tmp_path / name).glob("*.mcap"))
        else:
            write(log, path)
        result = check(good, robot, command=(0.5, 0, 0), seconds=1, log=read(path))
        assert result.finding == finding, result.verdict().text
        assert result.evidence.endswith("a real log")


def test_a_log_of_a_policy_that_estimates_its_velocity_is_audited_with_its_robot():
    twin = Twin.load("quadruped")
    policy, time = still(twin), 0.02 * np.arange(50)
    q = np.tile(policy.contract.joints.default_pos, (50, 1))
    log = Log.from_arrays(twin.joints, time, {"q": q, "dq": 0 * q, "q_cmd": q})
    base = Log.from_arrays((), time, {"quat": np.tile([1.0, 0, 0, 0], (50, 1)), "gyro": np.zeros((50, 3))})
    log = replace(log, signals={**log.signals, **base.signals})
    assert "velocity" in {t.kind for t in policy.contract.observation.terms}
    assert not [c for c in audit(policy, policy.contract, log, twin, (0, 0, 0)) if c.status == "fail"]
    (*_, told) = audit(policy, policy.contract, log, None, (0, 0, 0))
    assert told.status == "skip" and "Nothing in the log tells velocity" in told.sentence


def test_any_callable_with_a_contract_is_checked_in_a_line(go2):
    robot, good = go2
    result = gapless.check(lambda observation: good.policy(observation), robot, contract=good.contract, seconds=1)
    assert result.framework == "a callable"
    with pytest.raises(BadInput, match="needs a contract"):
        gapless.check(lambda observation: observation, robot)


def test_the_command_writes_verdict_junit_and_page_and_exits_by_the_verdict(tmp_path, capsys):
    out, model = tmp_path / "out", str(POLICIES / "models" / "g1.xml")
    args = ["check", str(POLICIES / "unitree_rl_lab_g1"), "--robot", model, "--seconds", "2"]
    with pytest.raises(SystemExit) as exit_:
        main([*args, "--out", str(out), "--json"])
    assert exit_.value.code == 0
    assert json.loads(capsys.readouterr().out)["outcome"] == "pass"
    assert gapless.load(out).outcome == "pass"
    assert ElementTree.parse(out / "junit.xml").getroot().find("testsuite").get("name") == "observation to action"
    with pytest.raises(SystemExit) as exit_:
        main([*args, "--set", "joints.kp=1.0"])
    assert exit_.value.code == 1
    with pytest.raises(SystemExit) as exit_:
        main(["check", str(POLICIES / "playground_go1"), "--robot", model])
    assert exit_.value.code == 3
    with pytest.raises(SystemExit) as exit_:
        main(["check", str(POLICIES / "unitree_rl_lab_g1"), "--robot", str(POLICIES / "models" / "go2.xml")])
    assert exit_.value.code == 2
