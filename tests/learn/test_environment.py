"""Worlds that play a task: rewards, ends of episodes, commands, pushes, and what a task may do wrong."""

import dataclasses

import mujoco
import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.learn.contract import build_contract
from gapless.learn.environment import Environment
from gapless.learn.presets import draw_from
from gapless.learn.task import Episode, joint_terms
from gapless.learn.tasks import task_of
from gapless.policy import Term, Timing
from gapless.twin import DC, Gains, Motor, Twin
from tests.learn.upright import Upright


@pytest.fixture(scope="module")
def twin():
    return Twin.load("quadruped")


def make(twin, task=None, n=8, belief=None, seed=0, **options):
    return Environment(twin, task or task_of("velocity", twin), n, belief, np.random.default_rng(seed), threads=1, **options)


def play(environment, steps, seed=3):
    rng = np.random.default_rng(seed)
    out = [environment.reset(spread=True)["policy"]]
    for _ in range(steps):
        step = environment.step(0.3 * rng.standard_normal((environment.n, 12)))
        out += [step.observation["policy"], step.observation["critic"], step.reward]
    return out


def test_the_same_seed_gives_the_same_bits_at_any_number_of_threads(twin):
    wide = draw_from("wide", twin)
    first = play(make(twin, belief=wide), 30)
    task = task_of("velocity", twin)
    again = play(Environment(twin, task, 8, wide, np.random.default_rng(0), threads=2), 30)
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(first[-1], play(make(twin, belief=wide, seed=1), 30)[-1])


def test_a_robot_told_to_stand_stands_and_its_episode_ends_in_time(twin):
    task = dataclasses.replace(task_of("velocity", twin), episode=Episode(seconds=1.0))
    environment = make(twin, task)
    environment.reset()
    environment.scene.command[:] = 0.0
    ends = []
    for k in range(60):
        step = environment.step(np.zeros((8, 12)))
        assert not step.failed.any()
        ends += [k] * int(step.timeout.sum())
        environment.scene.command[:] = 0.0
    assert ends == [49] * 8  # 50 periods of 0.02 s


def test_a_robot_on_its_back_has_fallen_and_starts_anew_on_its_feet(twin):
    environment = make(twin)
    environment.reset()
    environment.worlds.qpos[2, 3:7] = 0.0, 1.0, 0.0, 0.0
    step = environment.step(np.zeros((8, 12)))
    assert step.failed.tolist() == [i == 2 for i in range(8)]
    assert step.terms["fall"][2] < 0 == step.terms["fall"][3]
    assert environment.scene.up[2, 2] == pytest.approx(1.0)
    assert environment.scene.time[2] == 0.0
    assert step.observation["policy"][2, 5] == pytest.approx(-1.0)  # gravity points down again


def test_a_task_says_once_a_step_where_it_has_failed_and_its_metrics_are_those_of_the_end(twin):
    class Counting(Upright):
        asked = 0

        def done(self, scene):
            self.asked += 1
            return scene.up[:, 2] < 0.5

        def reward(self, scene):
            return {"fall": -1.0 * scene.failed}

        def metrics(self, scene):
            return {"up": scene.up[:, 2]}

    task = Counting()
    environment = make(twin, task)
    environment.reset()
    environment.worlds.qpos[2, 3:7] = 0.0, 1.0, 0.0, 0.0
    environment.worlds.qvel[4, 0] = 1e12
    step = environment.step(np.zeros((8, 12)))
    assert task.asked == 1
    assert step.terms["fall"][2] < 0 == step.terms["fall"][3]
    assert step.metrics["up"][2] == pytest.approx(-1.0, abs=0.1)  # on its back, and no longer on its feet again
    assert environment.scene.up[2, 2] == pytest.approx(1.0)
    assert np.isnan(step.metrics["up"][4])  # physics broke, which says nothing


