"""The examples run, in small."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch

from gapless.learn.environment import Environment
from gapless.learn.gym import GymEnvironment
from gapless.learn.tasks import task_of
from gapless.twin import Twin

pytestmark = pytest.mark.xdist_group("training")  # two trainings at once are slower than one after the other

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_task_of_ones_own_pays_for_what_it_asks():
    task, twin = example("own_task").Crouch(), Twin.load("quadruped")
    environment = Environment(twin, task, 4, None, np.random.default_rng(0), threads=1)
    environment.reset()
    for _ in range(30):
        environment.step(np.zeros((4, 12)))
    scene = environment.scene
    scene.command[:, 0] = scene.position[:, 2] + [0.0, 0.01, 0.03, 0.1]
    assert (np.diff(task.reward(scene)["height"]) < 0).all()
    assert task.success(scene).tolist() == [True, True, False, False]


def test_an_algorithm_that_is_not_ours_learns_through_gymnasium(monkeypatch):
    module, twin = example("gymnasium_ppo"), Twin.load("bench")
    for name, value in (("WORLDS", 16), ("STEPS", 16), ("ITERATIONS", 2)):
        monkeypatch.setattr(module, name, value)
    environment = GymEnvironment(twin, task_of("swing", twin), 16, threads=1)
    torch.manual_seed(0)
    first = module.Agent(environment.single_observation_space.shape[0], 1)
    agent = module.train(environment)
    assert not torch.equal(agent.actor[0].weight, first.actor[0].weight)  # it has the same start, and moved
    assert all(torch.isfinite(p).all() for p in agent.parameters())
