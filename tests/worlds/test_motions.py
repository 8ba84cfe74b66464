"""Motions: within limits, without a jump, different at every joint, and read from files."""

import dataclasses

import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.rotations import up_of
from gapless.twin import Twin, within_tolerance
from gapless.worlds import StandIn, Worlds, build_standin, draw_standin, record
from gapless.worlds.motions import SHAPES, plan


@pytest.mark.parametrize("robot", ["bench", "arm", "quadruped", "biped"])
@pytest.mark.parametrize("name", SHAPES)
def test_every_motion_stays_within_the_joints_limits(robot, name):
    twin = Twin.load(robot, in_air=robot in ("quadruped", "biped"))
    commands = plan(name, twin, 12.0, np.random.default_rng(0))
    assert commands.shape == (600, len(twin.joints))
    for i, d in enumerate(twin.drives):
        if twin.model.jnt_limited[d.joint]:
            low, high = twin.model.jnt_range[d.joint]
            assert low <= commands[:, i].min()
            assert commands[:, i].max() <= high
    if name == "stand":
        qpos, _ = twin.home, twin.home_command
        np.testing.assert_allclose(commands, np.tile([qpos[d.qpos] for d in twin.drives], (600, 1)), atol=0.3)
    else:
        assert (np.ptp(commands, axis=0) > 0.05).all()


def test_a_rich_motion_has_slow_and_fast_parts():
    twin = Twin.load("arm")
    commands = plan("rich", twin, 40.0, np.random.default_rng(0))
    speed = np.abs(np.diff(commands, axis=0))
    quarters = [speed[i * 500 : i * 500 + 490].max(axis=0) for i in range(4)]
    assert (quarters[2] < 0.2 * quarters[3]).all()  # triangle, square


@pytest.mark.parametrize("robot", ["quadruped", "biped"])
@pytest.mark.parametrize("name", SHAPES)
def test_a_robot_on_its_feet_stays_there(robot, name):
    twin = Twin.load(robot)
    n = 4
    worlds = Worlds(twin, n, within_tolerance(twin.space), np.random.default_rng(0))
    commands = np.stack([plan(name, twin, 20.0, np.random.default_rng(s)) for s in range(n)])
    for k in range(commands.shape[1]):
        worlds.step(commands[:, k])
    assert not worlds.failures
    _, x, y, _ = worlds.qpos[:, 3:7].T
    assert (np.degrees(np.arccos(1 - 2 * (x**2 + y**2))) < 30).all()
    if name != "stand":
        assert (np.ptp(commands, axis=1).mean(axis=0) > 0.01).all()


@pytest.mark.parametrize(("difficulty", "seed"), [("normal", 5), ("hard", 1)])
def test_a_robot_with_soft_drives_stays_on_its_feet_through_a_rich_motion(difficulty, seed):
    """Both have about 0.6 of the model's stiffness, and fell when their drives were not told to hold their weight."""
    spec = draw_standin("quadruped", difficulty, seed)
    robot = StandIn(dataclasses.replace(spec, motion_capture=True))
    log = record(robot, plan("rich", build_standin(spec), 20.0, np.random.default_rng(seed)))
    height, quat = log["base_pos"].values[:, 2], log["quat"].values
    assert height.min() > 0.6 * height[0]
    assert (up_of(quat)[:, 2] > np.cos(np.radians(45))).all()


def test_a_rich_motion_on_the_feet_is_still_rich():
    """Every joint moves in every part; the triangle is slow and the square wave jumps."""
    commands = plan("rich", Twin.load("quadruped"), 20.0, np.random.default_rng(0))
    parts = [commands[250 * k + 60 : 250 * k + 240] for k in range(4)]
    for part in parts:
        assert (np.ptp(part, axis=0) > 0.03).all()
    steps = [np.abs(np.diff(part, axis=0)).max(axis=0) for part in parts]
    assert steps[2].max() < 0.01
    assert np.median(steps[3]) > 0.05


def test_a_standing_robot_is_told_to_hold_its_weight():
    """With the drives' stiffness known, a robot that is told so stands as high as it was put there."""
    twin = Twin.load("quadruped")
    start, low = twin.home[2], {}
    for name, commands in {
        "home": np.tile(twin.home_command, (100, 1)),
        "stand": plan("stand", twin, 2.0, np.random.default_rng(0)),
    }.items():
        worlds = Worlds(twin, 1)
        for command in commands:
            worlds.step(command)
        low[name] = worlds.qpos[0, 2] / start
    assert low["home"] < 0.93
    assert low["stand"] > 0.96


def test_wheels_get_speeds_and_torque_drives_torques():
    rover = plan("steps", Twin.load("rover"), 5.0, np.random.default_rng(0))
    assert 1.0 < np.abs(rover).max() <= 3.0


def test_a_motion_from_a_file(tmp_path):
    twin = Twin.load("bench")
    path = tmp_path / "m.csv"
    joint = twin.joints[0]
    path.write_text(f"time,{joint}\n0,0.1\n0.05,0.2\n0.1,0.3\n")
    np.testing.assert_allclose(plan(str(path), twin, 1.0, np.random.default_rng(0))[:, 0], [0.1, 0.1, 0.1, 0.2, 0.2, 0.3, 0.3])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("time,servo\n", "needs a header|at least one row"),
        ("time,servoo\n0,1\n", "unknown joint"),
        ("time,servo\n0,1\n0,2\n", "time must rise"),
        ("time,servo\n0,nan\n", "finite"),
        ("time,servo\n0,x\n", "could not convert"),
    ],
)
def test_a_faulty_motion_file_is_one_sentence(text, message, tmp_path):
    path = tmp_path / "m.csv"
    path.write_text(text.replace("servo", Twin.load("bench").joints[0]))
    with pytest.raises(BadInput, match=message):
        plan(str(path), Twin.load("bench"), 1.0, np.random.default_rng(0))


def test_unknown_motions_and_lengths_are_refused():
    with pytest.raises(BadInput, match="unknown motion 'chrip'.*'chirp'"):
        plan("chrip", Twin.load("bench"), 1.0, np.random.default_rng(0))
    with pytest.raises(BadInput, match="between 0 and 36000"):
        plan("chirp", Twin.load("bench"), -1.0, np.random.default_rng(0))
    with pytest.raises(BadInput, match="shorter than a control period"):
        plan("chirp", Twin.load("bench"), 0.001, np.random.default_rng(0))
    with pytest.raises(BadInput, match="there is no such file"):
        plan("none.csv", Twin.load("bench"), 1.0, np.random.default_rng(0))


def test_a_motion_begins_at_home_where_home_is_at_a_limit(tmp_path):
    path = tmp_path / "gripper.xml"
    path.write_text(
        """<mujoco><worldbody><body><joint name="j" range="0 50"/><geom size="0.05"/></body></worldbody>
        <actuator><position joint="j" kp="5" kv="0.1"/></actuator></mujoco>"""
    )
    motion = plan("rich", Twin.load(path), 5.0, np.random.default_rng(0))
    assert motion[0] == 0.0 and np.abs(np.diff(motion[:20], axis=0)).max() < 0.1
    assert motion.max() > 0.4
