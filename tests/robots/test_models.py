"""The built-in robots behave like the machines they stand for."""

import math

import mujoco
import numpy as np
import pytest

from gapless.robots import BUILT_IN, RobotModel, home_data, limb_of, limbs_of, load_robot

FREE = ("rover", "quadruped", "biped")


@pytest.fixture(params=BUILT_IN)
def robot(request: pytest.FixtureRequest) -> RobotModel:
    return load_robot(request.param)


def without_base_motion(robot: RobotModel) -> mujoco.MjSpec:
    """The robot's spec with its base held in the air and no keyframes."""
    spec = robot.spec.copy()
    for element in [*spec.keys, *(j for j in spec.joints if j.type == mujoco.mjtJoint.mjJNT_FREE)]:
        spec.delete(element)
    spec.body(robot.base).pos = [0, 0, 2]
    return spec


def test_nothing_about_a_built_in_robot_is_assumed(robot):
    assert robot.warnings == ()


def test_every_driven_joint_has_one_actuator_of_its_name(robot):
    actuators = tuple(robot.model.actuator(i).name for i in range(robot.model.nactuator))
    assert actuators == robot.joints


def test_every_robot_is_commanded_at_50_hz_and_has_what_a_scene_needs(robot):
    assert robot.control_dt == pytest.approx(0.02)
    assert robot.model.geom("floor").id >= 0
    assert robot.model.camera("side").id >= 0
    assert robot.model.key("home").id >= 0
    assert robot.model.nlight


@pytest.mark.parametrize(
    ("name", "low", "high"),  # [kg]
    [
        ("bench", 0.4, 0.7),
        ("pendulum", 1.0, 1.3),
        ("arm", 0.5, 0.8),
        ("rover", 0.9, 1.1),
        ("quadruped", 12, 15),
        ("biped", 28, 33),
    ],
)
def test_mass_is_that_of_the_class(name, low, high):
    assert low < load_robot(name).mass < high


@pytest.mark.parametrize("name", FREE)
def test_a_free_robot_has_an_imu_and_feet(name):
    robot = load_robot(name)
    assert robot.floating and robot.base == "base"
    assert robot.model.site("imu").bodyid[0] == robot.model.body("base").id
    assert len(robot.feet) == {"rover": 2, "quadruped": 4, "biped": 2}[name]


def test_bench_swings_with_the_period_of_a_physical_pendulum():
    model = load_robot("bench").model
    model.dof_damping[:] = model.dof_frictionloss[:] = 0
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_ACTUATION)
    model.opt.timestep = 0.0005
    data = mujoco.MjData(model)
    data.qpos[0] = 0.02
    crossings = []
    for _ in range(8000):
        before = data.qpos[0]
        mujoco.mj_step(model, data)
        if before > 0 >= data.qpos[0]:
            crossings.append(data.time - model.opt.timestep * data.qpos[0] / (data.qpos[0] - before))
    # A 0.5 kg cylinder of radius 26 mm about its own axis at 150 mm, and a 30 g bar of 14 x 156 mm centred at 72 mm.
    inertia = 0.5 * (0.15**2 + 0.026**2 / 2) + 0.03 * (0.072**2 + (0.014**2 + 0.156**2) / 12) + 0.028
    torque = 9.81 * (0.5 * 0.15 + 0.03 * 0.072)
    period = 2 * math.pi * math.sqrt(inertia / torque)
    assert np.diff(crossings).mean() == pytest.approx(period, rel=1e-3)


def test_bench_sags_by_load_over_gain():
    model = load_robot("bench").model
    model.dof_frictionloss[:] = 0
    data = mujoco.MjData(model)
    data.ctrl[0] = math.pi / 2
    mujoco.mj_step(model, data, 2000)
    sag = math.pi / 2 - data.qpos[0]
    load_torque = 9.81 * (0.5 * 0.15 + 0.03 * 0.072) * math.sin(data.qpos[0])
    assert sag == pytest.approx(load_torque / 17.8, rel=1e-3)
    assert load_torque < model.actuator_forcerange[0, 1]


def test_the_pendulum_must_swing_because_its_shoulder_cannot_hold_its_links_out():
    model = load_robot("pendulum").model
    data = mujoco.MjData(model)
    data.qpos[0] = math.pi / 2
    mujoco.mj_forward(model, data)
    gravity = 9.81 * (0.5235 * 0.2 + 0.6256 * (0.2 + 0.2557))
    assert abs(data.qfrc_bias[0]) == pytest.approx(gravity, rel=1e-6)
    assert model.actuator_forcerange[0, 1] < gravity
    assert model.actuator_forcerange[1, 1] > 9.81 * 0.6256 * 0.2557  # the elbow can lift its own


