"""The smallest task, as the documentation shows it."""

from types import MappingProxyType

import numpy as np

from gapless.learn.task import Episode, joint_terms


class Upright:
    episode = Episode(seconds=0.2)
    commands = MappingProxyType({})

    def terms(self, twin):
        return joint_terms(twin)

    def command(self, scene, ids, rng):
        return np.zeros((len(ids), 0))

    def reward(self, scene):
        return {"upright": -scene.gravity[:, 2]}

    def done(self, scene):
        return scene.gravity[:, 2] > -0.5
