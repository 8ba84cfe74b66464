"""Lots: robots of a training's belief with several episodes on each, which meta-learning needs; what its methods share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from gapless.adapt.headed import Headed, Plain
from gapless.adapt.trials import Watch, episodes
from gapless.arrays import Array, Bools
from gapless.errors import BadInput
from gapless.learn import UNSEEN, Deterministic, Environment, Frame, evaluate, save_trained


class Lots:
    """A few robots, and as many worlds of each, that stay what they are until others are drawn."""

    def __init__(self, plain: Plain, lots: int, each: int, rng: np.random.Generator, threads: int = 0):
        """Draw the first robots.

        Args:
            plain: the policy, whose training says what robots there are.
            lots: robots.
            each: worlds of each.
            rng: source of all randomness.
            threads: of physics, 0 for one per core.
        """
        twin, task, self.belief = plain.run.build()
        if self.belief is None:
            raise BadInput("to learn how to adapt needs robots that differ: use --preset wide or a --belief")
        self.each, self._lots, self._rng = each, lots, rng.spawn(1)[0]
        self.environment = Environment(twin, task, lots * each, self.belief, rng, threads, plain.contract)
        self.steps = round(task.episode.seconds / twin.control_dt) * lots * each
        """Of simulation that an episode in each world takes."""
        self.draw()

    def draw(self) -> None:
        """Other robots."""
        assert self.belief is not None
        self.environment.kept = np.repeat(self.belief.sample(self._lots, self._rng), self.each, axis=0)

    def play(self, act: Callable[[Frame], Frame], watch: Watch = lambda *happened: None) -> tuple[Array, Bools, Array]:
        """An episode in each world, those of a robot beside each other; see `episodes`."""
        return episodes(self.environment, act, watch)


def keep(plain: Plain, network: torch.nn.Module, threads: int) -> None:
    """Save a policy from which adaptation starts into the folder of `plain`, as a training leaves its best."""
    twin, task, belief = plain.run.build()
    rng = np.random.default_rng([plain.run.seed, 1 << 40])
    environment = Environment(twin, task, UNSEEN, belief, rng, threads, plain.contract)
    policy = Deterministic(network.eval(), {})
    plain.folder.mkdir(parents=True, exist_ok=True)
    save_trained(policy, environment, evaluate(policy, environment)[1], plain.folder, plain.run.hashes()["robot"])
    if isinstance(network, Headed):
        plain.save_networks(network, plain.folder)
    plain.run.save(plain.folder)
