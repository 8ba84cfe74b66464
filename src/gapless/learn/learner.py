"""Learner: PPO of rsl-rl-lib on an environment, one iteration at a time, the same bits from the same seed."""

from __future__ import annotations

import contextlib
import io
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gapless.arrays import Array, Bools
from gapless.learn.encoder import with_encoder
from gapless.learn.environment import Environment
from gapless.learn.networks import by_columns
from gapless.learn.settings import PPOSettings
from gapless.learn.update import SideBySide
from gapless.learn.vecenv import TorchEnvironment

LEAST_RATE = 1e-5


class Diverged(Exception):
    """The networks or the losses are no longer finite."""


@dataclass(frozen=True)
class Progress:
    """The outcome of one iteration."""

    iteration: int
    terms: dict[str, float]
    """Reward by term, and falls, per second of robot time."""
    metrics: dict[str, float]
    """What the task offers to watch, on average."""
    losses: dict[str, float]
    rate: float
    std: float
    collect: float
    """Time spent in physics, observations and inference [s]."""
    update: float
    """Time spent on gradients [s]."""
    steps: int

    @property
    def reward(self) -> float:
        return sum(v for k, v in self.terms.items() if k != "falls")


class Learner:
    """The networks, their optimiser, and the environment they learn in.

    Training goes in chunks of `settings.every` iterations. Each chunk starts episodes anew with randomness of its own, so
    (networks, optimiser, chunk) is all there is to know, and a run that was stopped goes on as if it had not been.
    """

    def __init__(
        self,
        make: Callable[[np.random.Generator, float], Environment],
        settings: PPOSettings,
        seed: int,
        latent: int = 0,
        hardness: Callable[[], float] | None = None,
    ):
        """Build everything.

        Args:
            make: an environment from a source of randomness and how hard it is to be, 0 to 1.
            settings: of PPO.
            seed: the same seed gives the same bits.
            latent: numbers that an encoder makes of the context; 0 shows it to the policy as it is.
            hardness: what says how hard it is to be, instead of a hardness that grows over the first half.
        """
        self._hardness = hardness
        self.settings, self.seed, self.iteration = settings, seed, 0
        self._make, self._tuned = make, False
        self._begin()
        with contextlib.redirect_stdout(io.StringIO()):  # it prints the networks
            configuration = with_encoder(settings.rsl(), self.environment.contract, latent) if latent else settings.rsl()
            self.alg = SideBySide.construct_algorithm(self.env.get_observations(), self.env, configuration, "cpu")
        self.alg.mirrors = self.environment.mirror() if settings.mirror and not settings.recurrent else None
        self.alg.train_mode()

    def _begin(self) -> None:
        """Start a chunk."""
        chunk = self.iteration // self.settings.every
        torch.manual_seed(int(np.random.SeedSequence([self.seed, chunk]).generate_state(1)[0]))
        hardness = 1.0 if self._tuned else min(1.0, 2 * self.iteration / self.settings.iterations + 0.1)
        hardness = hardness if self._hardness is None else self._hardness()
        self.environment = self._make(np.random.default_rng([self.seed, chunk, 1]), hardness)
        self.environment.hardness = hardness
        self.environment.scene.share = self.settings.slow + (1 - self.settings.slow) * hardness
        self.env = TorchEnvironment(self.environment)

    def iterate(self) -> Progress:
        """Collect steps and learn from them; raises `Diverged` where numbers are no longer finite."""
        try:
            return self._iterate()
        except (RuntimeError, ValueError):
            # torch's distributions raise errors of their own for numbers that are not finite
            if all(torch.isfinite(p).all() for net in (self.alg.actor, self.alg.critic) for p in net.parameters()):
                raise
            raise Diverged from None

    def _iterate(self) -> Progress:
        if self.iteration and self.iteration % self.settings.every == 0 and self.env.steps_ever:
            self._begin()
            self.alg.actor.reset()
            self.alg.critic.reset()
            # the storage ignores an empty memory and would keep that of the last chunk
            self.alg.storage.saved_hidden_state_a = self.alg.storage.saved_hidden_state_c = None
        started = time.perf_counter()
        observation = self.env.get_observations()
        with torch.inference_mode():
            for _ in range(self.settings.steps):
                observation, reward, done, extras = self.env.step(self.alg.act(observation))
                self.alg.process_env_step(observation, reward, done, extras)
            collected = time.perf_counter()
            self.alg.compute_returns(observation)
        losses = self.alg.update()
        self._limit_rate()
        finished = time.perf_counter()
        std = self.alg.get_policy().output_std.mean().item()
        if not math.isfinite(sum(losses.values()) + std):
            raise Diverged
        self.iteration += 1
        return Progress(
            self.iteration,
            *self.env.take(),
            losses,
            self.alg.learning_rate,
            std,
            collected - started,
            finished - collected,
            self.settings.worlds * self.settings.steps,
        )

    def _limit_rate(self) -> None:
        self.alg.learning_rate = min(max(self.alg.learning_rate, LEAST_RATE), self.settings.most_rate)
        for group in self.alg.optimizer.param_groups:
            group["lr"] = self.alg.learning_rate

    def state(self) -> dict[str, Any]:
        """All that a resumed run needs, at the end of a chunk."""
        return {**self.alg.save(), "iteration": self.iteration, "tuned": self._tuned}

    def load(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        self.alg.load(state, None, True)
        self.iteration, self._tuned = int(state["iteration"]), bool(state["tuned"])
        self._begin()

    def start_from(self, networks: dict[str, dict[str, Array]], columns: tuple[str, ...]) -> None:
        """Start with the policy of another run and its critic, whose columns are told by name.

        A policy that withstands pushes is not spared them at first, and an untrained critic would ruin it in a few updates.
        """
        critic = by_columns(networks["critic"], columns, self.environment.critic_columns)
        for network, arrays in ((self.alg.actor, networks["actor"]), (self.alg.critic, critic)):
            network.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in arrays.items()})
        self.alg.learning_rate = self.settings.rate / 3
        self._limit_rate()
        self._tuned = True
        self._begin()  # as a run that is resumed from here does

    def deterministic(self) -> Deterministic:
        """The policy as it is now, without exploration."""
        actor = self.alg.get_policy()
        network = actor.as_onnx(verbose=False).eval()
        memory = dict.fromkeys(("h", "c"), (network.num_layers, network.hidden_size)) if actor.is_recurrent else {}
        return Deterministic(network, memory)


class Deterministic:
    """The policy without exploration, for as many robots as it is shown; its memory is kept inside."""

    def __init__(self, network: torch.nn.Module, memory: dict[str, tuple[int, int]]):
        """Take a network as `onnx_of` does.

        Args:
            network: from observations, and its memory where it has one, to actions and the new memory.
            memory: layers and width of each part of it.
        """
        self.network, self.memory = network, memory
        self._state: list[torch.Tensor] = []

    def __call__(self, observation: NDArray[np.float32]) -> NDArray[np.float32]:
        if self.memory and not self._state:
            self._state = [torch.zeros(layers, len(observation), width) for layers, width in self.memory.values()]
        with torch.inference_mode():
            out = self.network(torch.from_numpy(observation), *self._state)
        if self.memory:
            out, *self._state = out
        return out.numpy()

    @property
    def believes(self) -> NDArray[np.float32] | None:
        """The context that it found in its history. Shape: (n, context)."""
        return self._state[list(self.memory).index("z")][0].numpy() if "z" in self.memory and self._state else None

    def reset(self, which: Bools) -> None:
        """Forget what was seen of some robots."""
        with torch.inference_mode():
            for state in self._state:
                state[:, torch.from_numpy(which)] = 0.0
