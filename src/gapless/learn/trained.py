"""A trained policy: judged in an environment, and written into its folder with all that training knows about it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from gapless.arrays import Array, Bools
from gapless.learn.environment import Environment, Frame
from gapless.policy import onnx_of, recurrent_of, save_policy
from gapless.twin import Belief, Twin

if TYPE_CHECKING:
    from gapless.learn.learner import Deterministic

Golden = tuple[Frame, ...]
"""Observations (frames, width) and the actions that were given to them."""

UNSEEN_SECONDS = 5.0
GOLDEN = 64
"""Frames that prove an exported policy."""


class Acts(Protocol):
    """A policy without exploration, for any number of robots."""

    def __call__(self, observation: Frame) -> Frame: ...

    def reset(self, which: Bools) -> None: ...


def evaluate(policy: Acts, environment: Environment) -> tuple[float, Golden]:
    """Reward per second of a policy, and golden frames: one robot in a row from its start, as a memory needs."""
    observation = environment.reset()["policy"]
    total, steps = 0.0, round(UNSEEN_SECONDS / environment.twin.control_dt)
    frames: list[tuple[Frame, Frame]] = []
    in_a_row = True
    for _ in range(steps):
        action = policy(observation)
        if in_a_row and len(frames) < GOLDEN:
            frames.append((observation[0].copy(), action[0].copy()))
        step = environment.step(action)
        ended = step.failed | step.timeout
        policy.reset(ended)
        in_a_row &= not ended[0]
        total += float(step.reward.mean())
        observation = step.observation["policy"]
    return total / UNSEEN_SECONDS, tuple(np.array(x) for x in zip(*frames, strict=True))


def save_trained(
    policy: Deterministic,
    environment: Environment,
    golden: Golden,
    folder: Path,
    model_sha256: str,
    drawn: Belief | None = None,
) -> None:
    """Write the policy into its folder, with all that training knows about it in its contract.

    Args:
        policy: that was trained.
        environment: in which it was judged.
        golden: observations, and the actions that were given to them.
        folder: of the policy.
        model_sha256: of the robot's files.
        drawn: what it learned in, where that is not what the environment draws.
    """
    contract = environment.contract
    contract = dataclasses.replace(
        contract,
        recurrent=recurrent_of(policy.memory),
        source=dataclasses.replace(contract.source, run=folder.name),
        robot=dataclasses.replace(contract.robot, model_sha256=model_sha256),
        timing=dataclasses.replace(contract.timing, delay_range=delays(environment.twin, drawn or environment.worlds.belief)),
    )
    save_policy(folder, contract, onnx_of(policy.network, contract.width, policy.memory), *golden)


def delays(twin: Twin, belief: Belief) -> tuple[float, float]:
    """Least and most delay from reading to command in worlds that are drawn from a belief [s]."""
    space = twin.space
    drawn = twin.expand(belief.sample(1000, np.random.default_rng(0)), belief.space)

    def column(quantity: str, end: Callable[..., Array]) -> Array:
        of = [i for i, p in enumerate(space.parameters) if p.quantity == f"latency.{quantity}"]
        return end(drawn[:, of], axis=1) if of else np.zeros(len(drawn))

    low, high = (column("action", end) + column("observation", end) for end in (np.min, np.max))
    return float(np.min(low)), float(np.max(high + column("jitter", np.max)))