def test_dry_friction_sticks_below_its_limit_and_slips_above(robot):
    model = without_base_motion(robot).compile()
    model.opt.gravity[:] = 0
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_ACTUATION | mujoco.mjtDisableBit.mjDSBL_LIMIT)
    data = mujoco.MjData(model)
    data.qfrc_applied[:] = 0.9 * model.dof_frictionloss
    mujoco.mj_step(model, data, 100)
    before = data.qpos.copy()
    mujoco.mj_step(model, data, 200)
    assert abs(data.qpos - before).max() < 1e-4 * 200 * model.opt.timestep  # 1e-4 rad/s
    data.qfrc_applied[:] = 2 * model.dof_frictionloss
    mujoco.mj_step(model, data, 200)
    assert abs(data.qpos - before).min() > 0.01


@pytest.mark.parametrize(("name", "height"), [("quadruped", 0.287), ("biped", 0.769)])
@pytest.mark.parametrize("gain", [1.0, 0.85])
def test_legged_robots_stand_on_their_servos_alone(name, height, gain):
    model = load_robot(name).model
    model.actuator_gainprm[:] *= gain
    model.actuator_biasprm[:] *= gain
    data = home_data(model)
    mujoco.mj_step(model, data, round(8 / model.opt.timestep))
    tilt = math.acos(data.body("base").xmat[8])
    assert data.qpos[2] > 0.88 * height
    assert tilt < math.radians(3.5)
    assert abs(data.qvel).max() < 0.02


@pytest.mark.parametrize(("name", "left", "right"), [("quadruped", "L_", "R_"), ("biped", "left_", "right_")])
def test_left_and_right_are_mirror_images(name, left, right):
    model = load_robot(name).model
    lefts = [model.body(b).name for b in range(model.nbody) if left in model.body(b).name]
    assert lefts
    for body in lefts:
        one, other = model.body(body), model.body(body.replace(left, right))
        assert one.mass == other.mass
        np.testing.assert_allclose(one.inertia, other.inertia, rtol=1e-6)
        np.testing.assert_allclose(one.pos, other.pos * [1, -1, 1], atol=1e-12)
        np.testing.assert_allclose(one.ipos, other.ipos * [1, -1, 1], atol=1e-9)


@pytest.mark.parametrize("name", FREE)
def test_only_feet_and_trunk_touch_and_only_the_floor(name):
    robot = load_robot(name)
    model, rng = robot.model, np.random.default_rng(1)
    touched: set[str] = set()
    data = mujoco.MjData(model)
    for _ in range(5):
        tumble(robot, data, rng, lambda: touched.update(*contacts(model, data)))
    assert touched <= {"floor", "trunk", "caster", *robot.feet}


def test_no_tumble_overflows_the_arena(robot):
    data, rng = mujoco.MjData(robot.model), np.random.default_rng(2)
    for _ in range(5):
        tumble(robot, data, rng)
    assert data.maxuse_arena < robot.model.narena / 4
    assert not any(warning.number for warning in data.warning)


def contacts(model, data):
    pairs = [{model.geom(int(g)).name for g in contact.geom} for contact in data.contact]
    assert all("floor" in pair for pair in pairs)
    return pairs


def tumble(robot, data, rng, watch=lambda: None):
    """Throw the robot for 1 s with random commands."""
    mujoco.mj_resetDataKeyframe(robot.model, data, 0)
    if robot.floating:
        data.qpos[2] += 0.2
        data.qpos[3:7] = rng.standard_normal(4)
    data.qvel[:] = 3 * rng.standard_normal(robot.model.nv)
    for _ in range(50):
        data.ctrl[:] = rng.uniform(-3, 3, robot.model.nu)
        mujoco.mj_step(robot.model, data, robot.substeps)
        watch()


@pytest.mark.parametrize(("name", "held"), [("quadruped", False), ("quadruped", True), ("arm", False), ("rover", False)])
def test_a_limb_is_what_hangs_on_the_base_or_on_the_ground(name, held):
    robot = load_robot(name)
    model = without_base_motion(robot).compile() if held else robot.model
    first = {"quadruped": lambda j: f"{j[:2]}_hip", "arm": lambda j: "shoulder_pan", "rover": lambda j: j}[name]
    assert limbs_of(model) == {j: model.joint(first(j)).bodyid[0] for j in robot.joints}
    base = model.body(robot.base).id
    assert limb_of(model, base) == base
