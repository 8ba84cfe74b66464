"""Left and right change places: a mirrored robot under mirrored actions goes the mirrored way."""

import dataclasses

import numpy as np
import pytest

from gapless.learn import mirror
from gapless.learn.environment import Environment
from gapless.learn.presets import draw_from
from gapless.learn.run import plan_run
from gapless.learn.tasks import task_of
from gapless.twin import Twin


@pytest.mark.parametrize("teacher", [False, True])
@pytest.mark.parametrize("robot", ["quadruped", "biped"])
def test_the_mirrored_robot_goes_the_mirrored_way(robot, teacher):
    """With a teacher also one of which each part differs, and whose mirror image is told the mirror of what it is told."""
    run = plan_run("velocity", robot, preset="wide" if teacher else "none", teacher=teacher, history=2)
    twin, task, belief = run.build()
    contract = run.contract(twin, task, belief)
    environment = Environment(twin, task, 2, belief, np.random.default_rng(0), 1, contract)
    environment.reset()
    if teacher:
        names, values = environment.worlds.belief.space.names, environment.worlds.values[0].copy()
        assert names == contract.context.names
        still = [i for i, n in enumerate(names) if n.startswith("sensors.") or n in ("latency.jitter", "latency.drop")]
        values[still] = 0.0
        image = mirror.context(contract.context, twin, mirror.joints(twin), belief.space)
        environment.worlds.write(np.stack([values, image(values)]))
        environment._parameters[:] = environment._shown(np.arange(2))
    policy, critic, action = environment.mirror()
    worlds, scene = environment.worlds, environment.scene
    rng = np.random.default_rng(1)
    # world 1 starts as the mirror image of world 0, in state and command, and half a cycle later where there is a gait
    scene.gait._periods[1] = 0.5 / task.frequency / twin.control_dt
    qpos, qvel = worlds.qpos[0].copy(), worlds.qvel[0].copy()
    qpos[4:7] = 0.02, 0.03, 0.01
    qpos[3:7] /= np.linalg.norm(qpos[3:7])
    qvel[:6] = 0.1, 0.2, 0.0, 0.3, 0.1, -0.2
    other, faster = qpos.copy(), qvel.copy()
    other[1], other[4], other[6] = -qpos[1], -qpos[4], -qpos[6]
    other[7:] = twin.model.key_qpos[0][7:] + action(qpos[7:] - twin.model.key_qpos[0][7:])
    faster[[1, 3, 5]] *= -1
    faster[6:] = action(qvel[6:])
    worlds.reset(qpos=np.stack([qpos, other]), qvel=np.stack([qvel, faster]), redraw=not teacher)
    scene.command[0] = 0.4, 0.2, -0.5
    scene.command[1] = 0.4, -0.2, 0.5
    for observer in (environment._observer, environment._truth):
        observer.reset()
    environment._next_push[:] = environment._next_command[:] = environment._end[:] = np.inf
    for _ in range(12):
        drawn = 0.5 * rng.standard_normal(len(twin.joints))
        step = environment.step(np.stack([drawn, action(drawn)]))
        seen, known = step.observation["policy"], step.observation["critic"]
        told = len(contract.context.names) if teacher else 0  # whose ranges are drawn, and so the same only to a percent
        plain = slice(0, len(seen[0]) - told)
        np.testing.assert_allclose(seen[1][plain], policy(seen[0])[plain], atol=2e-4)
        np.testing.assert_allclose(seen[1], policy(seen[0]), atol=2e-2 if teacher else 2e-4)
        np.testing.assert_allclose(known[1], critic(known[0]), atol=2e-2 if teacher else 2e-3)


def test_twice_mirrored_is_as_before():
    twin = Twin.load("quadruped")
    environment = Environment(twin, task_of("velocity", twin), 4, draw_from("wide", twin), np.random.default_rng(0), threads=1)
    observation = environment.reset()
    for part, values in zip(environment.mirror(), (*observation.values(), np.arange(24.0).reshape(2, 12)), strict=True):
        np.testing.assert_array_equal(part(part(values)), values)


def test_a_robot_that_is_not_symmetric_has_no_mirror():
    assert mirror.joints(Twin.load("arm")) is None


def test_ranges_that_differ_between_left_and_right_have_no_mirror():
    run = plan_run("velocity", "quadruped", teacher=True)
    twin, task, belief = run.build()
    told = run.contract(twin, task, belief).context
    high = [2 * h if name == "gains.kp/FL_hip" else h for name, h in zip(told.names, told.high, strict=True)]
    uneven = dataclasses.replace(told, high=tuple(high))
    assert mirror.context(uneven, twin, mirror.joints(twin), belief.space) is None
