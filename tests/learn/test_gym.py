"""The Gymnasium interface keeps Gymnasium's promises."""

import dataclasses

import gymnasium
import numpy as np
import pytest

from gapless.learn.gym import GymEnvironment
from gapless.learn.presets import draw_from
from gapless.learn.task import Episode
from gapless.learn.tasks import task_of
from gapless.twin import Twin


@pytest.fixture(scope="module")
def made():
    twin = Twin.load("bench")
    return GymEnvironment(twin, task_of("swing", twin), 5, draw_from("wide", twin), threads=1)


def test_observations_and_actions_are_in_their_spaces(made):
    observation, infos = made.reset(seed=0)
    assert isinstance(made, gymnasium.vector.VectorEnv)
    assert made.observation_space.contains(observation)
    assert infos["critic"].shape[0] == 5
    made.action_space.seed(0)
    for _ in range(20):
        observation, reward, terminated, truncated, infos = made.step(made.action_space.sample())
        assert made.observation_space.contains(observation)
        assert reward.shape == terminated.shape == truncated.shape == (5,)
        np.testing.assert_allclose(reward, sum(infos["terms"].values()))


def test_a_seed_gives_the_same_episode_again(made):
    def episode():
        made.reset(seed=7)
        return np.array([made.step(np.full((5, 1), 0.1, np.float32))[0] for _ in range(10)])

    np.testing.assert_array_equal(episode(), episode())


def test_episodes_are_cut_off_in_time_and_go_on(made):
    made.reset(seed=0)
    cut = np.array([made.step(np.zeros((5, 1), np.float32))[3] for _ in range(610)])
    assert np.flatnonzero(cut.all(axis=1)).tolist() == [299, 599]  # 6 s of 0.02 s


def test_a_wrapper_of_gymnasiums_own_works_on_it(made):
    wrapped = gymnasium.wrappers.vector.RecordEpisodeStatistics(made)
    wrapped.reset(seed=0)
    for _ in range(300):
        *_, infos = wrapped.step(np.zeros((5, 1), np.float32))
    assert infos["episode"]["l"].tolist() == [300] * 5


def test_the_last_observation_of_an_episode_is_what_a_longer_one_shows():
    twin = Twin.load("quadruped")
    task = dataclasses.replace(task_of("velocity", twin, history=3), episode=Episode(seconds=0.2, push=0.5))
    long = dataclasses.replace(task, episode=dataclasses.replace(task.episode, seconds=9.0))
    short, longer = (GymEnvironment(twin, t, 4, draw_from("wide", twin), threads=1) for t in (task, long))
    rng = np.random.default_rng(0)
    short.reset(seed=0)
    longer.reset(seed=0)
    for k in range(10):
        action = 0.2 * rng.standard_normal((4, 12))
        first, _, _, cut, infos = short.step(action)
        shown, *_, more = longer.step(action)
        assert cut.all() == ("final_obs" in infos) == (k == 9)
    np.testing.assert_array_equal(np.stack(infos["final_obs"]), shown)
    np.testing.assert_array_equal(infos["final_critic"], more["critic"])
    assert infos["_final_obs"].all()
    assert not np.array_equal(first, shown)
