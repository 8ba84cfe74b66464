"""The learner reports what happened in the worlds, not what they look like after they started anew."""

import numpy as np
import pytest

from gapless.learn.environment import Environment
from gapless.learn.learner import Learner
from gapless.learn.settings import PPOSettings
from gapless.learn.task import Episode
from gapless.twin import Twin
from tests.learn.upright import Upright

pytestmark = pytest.mark.xdist_group("training")  # two trainings at once are slower than one after the other


class Brief(Upright):
    """Every episode is one period long."""

    episode = Episode(seconds=0.02)

    def metrics(self, scene):
        return {"time": scene.time}


def test_metrics_are_taken_before_episodes_that_ended_start_anew():
    twin = Twin.load("rover")
    settings = PPOSettings(worlds=4, steps=3, hidden=(8,), epochs=1, minibatches=1, iterations=2)
    learner = Learner(lambda rng, hardness: Environment(twin, Brief(), 4, None, rng, 1), settings, 0)
    assert learner.iterate().metrics["time"] == pytest.approx(twin.control_dt)
    assert np.isfinite(learner.iterate().reward)
