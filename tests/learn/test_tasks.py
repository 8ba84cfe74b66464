"""The smaller tasks: what they ask can be done, and what they call success is one."""

import mujoco
import numpy as np
import pytest

from gapless.learn import course
from gapless.learn.environment import Environment
from gapless.learn.presets import draw_from
from gapless.learn.settings import ppo_settings
from gapless.learn.tasks import TASKS, task_of
from gapless.learn.tasks.reach import NEAR
from gapless.robots import differential_drive
from gapless.twin import Twin
from tests.data import DATA


def environment_of(name, robot, n=6, preset="none"):
    twin = Twin.load(robot)
    return Environment(twin, task_of(name, twin), n, draw_from(preset, twin), np.random.default_rng(0), threads=1)


@pytest.mark.parametrize(
    ("name", "robot"), [("velocity", "biped"), ("stand", "biped"), ("reach", "arm"), ("drive", "rover"), ("swing", "bench")]
)
def test_every_task_plays_in_wide_worlds(name, robot):
    environment = environment_of(name, robot, preset="wide")
    environment.reset(spread=True)
    rng, actions = np.random.default_rng(0), len(environment.twin.joints)
    for _ in range(25):
        step = environment.step(0.3 * rng.standard_normal((6, actions)))
    assert np.isfinite(step.reward).all()
    assert all(np.isfinite(group).all() for group in step.observation.values())
    assert ppo_settings(name, environment.twin).iterations > 0
    assert name in TASKS


def test_a_rover_whose_wheels_turn_as_its_geometry_says_drives_as_told():
    rover = Twin.load("rover")
    lengths, most = differential_drive(rover.model), rover.model.actuator_ctrlrange[0, 1]
    task = task_of("drive", rover)
    command = {}

    def act(observation):
        v, w = command["scene"].command.T
        left, right = v - w * lengths.track / 2, v + w * lengths.track / 2
        return np.column_stack([left, right]) / lengths.radius / most

    environment = Environment(rover, task, 6, None, np.random.default_rng(0), threads=1)
    command["scene"] = environment.scene
    observation = environment.reset()["policy"]
    for _ in range(100):
        observation = environment.step(act(observation)).observation["policy"]
    assert task.success(environment.scene).all()


def test_targets_of_an_arm_are_where_its_tip_can_be():
    arm = Twin.load("arm")
    task = task_of("reach", arm)
    assert task.tip == "site:grasp"
    environment = Environment(arm, task, 4, None, np.random.default_rng(0), threads=1)
    environment.reset()
    scene, data = environment.scene, mujoco.MjData(arm.model)
    environment.step(np.zeros((4, 6)))
    data.qpos[:] = environment.worlds.qpos[1]
    mujoco.mj_kinematics(arm.model, data)
    np.testing.assert_allclose(scene.point(task.tip)[1], data.site("grasp").xpos, atol=5e-3)  # a physics step old
    scene.command[:] = scene.point(task.tip) + [0.0, 0.0, 0.5 * NEAR]
    assert task.success(scene).all()
    scene.command[:, 2] += NEAR
    assert not task.success(scene).any()
    reach = np.linalg.norm(task.targets - [0, 0, 0.114], axis=1)  # from the shoulder
    assert task.targets[:, 2].min() > 0.04
    assert reach.max() < 0.42  # the arm's length


@pytest.mark.parametrize(
    ("name", "robot", "metrics"),
    [("reach", "arm", {"distance"}), ("drive", "rover", {"velocity_error", "yaw_error"}), ("swing", "bench", {"height"})],
)
def test_what_tasks_offer_to_watch_is_one_number_a_world(name, robot, metrics):
    environment = environment_of(name, robot)
    environment.reset()
    found = environment.task.metrics(environment.scene)
    assert found.keys() == metrics
    assert all(v.shape == (6,) and (v >= 0).all() for v in found.values())


def test_a_pendulum_is_up_when_it_stands_on_its_head():
    path = DATA / "double_pendulum/model/double_pendulum.xml"
    if not path.exists():
        pytest.skip("the public data is not here")
    twin = Twin.load(path)
    task = task_of("swing", twin)
    environment = Environment(twin, task, 3, None, np.random.default_rng(0), threads=1)
    environment.reset()
    pose = np.array([[0.0, 0.0], [np.pi, 0.0], [0.0, np.pi]])
    environment.worlds.reset(qpos=pose, qvel=np.zeros((3, 2)))
    environment.step(np.zeros((3, 2)))
    np.testing.assert_allclose(task.height(environment.scene), [0.0, 1.0, 0.56], atol=0.02)
    environment.worlds.reset(qpos=pose, qvel=np.array([[0.0, 0.0], [60.0, -60.0], [30.0, 0.0]]))
    step = environment.step(np.zeros((3, 2)))
    assert step.failed.tolist() == [False, True, False]  # whose joint spins away
    assert step.terms["overspeed"].tolist() == [0.0, pytest.approx(-100.0 * twin.control_dt), 0.0]


def test_a_quadruped_that_holds_its_home_pose_stands():
    quadruped = Twin.load("quadruped")
    task = task_of("stand", quadruped)
    result = course.run(
        quadruped, task, lambda o: np.zeros((len(o), 12)), None, np.random.default_rng(0), 1, False, 3.0, threads=1
    )
    assert result.success.all()