def test_rewards_add_up_and_following_the_command_pays(twin):
    environment = make(twin)
    environment.reset()
    step = environment.step(np.zeros((8, 12)))
    np.testing.assert_allclose(step.reward, np.sum(list(step.terms.values()), axis=0))
    scene, task = environment.scene, environment.task
    scene.command[:] = np.column_stack([np.linspace(-0.5, 1.0, 8), np.zeros(8), np.zeros(8)])
    scene.velocity[:] = 0.0
    scene.velocity[:, 0] = 0.5
    paid = task.reward(scene)["velocity"]
    order = np.argsort(np.abs(scene.command[:, 0] - 0.5))
    assert (np.diff(paid[order]) < 0).all()


def test_feet_that_follow_the_clock_pay(twin):
    task, environment = task_of("velocity", twin), make(twin)
    environment.reset()
    scene = environment.scene
    scene.command[:] = 0.5, 0.0, 0.0
    for _ in range(6):
        scene.gait.advance(scene.command, {})
    assert (scene.gait.cycles(task.frequency) == 0.3).all()  # the first group stands, the second is in the middle of its swing
    scene.contact[:], scene.foot_height[:] = True, 0.0
    standing = task.reward(scene)
    lifted = np.array(task.lead) == 0.5
    assert lifted.tolist() == [False, True, True, False]  # diagonal pairs
    scene.contact[:, lifted], scene.foot_height[:, lifted] = False, task.clearance
    stepping = task.reward(scene)
    assert (stepping["gait"] > standing["gait"]).all()
    assert (stepping["swing"] > standing["swing"]).all()


def test_commands_stay_in_their_ranges_and_each_is_often_zero(twin):
    task, environment = task_of("velocity", twin), make(twin)
    drawn = task.command(environment.scene, np.arange(20000), np.random.default_rng(0))
    for column, (low, high) in zip(drawn.T, task.commands.values(), strict=True):
        assert low <= column.min() < 0.9 * low
        assert 0.9 * high < column.max() <= high
        assert 0.25 < (column == 0).mean() < 0.4
    assert 0.1 < (drawn == 0).all(axis=1).mean() < 0.15


def test_pushes_come_as_often_as_said_and_no_harder(twin):
    task = dataclasses.replace(task_of("velocity", twin), episode=Episode(push=0.6, push_every=0.2))
    environment, kicks = make(twin, task, n=16), []
    environment.reset()
    push = environment.worlds.push
    environment.worlds.push = lambda v, ids: (kicks.append(np.atleast_2d(v)), push(v, ids))[1]
    for _ in range(100):
        environment.step(np.zeros((16, 12)))
    speeds = np.linalg.norm(np.concatenate(kicks), axis=1)
    assert len(speeds) == pytest.approx(16 * 2.0 / 0.2, rel=0.2)
    assert 0.5 < speeds.max() <= 0.6


def test_the_critic_knows_the_world_and_the_policy_does_not(twin):
    wide = draw_from("wide", twin)
    environment = make(twin, belief=wide)
    before = {k: v.copy() for k, v in environment.reset().items()}
    environment._parameters[:, environment.quantities.index("contact.friction")] += 1.0
    for observer in (environment._observer, environment._truth):
        observer.reset()
    after = environment._observe()
    np.testing.assert_array_equal(before["policy"], after["policy"])
    assert (before["critic"] != after["critic"]).any(axis=1).all()


def test_a_policy_with_joints_in_another_order_drives_the_same_joints(twin):
    task = task_of("velocity", twin)
    own = build_contract(twin, task)
    order = np.random.default_rng(0).permutation(12)

    def turned(values):
        return tuple(values[i] for i in order) if isinstance(values, tuple) else values

    joints = dataclasses.replace(
        own.joints, **{f.name: turned(getattr(own.joints, f.name)) for f in dataclasses.fields(own.joints)}
    )
    action = dataclasses.replace(own.action, joints=joints.names, offset=turned(own.action.offset))
    ours, theirs = make(twin), make(twin, contract=dataclasses.replace(own, joints=joints, action=action))
    ours.reset(), theirs.reset()
    drawn = 0.3 * np.random.default_rng(1).standard_normal((8, 12))
    a, b = ours.step(drawn), theirs.step(drawn[:, order])
    np.testing.assert_array_equal(ours.worlds.qpos, theirs.worlds.qpos)
    np.testing.assert_array_equal(a.observation["policy"][:, 6:18][:, order], b.observation["policy"][:, 6:18])


