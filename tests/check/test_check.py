"""Check: good policies pass and walk as at home, broken copies are named, logs are audited, any callable can be checked."""

import json
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

import gapless
from bench.check import copies, frames
from gapless.check import check, walk
from gapless.check.frames import frame_columns, predict
from gapless.check.network import asymmetry
from gapless.check.preflight import Subject, _by_physics
from gapless.cli import main
from gapless.errors import BadInput
from gapless.logs import Log
from gapless.policy import Observer, read_policy
from gapless.robots import load_robot
from tests.data import DATA, needs_data
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


def test_a_log_of_a_right_runtime_passes_and_of_a_wrong_one_is_named(go2):
    robot, good = go2
    right = check(good, robot, command=(0.5, 0, 0), seconds=2, log=log_of(good, robot))
    assert right.outcome == "pass", right.verdict().text
    assert right.evidence.endswith("a real log")
    gyro = log_of(good, robot, lambda name, values: -values if name == "ang_vel" else values)
    wrong = check(good, robot, command=(0.5, 0, 0), seconds=2, log=gyro)
    assert wrong.finding == "sign", wrong.verdict().text


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
