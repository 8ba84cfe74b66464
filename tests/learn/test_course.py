"""The course, on policies whose result is known beforehand."""

from functools import partial

import numpy as np
import pytest

from gapless.learn import course, enter
from gapless.learn.ground import on_terrain
from gapless.learn.run import Run, train
from gapless.learn.settings import PPOSettings
from gapless.learn.tasks import task_of
from gapless.learn.tasks.velocity import followed
from gapless.policy import load_policy
from gapless.twin import Motor, Twin

pytestmark = pytest.mark.xdist_group("training")  # two trainings at once are slower than one after the other


@pytest.fixture(scope="module")
def twin():
    return Twin.load("quadruped")


def still(observation):
    return np.zeros((len(observation), 12))


def test_a_robot_that_stands_still_errs_by_what_it_was_told(twin):
    result = course.run(twin, task_of("velocity", twin), still, None, np.random.default_rng(0), 1, False, 2.0, threads=1)
    assert len(result.fell) == 36
    assert not result.fell.any()
    np.testing.assert_allclose(result.velocity_error, np.hypot(result.command[:, 0], result.command[:, 1]), atol=0.02)
    np.testing.assert_allclose(result.yaw_error, np.abs(result.command[:, 2]), atol=0.02)
    summary = result.summary()
    assert summary["falls"] == 0.0
    assert summary["success"] == 1 / 36  # only where it was told to stand
    assert summary["roughness"] == 0.0
    assert 0.5 < summary["torque_margin"] < 1.0


def test_the_grid_is_that_of_the_field_and_every_robot_is_another(twin):
    from gapless.learn.presets import draw_from

    wide = draw_from("wide", twin)
    result = course.run(twin, task_of("velocity", twin), still, wide, np.random.default_rng(0), 6, True, 0.1, threads=1)
    assert len(result.fell) == 216
    assert len(np.unique(result.parameters, axis=0)) == 216
    assert np.unique(result.command[:, 0]).tolist() == [-0.5, 0.0, 0.5, 1.0]
    biped = Twin.load("biped")
    short = course.run(biped, task_of("velocity", biped), still, None, np.random.default_rng(0), 1, True, 0.1, threads=1)
    assert np.unique(short.command, axis=0).tolist() == [[x, 0.0, w] for x in (0.0, 0.3, 0.6) for w in (-0.5, 0.0, 0.5)]


def test_a_policy_that_throws_the_robot_over_falls_and_stays_out(twin):
    calls = []

    def mad(observation):
        return 8.0 * np.sign(np.random.default_rng(len(observation)).standard_normal((len(observation), 12)))

    mad.reset = calls.append
    result = course.run(twin, task_of("velocity", twin), mad, None, np.random.default_rng(0), 1, False, 2.0, threads=1)
    assert result.summary()["falls"] > 0.5
    assert sum(int(c.sum()) for c in calls[1:]) >= result.fell.sum()
    assert not result.success[result.fell].any()
    early = result.fell & (np.hypot(*result.command[:, :2].T) > 0)
    asked = np.hypot(*result.command[early, :2].T)
    assert (result.velocity_error[early] > 0.5 * asked).all()  # what falls errs on as if it stood, and does not count for less


def test_a_command_is_followed_within_a_tenth_of_the_largest_and_a_fifth_of_itself():
    commands = {"vx": (-0.7, 1.2), "vy": (-0.4, 0.4), "yaw_rate": (-1.0, 1.0)}
    asked = np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.3, 0.0], [0.0, 0.0, 0.8], [0.0, 0.0, 0.8]])
    mean = np.array([[0.69, 0.0, 0.0], [0.67, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.55], [0.0, 0.0, 0.53]])
    assert followed(asked, mean, commands).tolist() == [True, False, False, True, False]