def test_the_smallest_task_runs_on_any_floating_robot():
    environment = make(Twin.load("rover"), Upright(), n=4)
    environment.reset()
    for _ in range(9):
        step = environment.step(np.zeros((4, 2)))
        assert not (step.failed | step.timeout).any()
    step = environment.step(np.zeros((4, 2)))
    assert step.timeout.all()
    np.testing.assert_allclose(step.reward, 0.02, rtol=1e-3)


def test_a_privileged_term_for_the_policy_is_an_error(twin):
    class Cheat(Upright):
        def terms(self, twin):
            return (*joint_terms(twin), Term("height", "height", 1, provenance="privileged"))

    with pytest.raises(BadInput, match="term 'height' is privileged, and a robot cannot measure it: give it to the critic"):
        make(twin, Cheat())


def test_nan_in_a_reward_names_the_term_and_the_world(twin):
    class Broken(Upright):
        def reward(self, scene):
            return {"fine": np.ones(scene.n), "speed": np.where(np.arange(scene.n) == 5, np.nan, 1.0)}

    environment = make(twin, Broken())
    environment.reset()
    with pytest.raises(BadInput, match="reward term 'speed' is nan in world 5"):
        environment.step(np.zeros((8, 12)))


def test_rewards_and_commands_of_the_wrong_shape_are_named(twin):
    class Wide(Upright):
        def reward(self, scene):
            return {"speed": scene.velocity}

    environment = make(twin, Wide())
    environment.reset()
    with pytest.raises(BadInput, match=r"reward term 'speed' has shape \(8, 3\); expected one number a world"):
        environment.step(np.zeros((8, 12)))

    class Asks(Upright):
        def command(self, scene, ids, rng):
            return np.zeros((len(ids), 2))

    with pytest.raises(BadInput, match=r"the task's command has shape \(8, 2\); expected \(8, 0\)"):
        make(twin, Asks()).reset()


def test_a_world_whose_physics_breaks_ends_without_a_reward(twin):
    environment = make(twin)
    environment.reset()
    environment.worlds.qvel[4, 0] = 1e12
    step = environment.step(np.zeros((8, 12)))
    assert step.failed[4]
    assert step.reward[4] == 0.0
    assert np.isfinite(step.observation["critic"]).all()


def test_a_world_whose_physics_breaks_draws_its_parameters_once(twin):
    wide = draw_from("wide", twin)
    broke, ended = make(twin, belief=wide), make(twin, belief=wide)
    for environment in (broke, ended):
        environment.reset()
    broke.worlds.qvel[4, 0] = 1e12
    broke.step(np.zeros((8, 12)))
    ended.worlds.reset([4])
    np.testing.assert_array_equal(broke.worlds.values, ended.worlds.values)


@pytest.mark.parametrize(
    ("task", "robot", "sentence"),
    [
        ("velocity", "arm", "arm has no feet"),
        ("stand", "rover", "rover has no feet"),
        ("reach", "quadruped", "quadruped is not an arm"),
        ("drive", "biped", "biped is not a rover"),
        ("swing", "arm", "arm is not a pendulum"),
        ("fly", "arm", "unknown task 'fly'"),
    ],
)
def test_a_robot_that_cannot_do_a_task_is_refused(task, robot, sentence):
    with pytest.raises(BadInput, match=sentence):
        task_of(task, Twin.load(robot))


def test_the_environment_needs_no_torch():
    import subprocess
    import sys

    code = "import sys, gapless.learn.environment, gapless.learn.course, gapless.learn.tasks; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_contract_names_the_frame_that_readings_are_in(twin):
    spec = twin.spec.copy()
    spec.site("imu").name = "elsewhere"
    without = dataclasses.replace(twin, spec=spec, model=spec.compile())
    frames = [build_contract(t, task_of("velocity", t)).conventions.imu_frame for t in (twin, without)]
    assert frames == ["imu", "base"]


