"""ES-MAML (Song et al. 2020): a policy from which a hill climb of few trials gets far, by evolution strategies.

What is evolved and climbed is the head of a trained policy (`headed`). The fitness of a head is not what it earns, but what it
earns after a batch hill climb on a robot: no gradient of the policy is needed in either loop.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from gapless.adapt.headed import Headed, Plain, load_plain
from gapless.adapt.hill import BATCH, Climb
from gapless.adapt.lots import Lots, keep
from gapless.adapt.on_one import OnOne
from gapless.adapt.on_robot import Given
from gapless.adapt.result import Adapted
from gapless.adapt.search import Trial, search
from gapless.arrays import Array
from gapless.learn import Deterministic

UNIT = 0.3
"""How much a weight of the head changes for z = 1, as a share of the weights' root mean square."""
PAIRS = 8
"""Of opposite perturbations in an iteration, each with a robot of its own."""
SPREAD = 0.3
"""Standard deviation of perturbations of z."""
RATE = 0.3
"""Of the way along the gradient, whose fitness is in standard deviations."""
ROUNDS = 2
"""Of the climb in training, each of a batch of trials."""

Play = Callable[[Array], Array]
"""From z (2 pairs, batch, size) to rewards (2 pairs, batch): rows k and k + pairs are of the same robot."""


def climbed(play: Play, starts: Array, rng: np.random.Generator) -> Array:
    """What heads earn after a hill climb from each of them, in other episodes. Shape: (k, size) to (k,)."""
    k, size = starts.shape
    climbers = [Climb(size, r) for r in rng.spawn(k)]
    z = np.zeros((k, BATCH, size))
    for _ in range(ROUNDS + 1):
        rewards = play(starts[:, None] + z)
        for climber, steps, earned in zip(climbers, z, rewards, strict=True):
            if steps.any():
                climber.tell([Trial(s, float(r), False, 0.0) for s, r in zip(steps, earned, strict=True)])
            else:  # the start, several times
                climber.tell([Trial(steps[0], float(earned.mean()), False, 0.0)])
        z = np.array([climber.ask(BATCH) for climber in climbers])
    best = np.array([climber.best() for climber in climbers])
    return np.asarray(play(np.repeat((starts + best)[:, None], BATCH, axis=1)).mean(axis=1))


def evolve(
    draw: Callable[[], Play],
    size: int,
    iterations: int,
    rng: np.random.Generator,
    tell: Callable[[int, float], None] = lambda iteration, earned: None,
) -> Array:
    """The z from which a hill climb gets furthest. Shape: (size,).

    Args:
        draw: other robots, one for each pair.
        size: of z.
        iterations: steps of evolution.
        rng: source of all randomness.
        tell: told what heads earn after their climb.
    """
    z = np.zeros(size)
    for k in range(iterations):
        play, away = draw(), rng.standard_normal((PAIRS, size))
        fitness = climbed(play, np.concatenate([z + SPREAD * away, z - SPREAD * away]), rng)
        better = fitness[:PAIRS] - fitness[PAIRS:]
        if better.std() > 1e-9:
            z = z + RATE * better / np.sqrt((better**2).mean()) @ away / PAIRS
        tell(k + 1, float(fitness.mean()))
    return z


def train_es_maml(plain: Plain, folder: Path, steps: int, seed: int, threads: int, tell: Callable[[int, float], None]) -> None:
    """Evolve the head of a trained policy with at most so many simulated steps, and leave it in a folder."""
    rng = np.random.default_rng([seed, 0xE5])
    network, lots = plain.headed(), Lots(plain, PAIRS, 2 * BATCH, rng, threads)
    size = network.head.numel()

    def draw() -> Play:
        lots.draw()

        def play(z: Array) -> Array:
            # worlds of a robot are beside each other, and a robot belongs to both heads of a pair
            heads = z.reshape(2, PAIRS, BATCH, size).swapaxes(0, 1).reshape(-1, size)
            policy = with_steps(network, heads)
            rewards = lots.play(lambda seen: policy(seen))[0]
            return rewards.reshape(PAIRS, 2, BATCH).swapaxes(0, 1).reshape(2 * PAIRS, BATCH)

        return play

    iterations = max(1, steps // (lots.steps * (ROUNDS + 2)))
    z = evolve(draw, size, iterations, rng, tell)
    with torch.no_grad():
        network.head.copy_(stepped(network, z[None])[0])
    keep(plain.into(folder), network, threads)


def stepped(network: Headed, z: Array) -> torch.Tensor:
    """Heads so many steps from that of a network. Shape: (n, size) to (n, joints, wide + 1)."""
    head = network.head.detach()
    unit = UNIT * head.square().mean().sqrt()
    return head + unit * torch.from_numpy(z.astype(np.float32)).reshape(-1, *head.shape)


def with_steps(network: Headed, z: Array) -> Callable[[np.ndarray], np.ndarray]:
    """The policies of robots each of which has a head so many steps away. Shape of z: (n, size)."""
    heads = stepped(network, z)

    def act(seen: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            return network.with_heads(torch.from_numpy(seen), heads).numpy()

    return act


def climb(
    policy: str | os.PathLike[str],
    robot: Given,
    folder: str | os.PathLike[str],
    budget: int = 50,
    seed: int = 0,
    threads: int = 0,
    tell: Callable[[list[Trial]], None] = lambda trials: None,
) -> Adapted:
    """Climb the head of a plain policy on one robot, best of one that was trained for it, and save what came of it.

    Args:
        policy: folder of a training.
        robot: a stand-in, its file, or the name or path of a model, which is then the robot.
        folder: of the adapted policy and the result.
        budget: episodes on the robot.
        seed: of the climb and of starts.
        threads: of physics, 0 for one per core.
        tell: told all trials so far, after each batch.
    """
    plain = load_plain(Path(policy))
    network, one = plain.headed(), OnOne(plain.run, plain.contract, robot, seed, threads)
    before, size = Deterministic(plain.headed(), {}), network.head.numel()

    def tried(z: Array) -> list[Trial]:
        done = one.trials(len(z), with_steps(network, z))
        return [Trial(each, t.reward, t.fell, t.seconds) for each, t in zip(z, done, strict=True)]

    found = search(tried, Climb(size, np.random.default_rng([seed, 7])), size, budget, tell)
    with torch.no_grad():
        network.head.copy_(stepped(network, found.z[None])[0])
    result = one.adapted("climb", before, network, found.trials, Path(folder), policy, found.stopped)
    plain.save_networks(network, Path(folder))
    return result
