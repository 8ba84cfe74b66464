"""A curriculum of force: what pulls, how it grows, and who sees it."""

import mujoco
import numpy as np
import pytest

from gapless.adapt import Curriculum, Pulled, train_forces
from gapless.adapt.forces import EPISODES, FIRST, HOLDS, STEP, largest, pulled_link
from gapless.learn import build_contract, plan_run, task_of
from gapless.policy import load_policy
from gapless.twin import Twin
from tests.adapt import made

pytestmark = pytest.mark.xdist_group("training")


def pulled(robot, task, n=6, scale=1.0, moves=False):
    twin = Twin.load(robot)
    return Pulled(twin, task_of(task, twin), n, None, np.random.default_rng(0), 1, curriculum=Curriculum(scale, moves))


def test_the_force_acts_on_the_hand_as_it_is_stated_and_changes_slowly():
    environment = pulled("arm", "reach")
    environment.reset()
    body, seen = environment.twin.model.body(pulled_link(environment.twin)).id, []
    for _ in range(100):
        environment.step(np.zeros((6, 6)))
        assert environment.worlds.state("xfrc_applied")[:, body, :3] == pytest.approx(environment.force)
        seen.append(environment.force.copy())
    steps = np.abs(np.diff([np.zeros((6, 3)), *seen], axis=0)).max(axis=(0, 1))
    assert (np.abs(seen) <= environment.most + 1e-9).all() and np.abs(seen).max() > 0.5 * environment.most.min()
    assert (steps <= 0.05 * environment.most + 1e-9).all()  # towards a force that was zero before
    assert (np.abs(seen[-1]).max(axis=1) == 0).any() or len({tuple(f) for f in seen[-1]}) == 6  # each robot has its own


def test_motors_hold_the_largest_force():
    twin = Twin.load("arm")
    model, data, force = twin.model, mujoco.MjData(twin.model), largest(twin)
    data.qpos[:] = twin.home
    mujoco.mj_forward(model, data)
    weight = data.qfrc_bias.copy()
    body = model.body(pulled_link(twin)).id
    for axis in range(3):
        torque = np.zeros(model.nv)
        pull = np.zeros(3)
        pull[axis] = force[axis]
        mujoco.mj_applyFT(model, data, pull, np.zeros(3), data.xipos[body], body, torque)
        limits = np.array([j.torque_limit for j in twin.joint_table])
        assert (np.abs(torque) <= HOLDS * (limits - np.abs(weight)) + 1e-9).all()
    assert largest(Twin.load("quadruped")) == pytest.approx(np.full(3, 0.2 * 9.81 * Twin.load("quadruped").mass))


def test_the_critic_sees_the_force_and_the_actor_does_not():
    for robot, task in (("arm", "reach"), ("quadruped", "stand")):
        environment = pulled(robot, task)
        plain = build_contract(environment.twin, environment.task)
        assert environment.contract.width == plain.width
        environment.reset()
        for _ in range(30):
            step = environment.step(np.zeros((6, len(environment.twin.joints))))
        assert environment.critic_columns[-3:] == ("force.0", "force.1", "force.2")
        shown = step.observation["critic"][:, -3:]
        assert len(environment.critic_columns) == step.observation["critic"].shape[1]
        size = np.linalg.norm(environment.force, axis=1)
        assert np.linalg.norm(shown * environment.most, axis=1) == pytest.approx(size, rel=1e-4)


def test_forces_grow_with_success_alone():
    curriculum = Curriculum()
    curriculum.ended(np.ones(EPISODES))
    assert curriculum.scale == pytest.approx(FIRST + STEP)
    curriculum.ended(np.arange(EPISODES) % 10 < 7)  # neither
    assert curriculum.scale == pytest.approx(FIRST + STEP)
    curriculum.ended(np.zeros(EPISODES // 2))
    assert curriculum.scale == pytest.approx(FIRST + STEP)  # not enough to tell
    curriculum.ended(np.zeros(EPISODES // 2))
    curriculum.ended(np.zeros(EPISODES))
    assert curriculum.scale == pytest.approx(FIRST)  # and no further
    for _ in range(100):
        curriculum.ended(np.ones(EPISODES))
    assert curriculum.scale == 1.0
    fixed = Curriculum(0.3, moves=False)
    fixed.ended(np.ones(EPISODES))
    assert fixed.scale == 0.3


def test_robots_that_fall_count_as_failures():
    environment = pulled("quadruped", "stand", 8, FIRST, moves=True)
    environment.reset()
    for _ in range(200):
        step = environment.step(np.tile([0.0, 6.0, 0.0] * 4, (8, 1)))
        if step.failed.any():
            break
    assert step.failed.any()
    assert environment.curriculum._seen == step.failed.sum() and environment.curriculum._won == 0
    assert (environment.force[step.failed] == 0).all()


def test_a_training_with_forces_leaves_a_policy_that_any_runtime_takes(tmp_path, monkeypatch):
    made.few(monkeypatch)
    monkeypatch.setattr("gapless.adapt.forces.UNSEEN", 4)
    run = plan_run("reach", "arm", settings={"iterations": 2, "worlds": 8, "steps": 8})
    scores = []
    train_forces(run, tmp_path / "f", lambda progress, best: scores.append(best), threads=1)
    assert len(scores) == 2
    contract = load_policy(tmp_path / "f").contract
    contract.must_run_on_a_robot()
    assert not [t for t in contract.observation.terms if t.provenance == "privileged"]
