"""What drives were told besides a position: the fit of single joints takes it as the robot did."""

import numpy as np
import pytest

from gapless.identify import fit
from gapless.identify.per_joint.inverse_dynamics import trajectory_of
from gapless.identify.per_joint.kernel import gather, residuals
from gapless.identify.per_joint.problem import alike, problem
from gapless.logs import Log
from gapless.twin import Latency, Twin
from gapless.worlds import replay
from tests.identify.per_joint.drives import JOINTS, KD, KP, PERIOD, motion, recorded, twin


def errors(robot: Twin, log: Log) -> np.ndarray:
    """Root mean square errors of the joints alone at the nominal parameters [deg]."""
    c = trajectory_of(robot, log)
    out = []
    for j, joint in enumerate(JOINTS):
        p = problem(robot, joint, gather([c], j, 0.0, True, robot.model.opt.timestep))
        out.append(np.sqrt((residuals(p.data, p.base[None]) ** 2).mean()))
    return np.degrees(out)


def fed(seed: int = 1) -> dict[str, np.ndarray]:
    """A motion whose velocity and gravity are fed forward, and a torque besides that no model knows."""
    target = motion()
    velocity = np.gradient(target, PERIOD, axis=0)
    return {"q_cmd": target, "dq_cmd": velocity, "tau_ff": 9.81 * 0.3 * np.sin(target) + 0.5 * motion(seed)}


def test_a_joint_alone_takes_feed_forward_as_the_drive_does():
    log = recorded(fed())
    assert errors(twin(), log).max() < 0.01
    without = Log({s: log[s] for s in ("q", "q_cmd")}, log.joints)
    assert errors(twin(), without).min() > 1.0
    assert np.degrees(replay(twin(), log).rmse("q")).max() < 0.01


def test_feed_forward_does_not_bias_a_fit():
    log = recorded(fed(), kp=KP * [1.3, 0.8], kd=KD * [0.8, 1.2], delay=(0.01, 0.01))
    found = fit(twin(), [log])
    for name, truth in zip([f"gains.kp/{j}" for j in JOINTS], KP * [1.3, 0.8], strict=True):
        assert found.values[found.twin.space.names.index(name)] == pytest.approx(truth, rel=0.03), name
    assert found.values[found.twin.space.names.index("latency.action")] == pytest.approx(0.01, abs=0.001)
    assert np.degrees(found.heldout.fit) < 0.05


@pytest.mark.parametrize("way", ["meta by joint", "meta", "signals"])
def test_gains_by_joint_are_those_of_the_log(way):
    target = motion()
    factors = np.ones((len(target), 2)) * ([2.0, 0.5] if way == "meta by joint" else [1.5, 1.5 * KP[0] / KP[1]])
    if way == "signals":  # and they change on the way
        factors = np.where(np.arange(len(target))[:, None] < len(target) / 2, [2.0, 0.5], [0.7, 1.6])
    told = {"q_cmd": target, "kp": factors, "kd": factors[:, ::-1]}
    kp, kd = KP * factors[0], KD * factors[0, ::-1]
    meta = {}
    if way == "meta by joint":
        meta = {"kp": dict(zip(JOINTS, kp, strict=True)), "kd": dict(zip(JOINTS, kd, strict=True))}
    elif way == "meta":
        told["kd"] = np.ones_like(factors)
        meta = {"kp": float(kp[0])}
    log = recorded(told, logged=("kp", "kd") if way == "signals" else (), meta=meta)
    assert errors(twin(), log).max() < 0.01
    assert np.degrees(replay(twin(), log).rmse("q")).max() < 0.01
    assert errors(twin(), Log({s: log[s] for s in ("q", "q_cmd")}, log.joints)).max() > 1.0


def test_a_drive_with_no_stiffness_still_gives_the_torque_that_is_fed_forward():
    told = fed() | {"kp": np.zeros((len(motion()), 2)), "kd": np.ones((len(motion()), 2))}
    log = recorded(told, logged=("kp", "kd"))
    assert np.degrees(replay(twin(), log).rmse("q")).max() < 0.01


def test_buses_of_different_delay_are_fitted_each_by_its_joints():
    robot = twin(Latency(buses={"left": "left_*", "right": "right_*"}))
    assert alike(robot) == [[0], [1]]
    log = recorded({"q_cmd": motion()}, delay=(0.005, 0.0175))
    found = fit(robot, [log])
    delays = [found.values[found.twin.space.names.index(f"latency.action/{bus}")] for bus in ("left", "right")]
    assert delays == pytest.approx([0.005, 0.0175], abs=0.001)
    assert np.degrees(found.heldout.fit) < 0.05
