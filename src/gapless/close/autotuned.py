"""Auto-tuned: a classifier says of each number whether it is too high or too low, from a rollout (Du et al. 2021).

It learns from simulated robots whose numbers are known: given a rollout and a candidate, is the candidate above the truth? The
whole rollout is given, since of short windows most show nothing, and those pull a number to the middle of the belief. The
middle of the belief then goes down where it is probably too high. How far that leads from the truth is seen on simulated robots
that were not learnt from: so wide is the belief afterwards, in which the next round learns anew. A number that comes no nearer
is left as it was.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from gapless.arrays import Array
from gapless.close.rollouts import Asked, Rollouts
from gapless.close.simopt import drawn
from gapless.twin import Gaussian

ROBOTS, COMPONENTS, EDGE = 2000, 40, 3.0
"""Simulated, numbers that sum a rollout up, and the standard deviations of them that are believed."""
BATCHES, BATCH, WIDTH, RATE = 3000, 512, 128, 1e-3
DROPPED, DECAY = 0.2, 1e-2
"""Of rollouts with a candidate each, half of them near the truth."""
WIDER = 2.0
"""Times the belief's standard deviations: robots that are learnt from, so that truths beyond it are reached."""
NARROWEST = 0.1
"""Scaled units: no round leaves a number surer."""
STEP, STEPS, SLOWER = 0.25, 40, 8
"""Share of the range by which a number moves at first where it is surely wrong; how often; steps after which that is halved."""
HELD_OUT = 0.2
NEARER = 0.8
"""Share of its error that tuning must leave at most on simulated robots, or a number cannot be tuned from these rollouts."""
ALIKE = 0.9
"""Correlation of the effects of two numbers that look the same."""


@dataclass(frozen=True)
class Tuner:
    """What was learnt."""

    belief: Gaussian
    scale: Array
    """Of what is seen. Shape: (columns,)."""
    centre: Array
    size: Array
    along: Array
    """Principal components of rollouts."""
    layers: list[tuple[Array, Array]]
    """Weights and biases."""
    before: Array
    after: Array
    """Error on simulated robots that were not learnt from, scaled: of a Gaussian, in which nine of ten are nearer, the
    standard deviation. Shape: (parameters,)."""
    why: list[str]
    """Why a number cannot be tuned, empty where it can."""

    @property
    def tells(self) -> Array:
        """Which numbers can be tuned. Shape: (parameters,)."""
        return np.array([not why for why in self.why], bool)

    def tuned(self, seen: Array, asked: Asked) -> Array:
        """Where the middle comes to for what was seen of robots, (n, runs, periods, columns). Shape: (n, parameters)."""
        summed = (_features(asked, seen, self.scale) - self.centre) @ self.along.T / self.size
        return _settled(self.layers, np.clip(summed, -EDGE, EDGE), self.belief, self.tells)


def update(belief: Gaussian, asked: Asked, real: Rollouts, rng: np.random.Generator) -> tuple[Gaussian, str]:
    """The belief after a round, and what is to be said of it."""
    tuner = learn(belief, asked, rng)
    middle = tuner.tuned(real.seen[None], asked)[0]
    spread = np.sqrt(np.diag(belief.covariance))
    narrower = np.where(tuner.tells, np.clip(tuner.after / spread, NARROWEST / spread, 1.0), 1.0)
    moved = Gaussian(belief.space, middle, belief.covariance * np.outer(narrower, narrower))
    cannot = [f"{n} ({why})" for n, why in zip(belief.space.names, tuner.why, strict=True) if why]
    said = f"{STEPS} steps of a classifier"
    said += f"; left as they were: {', '.join(cannot)}" if cannot else ""
    return moved, said


def learn(belief: Gaussian, asked: Asked, rng: np.random.Generator) -> Tuner:
    """Learn from robots of the belief, twice as wide, that are off within tolerance in all else."""
    wide = dataclasses.replace(belief, covariance=WIDER**2 * belief.covariance)
    truth = drawn(wide, ROBOTS, rng)
    seen = asked.simulated(belief.space.clip(belief.space.from_scaled(truth)), belief.space, rng)
    scale = np.nanstd(seen, axis=(0, 1, 2)) + 1e-6
    features = _features(asked, seen, scale)
    centre = features.mean(axis=(0, 1))
    _, size, along = np.linalg.svd(features[:, 0] - centre, full_matrices=False)
    kept = min(COMPONENTS, int((size > 1e-6 * size[0]).sum()))
    size = size[:kept] / np.sqrt(ROBOTS)
    summed = np.clip((features - centre) @ along[:kept].T / size, -EDGE, EDGE)
    test = np.arange(ROBOTS) >= (1 - HELD_OUT) * ROBOTS
    layers = _trained(summed[~test], truth[~test], np.sqrt(np.diag(wide.covariance)), rng)

    def error(settled: Array) -> Array:
        return np.asarray(np.quantile(np.abs(settled - truth[test]), 0.9, axis=0) / 1.645)

    before = error(belief.centre[None])
    why = _why(belief, error(_settled(layers, summed[test], belief, np.ones(len(before), bool))) / before, summed, truth)
    tuner = Tuner(belief, scale, centre, size, along[:kept], layers, before, before, why)
    return dataclasses.replace(tuner, after=error(_settled(layers, summed[test], belief, tuner.tells)))


