"""Estimates from readings alone, against the truth."""

import subprocess
import sys

import mujoco
import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.learn import Environment, build_contract, task_of
from gapless.policy import Estimator
from gapless.twin import Twin, defaults


def test_the_tip_of_an_arm_is_where_the_engine_has_it():
    arm = Twin.load("arm")
    estimator = Estimator(arm, build_contract(arm, task_of("reach", arm)))
    q = np.random.default_rng(0).uniform(-1.2, 1.2, (10, 6))
    found = estimator({"q": q, "dq": np.zeros_like(q)})["tip"]
    data = mujoco.MjData(arm.model)
    for i in range(10):
        data.qpos[[d.qpos for d in arm.drives]] = q[i]
        mujoco.mj_kinematics(arm.model, data)
        np.testing.assert_allclose(found[i], data.site("grasp").xpos, atol=1e-12)


def test_a_walking_robot_knows_about_how_fast_it_goes():
    quadruped = Twin.load("quadruped")
    environment = Environment(quadruped, task_of("velocity", quadruped), 8, None, np.random.default_rng(0), threads=1)
    environment.reset()
    environment.worlds.push([0.3, 0.1, 0.0])
    for _ in range(3):
        environment.step(np.zeros((8, 12)))
    estimate = environment._estimate(environment.worlds.readings)["velocity"]
    speed = np.linalg.norm(environment.scene.velocity[:, :2], axis=1)
    assert speed.min() > 0.05
    assert np.linalg.norm(estimate[:, :2] - environment.scene.velocity[:, :2], axis=1).mean() < 0.4 * speed.mean()


def test_a_robot_without_legs_has_no_such_estimate():
    quadruped, rover = Twin.load("quadruped"), Twin.load("rover")
    contract = build_contract(quadruped, task_of("velocity", quadruped))
    with pytest.raises(BadInput, match="rover has no feet"):
        Estimator(rover, contract)


@pytest.mark.parametrize("axis", [1, 2, 3])
def test_an_imu_that_is_turned_in_the_base_tells_the_same(axis):
    turned = Twin.load("quadruped").spec.copy()
    site = turned.site("imu")
    site.quat = np.cos(0.4) * np.eye(4)[0] + np.sin(0.4) * np.eye(4)[axis]
    estimates = []
    twins = [Twin.load("quadruped"), Twin.build(turned, defaults(), 0.02, "turned")]
    for twin in twins:
        environment = Environment(twin, task_of("velocity", twin), 4, None, np.random.default_rng(0), threads=1)
        environment.reset()
        environment.worlds.push([0.3, 0.1, 0.0])
        for _ in range(5):
            environment.step(np.zeros((4, 12)))
        estimates.append(environment._estimate(environment.worlds.readings)["velocity"])
        # left and right change places in its axes only where it is turned about the axis between them
        assert (environment.mirror() is None) == (twin is twins[1] and axis != 2)
    assert np.abs(estimates[0]).max() > 0.05
    np.testing.assert_allclose(*estimates, atol=1e-9)


def test_a_robots_runtime_needs_no_torch_and_nothing_of_learn():
    code = (
        "import sys, numpy as np\n"
        "from gapless.policy import Estimator, Gait, Observer, load_policy, targets\n"
        "from gapless.policy import Action, Contract, Joints, Observation, Term, Timing\n"
        "from gapless.robots import load_robot\n"
        "robot = load_robot('quadruped')\n"
        "term = Term('velocity', 'velocity', 3, provenance='estimated')\n"
        "home = tuple(robot.home[7:])\n"
        "contract = Contract(Joints(robot.joints, home), Action('position', robot.joints, 0.25, home),\n"
        "                    Observation((term,)), Timing(0.02))\n"
        "readings = {'q': robot.home[None, 7:], 'dq': np.zeros((1, 12)), 'gyro': np.zeros((1, 3))}\n"
        "readings['quat'] = np.array([[1.0, 0, 0, 0]])\n"
        "command, action = np.zeros((1, 0)), np.zeros((1, 12))\n"
        "readings |= Estimator(robot, contract)(readings)\n"
        "seen = Observer(contract, 1)(readings, command, action, Gait(contract, 1))\n"
        "assert (seen == 0).all() and targets(contract, action).shape == (1, 12)\n"
        "assert not {'torch', 'onnx', 'gapless.learn', 'gapless.worlds'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