def test_a_policys_filter_smooths_targets_from_the_second_period_of_an_episode_on(twin):
    contract = build_contract(twin, task_of("velocity", twin))
    filtered = dataclasses.replace(contract, action=dataclasses.replace(contract.action, filter=0.2))
    environment = make(twin, n=2, contract=filtered)
    environment.reset()
    told = []
    for action in (1.0, 0.0, 0.0):
        environment.step(np.full((2, 12), action))
        told.append(environment._command - contract.action.offset)
    np.testing.assert_allclose([t[0] for t in told], np.outer([0.25, 0.2, 0.16], np.ones(12)), atol=1e-12)


def test_a_policy_that_the_drives_cannot_follow_is_refused(twin):
    contract = build_contract(twin, task_of("velocity", twin))
    torque = dataclasses.replace(contract, action=dataclasses.replace(contract.action, kind="torque"))
    with pytest.raises(BadInput, match="the policy commands torque, but the drive of FL_hip takes position"):
        make(twin, contract=torque)
    hurried = dataclasses.replace(contract, timing=Timing(0.01))
    with pytest.raises(BadInput, match=r"runs every 0.01 s, but quadruped is commanded every 0.02 s"):
        make(twin, contract=hurried)


def test_a_task_may_ask_for_torque_readings_and_tell_the_critic_more(twin):
    class Feeling(Upright):
        def terms(self, twin):
            return (*super().terms(twin), Term("tau", "tau", 12))

        def privileged(self, scene):
            return scene.torque[:, :2]

    environment, plain = make(twin, Feeling(), n=3), make(twin, Upright(), n=3)
    environment.reset()
    plain.reset()
    for _ in range(5):
        step, other = environment.step(np.full((3, 12), 0.2)), plain.step(np.full((3, 12), 0.2))
    np.testing.assert_allclose(step.observation["policy"][:, -12:], environment.scene.torque, atol=1e-4)
    np.testing.assert_array_equal(step.observation["critic"][:, -2:], environment.scene.torque[:, :2].astype(np.float32))
    assert step.observation["critic"].shape[1] == other.observation["critic"].shape[1] + 12 + 2
    assert environment.mirror() is None
    assert plain.mirror() is not None


def test_a_reward_term_cannot_hide_how_often_robots_fall(twin):
    class Falling(Upright):
        def reward(self, scene):
            return {"falls": np.zeros(scene.n)}

    environment = make(twin, Falling())
    environment.reset()
    with pytest.raises(BadInput, match="cannot be called 'falls'"):
        environment.step(np.zeros((8, 12)))


def test_the_critic_of_an_arm_knows_where_its_tip_is():
    arm = Twin.load("arm")
    environment = Environment(arm, task_of("reach", arm), 4, draw_from("wide", arm), np.random.default_rng(0), threads=1)
    environment.reset()
    for _ in range(10):
        step = environment.step(np.zeros((4, 6)))
    terms = environment.contract.observation.terms
    at = sum(t.dim for t in terms[: next(i for i, t in enumerate(terms) if t.kind == "tip")])
    scale = next(t.scale for t in terms if t.kind == "tip")
    data = mujoco.MjData(arm.model)
    for i in range(4):
        data.qpos[:] = environment.worlds.qpos[i]
        mujoco.mj_kinematics(arm.model, data)
        np.testing.assert_allclose(step.observation["critic"][i, at : at + 3] / scale, data.site("grasp").xpos, atol=1e-6)


@pytest.mark.parametrize("motor", [None, Motor(no_load_speed=21.0), Motor(dc=DC(0.8, 0.3, 24.0))])
def test_the_contract_has_the_drives_gains_whatever_the_motor(motor):
    twin = Twin.load("quadruped", add=[motor] if motor else [])
    joints = build_contract(twin, task_of("velocity", twin)).joints
    np.testing.assert_allclose(joints.kp, 50.0)
    np.testing.assert_allclose(joints.kd, 1.5)
    assert joints.velocity_limit == ((21.0,) * 12 if motor and motor.no_load_speed else None)


def test_gains_in_shares_of_the_supply_are_not_given_as_torque():
    motor = Motor(dc=DC(0.8, 0.3, 24.0, voltage_control=True))
    twin = Twin.load("bench", add=[Gains(kp={"*": 2.0}, kd={"*": 0.0}), motor])
    contract = build_contract(twin, task_of("swing", twin))
    assert (contract.joints.kp, contract.joints.gain_unit) == ((2.0,), "duty")