def _settled(layers: list[tuple[Array, Array]], summed: Array, belief: Gaussian, free: Array) -> Array:
    """Where the middle comes to in steps that become smaller. Shapes: (n, runs, numbers) to (n, parameters)."""
    n, runs = summed.shape[:2]
    reach = WIDER * np.sqrt(np.diag(belief.covariance)) * free
    middle = np.tile(belief.centre, (n, 1))
    path = []
    for k in range(STEPS):
        given = np.concatenate([summed, np.broadcast_to(middle[:, None], (n, runs, middle.shape[1]))], axis=2)
        logits = _forward(layers, given.reshape(n * runs, -1)).reshape(n, runs, -1).mean(axis=1)
        middle = np.clip(middle - reach * STEP / (1 + k / SLOWER) * np.tanh(logits / 2), *belief.space.bounds)
        path.append(middle)
    return np.mean(path[-STEPS // 4 :], axis=0)  # the last go to and fro


def _features(asked: Asked, seen: Array, scale: Array) -> Array:
    """What was seen in each run (n, runs, periods, columns), in numbers. Shape: (n, runs, numbers)."""
    n, runs = seen.shape[:2]
    return np.nan_to_num(asked.features(seen.reshape(n * runs, 1, *seen.shape[2:]), scale)).reshape(n, runs, -1)


def _candidates(truth: Array, spread: Array, rng: np.random.Generator) -> Array:
    """Half near the truth, half anywhere. Shape as the truth."""
    near = np.where(rng.random((len(truth), 1)) < 0.5, 0.3, 1.0)
    return np.asarray(truth + near * spread * rng.standard_normal(truth.shape))


def _trained(summed: Array, truth: Array, spread: Array, rng: np.random.Generator) -> list[tuple[Array, Array]]:
    """A network of two hidden layers, by cross-entropy."""
    import torch

    k, runs = truth.shape[1], summed.shape[1]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(rng.integers(2**31)))
        net = torch.nn.Sequential(
            torch.nn.Linear(summed.shape[2] + k, WIDTH), torch.nn.ELU(), torch.nn.Dropout(DROPPED),
            torch.nn.Linear(WIDTH, WIDTH), torch.nn.ELU(), torch.nn.Dropout(DROPPED), torch.nn.Linear(WIDTH, k),
        )  # fmt: skip
        optimiser, loss = torch.optim.AdamW(net.parameters(), RATE, weight_decay=DECAY), torch.nn.BCEWithLogitsLoss()
        for _ in range(BATCHES):
            robots = rng.integers(len(truth), size=BATCH)
            of = truth[robots]
            candidate = _candidates(of, spread, rng)
            given = np.column_stack([summed[robots, rng.integers(runs, size=BATCH)], candidate])
            x, y = (torch.tensor(a, dtype=torch.float32) for a in (given, candidate > of))
            optimiser.zero_grad()
            loss(net(x), y).backward()
            optimiser.step()
    linear = [layer for layer in net if isinstance(layer, torch.nn.Linear)]
    return [(layer.weight.detach().double().numpy(), layer.bias.detach().double().numpy()) for layer in linear]


def _forward(layers: list[tuple[Array, Array]], x: Array) -> Array:
    for i, (weight, bias) in enumerate(layers):
        x = x @ weight.T + bias
        if i < len(layers) - 1:
            x = np.where(x > 0, x, np.expm1(np.minimum(x, 0.0)))
    return x


def _why(belief: Gaussian, left: Array, summed: Array, truth: Array) -> list[str]:
    """Why numbers cannot be tuned from these rollouts: another does the same, or nothing that is seen depends on them."""
    features = summed.reshape(len(summed), -1)
    features = features - features.mean(axis=0)
    effect = np.linalg.lstsq(truth - truth.mean(axis=0), features, rcond=None)[0]
    size = np.linalg.norm(effect, axis=1)
    alike = np.abs(effect @ effect.T) / np.maximum(np.outer(size, size), 1e-12) - np.eye(len(effect))
    out, names = [], belief.space.names
    for i, share in enumerate(left):
        other = int(np.argmax(alike[i]))
        if share <= NEARER:
            out.append("")
        elif alike[i, other] > ALIKE:
            out.append(f"{names[other]} does the same to these rollouts")
        else:
            out.append("these rollouts hardly depend on it")
    return out
