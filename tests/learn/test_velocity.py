"""Velocity: its gait as a reference under the action, its errors, and how it starts with slow commands."""

import dataclasses

import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.learn import mirror
from gapless.learn.contract import build_contract
from gapless.learn.environment import Environment
from gapless.learn.tasks import task_of
from gapless.learn.tasks.velocity import leads
from gapless.policy import Gait, targets
from gapless.robots import legs_of
from gapless.twin import Twin
from tests.data import DATA


@pytest.fixture(scope="module")
def twin():
    return Twin.load("quadruped")


@pytest.fixture(scope="module")
def residual(twin):
    return task_of("velocity", twin, residual=True)


def test_a_residual_trots_at_2_75_hz_and_lifts_diagonal_feet_by_6_cm_in_turn(twin, residual):
    reference, legs = residual.episode.reference, legs_of(twin)
    assert reference.frequency == 2.75
    assert [t.frequency for t in residual.terms(twin) if t.kind == "clock"] == [2.75]  # what the policy sees is in step
    home = np.array(build_contract(twin, residual).joints.default_pos)
    q = home + np.array(reference.table)
    feet = legs.feet(q, 0 * q, np.tile([1.0, 0, 0, 0], (len(q), 1)))[0] - legs.home
    np.testing.assert_allclose(feet[:, :, :2], 0.0, atol=1e-5)
    front_left, front_right, rear_left, rear_right = feet[:, :, 2].T
    np.testing.assert_allclose(front_left, rear_right, atol=1e-5)
    np.testing.assert_allclose(front_right, rear_left, atol=1e-5)
    assert front_left.max() == pytest.approx(0.06, abs=1e-4)
    assert front_left.argmax() == 24  # where the reward wants that foot highest: three quarters into the cycle
    assert np.minimum(front_left, front_right).max() < 1e-5  # never all in the air


def test_a_residual_gait_is_its_own_mirror_image_half_a_cycle_later(twin, residual):
    table = np.array(residual.episode.reference.table)
    np.testing.assert_allclose(mirror.joints(twin)(table), np.roll(table, 16, axis=0), atol=2e-6)


def test_targets_follow_from_contract_clock_command_and_action_alone(twin, residual):
    environment = Environment(twin, residual, 5, None, np.random.default_rng(0), threads=1)
    contract = environment.contract
    environment.reset()
    rng, gait = np.random.default_rng(1), Gait(contract, 5)
    for _ in range(60):
        command, action = environment.scene.command.copy(), 0.3 * rng.standard_normal((5, 12))
        step = environment.step(action)
        expected = targets(contract, action, gait=gait, command=command)
        np.testing.assert_allclose(environment._command, expected, atol=1e-9)
        gait.advance(command, {})
        gait.reset(step.failed | step.timeout)
    assert np.ptp(environment._command - contract.action.offset) > 0.5  # the gait is there


def test_an_untrained_residual_trots_on_the_spot_without_falling(twin, residual):
    task = dataclasses.replace(residual, commands={"vx": (-1e-9, 1e-9), "vy": (0.0, 0.0), "yaw_rate": (0.0, 0.0)})
    environment = Environment(twin, task, 8, None, np.random.default_rng(0), threads=1)
    environment.hardness = 0.0
    environment.reset()
    highest, fell = np.zeros((8, 4)), False
    for _ in range(150):
        fell |= environment.step(np.zeros((8, 12))).failed.any()
        highest = np.maximum(highest, environment.scene.foot_height)
    assert not fell
    moving = (environment.scene.command != 0).any(axis=1)
    assert moving.any()
    front, rear = highest[moving, :2], highest[moving, :1:-1]  # a robot that leans on one foot of a pair lifts the other more
    assert (front + rear).min() > 0.03


def test_only_a_walk_of_position_drives_can_be_a_residual(twin):
    with pytest.raises(BadInput, match="stand has no gait that a residual could be added to; only velocity has"):
        task_of("stand", twin, residual=True)
    path = DATA / "policies/models/go2.xml"  # takes torques
    if path.exists():
        with pytest.raises(BadInput, match="state gains with --kp and --kd"):
            task_of("velocity", Twin.load(path), residual=True)


def test_metrics_are_the_errors_in_their_own_units(twin):
    task = task_of("velocity", twin)
    environment = Environment(twin, task, 2, None, np.random.default_rng(0), threads=1)
    environment.reset()
    scene = environment.scene
    scene.velocity[:] = [[0.3, 0.4, 9.0], [1.0, 0.0, 0.0]]
    scene.yaw_rate[:] = [0.5, -0.5]
    scene.command[:] = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.5]]
    found = task.metrics(scene)
    np.testing.assert_allclose(found["velocity_error"], [0.5, 0.0])
    np.testing.assert_allclose(found["yaw_error"], [0.5, 1.0])


def test_on_two_legs_the_policy_always_adds_to_a_gait_that_lifts_each_foot_by_6_cm():
    twin = Twin.load("biped")
    task, legs = task_of("velocity", twin), legs_of(twin)
    assert task == task_of("velocity", twin, residual=True)
    table = np.array(task.episode.reference.table)
    home = np.array(build_contract(twin, task).joints.default_pos)
    still = np.tile([1.0, 0.0, 0.0, 0.0], (len(table), 1))
    feet = legs.feet(home + table, 0 * table, still)[0] - legs.feet(home[None], 0 * home[None], still[:1])[0]
    np.testing.assert_allclose(feet[:, :, 2].max(axis=0), 0.06, atol=1e-3)
    assert not (feet[:, :, 2] > 1e-3).all(axis=1).any()  # one foot always stands


@pytest.mark.parametrize(
    ("feet", "lead"),
    [
        ([(0, 0.1), (0, -0.1)], (0.0, 0.5)),
        ([(0.2, 0.1), (0.2, -0.1), (-0.2, 0.1), (-0.2, -0.1)], (0.0, 0.5, 0.5, 0.0)),
        ([(0.3, 0.1), (0, 0.12), (-0.3, 0.1), (0.3, -0.1), (0, -0.12), (-0.3, -0.1)], (0.0, 0.5, 0.0, 0.5, 0.0, 0.5)),
    ],
    ids=["walk", "trot", "tripod"],
)
def test_neighbouring_feet_step_in_turn(twin, feet, lead):
    home = np.array([(x, y, 0.0) for x, y in feet])
    assert leads(dataclasses.replace(legs_of(twin), home=home)) == lead


def test_a_biped_that_is_told_to_stand_and_is_kicked_takes_steps():
    twin = Twin.load("biped")
    task = task_of("velocity", twin)
    quiet = dataclasses.replace(task.episode, start_q=0.0, start_dq=0.0)
    task = dataclasses.replace(task, still=1.0, episode=quiet)
    environment = Environment(twin, task, 2, None, np.random.default_rng(0), threads=1)
    environment.hardness = 0.0  # no kicks but this one
    environment.reset()
    walked = []
    for period in range(75):
        if period == 50:
            environment.worlds.push(np.array([[0.5, 0.0, 0.0]]), np.array([1]))
        environment.step(np.zeros((2, 12)))
        walked.append(task.swing(environment.scene)[1])
    assert not np.array(walked)[:, 0].any()
    assert not np.array(walked)[:50, 1].any()
    assert np.array(walked)[55:, 1].all()