def test_doing_nothing_runs_the_same_course_beside_a_policy(twin, tmp_path, monkeypatch):
    settings = PPOSettings(worlds=4, steps=4, iterations=1, hidden=(8,), epochs=1, minibatches=1)
    train(Run("velocity", "quadruped", "none", settings=settings), tmp_path, threads=1)
    short = partial(course.run, seconds=1.5)
    monkeypatch.setattr(course, "run", short)
    result = enter(tmp_path).judge(1, False, 1)
    alone = short(twin, task_of("velocity", twin), still, None, np.random.default_rng([1, 2]), 1, False, threads=1)
    assert result.idle == alone.summary()
    assert not result.verdict().good
    assert "doing nothing" in str(result)


def test_kicks_are_as_hard_as_said(twin):
    speeds = []

    def watch(environment):
        speeds.append(np.hypot(*environment.scene.velocity[:, :2].T))

    course.run(twin, task_of("velocity", twin), still, None, np.random.default_rng(0), 1, True, 2.6, threads=1, watch=watch)
    jump = speeds[125] - speeds[124]
    assert 0.3 < np.median(jump) < 0.55  # 0.5 m/s, less what the feet take up in a period
    assert np.max(speeds[120]) < 0.05


def test_a_task_that_says_what_success_is_must_hold_it_to_the_end():
    bench = Twin.load("bench")
    task = task_of("swing", bench)

    def up(observation):
        return np.ones((len(observation), 1))  # the servo is told pi

    def down(observation):
        return np.zeros((len(observation), 1))

    results = [course.run(bench, task, act, None, np.random.default_rng(0), 1, seconds=6.0, threads=1) for act in (up, down)]
    assert [r.success.mean() for r in results] == [1.0, 0.0]
    assert "velocity_error" not in results[0].summary()


def test_robots_start_on_ground_of_every_hardness_and_start_again_at_its_end(twin):
    on = on_terrain(twin, "rough", np.random.default_rng(0))
    resets, moved = [], []

    def watch(environment):
        if not moved:
            moved.append(environment.worlds.qpos[:, 1].copy())
            environment.worlds.qpos[7, 1] = 45.8  # the ground ends at 46 m

    def told(observation):
        return still(observation)

    told.reset = resets.append
    result = course.run(
        on, task_of("velocity", on), told, None, np.random.default_rng(0), 2, False, 1.5, threads=1, watch=watch
    )
    assert not result.fell.any()
    assert [np.flatnonzero(r).tolist() for r in resets[1:]] == [[7]]
    np.testing.assert_allclose(moved[0], 36 * result.hardness, atol=0.1)
    assert np.unique(result.hardness).size == 10
    flat = course.run(twin, task_of("velocity", twin), still, None, np.random.default_rng(0), 1, False, 0.1, threads=1)
    assert not flat.hardness.any()


def test_a_policy_with_a_memory_runs_one_course_after_another_as_if_it_were_the_first(twin, tmp_path):
    settings = PPOSettings(worlds=4, steps=4, iterations=1, hidden=(8,), epochs=1, minibatches=1, recurrent=4)
    train(Run("velocity", "quadruped", "none", settings=settings), tmp_path, threads=1)
    policy, task = load_policy(tmp_path), task_of("velocity", twin)

    def judged(draws):
        rng = np.random.default_rng(0)
        return course.run(twin, task, policy, None, rng, draws, False, 1.5, 1)

    first = judged(1)
    judged(2)
    np.testing.assert_array_equal(judged(1).velocity_error, first.velocity_error)


def test_the_margin_of_joint_speed_is_shown_where_the_motors_have_a_no_load_speed(twin):
    fast = Twin.load("quadruped", add=[Motor(no_load_speed=30.0)])
    result = course.run(fast, task_of("velocity", fast), still, None, np.random.default_rng(0), 1, True, 3.0, threads=1)
    np.testing.assert_allclose(result.speed_margin, 1 - result.speed / 30.0)
    assert 0 < result.summary()["speed_margin"] < 1
    plain = course.run(twin, task_of("velocity", twin), still, None, np.random.default_rng(0), 1, True, 0.1, threads=1)
    assert "speed_margin" not in plain.summary()
