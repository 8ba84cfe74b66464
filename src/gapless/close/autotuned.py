"""Auto-tuned: a classifier says of each number whether it is too high or too low, from windows of a rollout (Du et al. 2021).

It learns from simulated robots whose numbers are known: given a window and a candidate, is the candidate above the truth? The
middle of the belief then goes down where it is probably too high. The classifier knows the whole of the belief, so that one
training serves all steps of a round.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from gapless.arrays import Array
from gapless.close.rollouts import Asked, Rollouts
from gapless.close.simopt import drawn
from gapless.twin import Gaussian

ROBOTS, WINDOW, COMPONENTS = 1200, 10, 32
"""Simulated, periods of a window (Du et al. 2021), and numbers that sum a window up."""
BATCHES, BATCH, WIDTH, RATE = 2500, 512, 128, 1e-3
"""Of windows with a candidate each, half of them near the truth."""
STEP, STEPS = 0.3, 30
"""Scaled units that a number moves by where it is surely wrong, twice; and how often in a round."""
HELD_OUT = 0.2
FAR = 0.4
"""Scaled units: it must be told of a number this far off on which side it is."""
TOLD = 0.75
"""Share of such robots that must be told right, or a number cannot be tuned from these rollouts; 0.5 is chance."""
ALIKE = 0.9
"""Correlation of the effects of two numbers that look the same."""


@dataclass(frozen=True)
class Tuner:
    """What was learnt."""

    belief: Gaussian
    centre: Array
    size: Array
    along: Array
    """Principal components of windows."""
    count: int
    """Windows of a run."""
    layers: list[tuple[Array, Array]]
    """Weights and biases."""
    right: Array
    """Share of robots that were not learnt from of which it is told right; see `_right`. Shape: (parameters,)."""
    why: list[str]
    """Why a number cannot be tuned, empty where it can."""

    @property
    def tells(self) -> Array:
        """Which numbers can be tuned. Shape: (parameters,)."""
        return np.array([not why for why in self.why])

    def too_high(self, windows: Array, candidate: Array) -> Array:
        """Probability that a candidate is above the truth, from the windows of a rollout. Shape: (parameters,)."""
        given = np.column_stack([self._summed(windows), np.tile(candidate, (len(windows), 1))])
        logits = _forward(self.layers, given).mean(axis=0)
        return 1 / (1 + np.exp(-logits))

    def _summed(self, windows: Array) -> Array:
        return _with_time(((windows - self.centre) @ self.along.T / self.size)[None], self.count)[0]

    def step(self, rollout: Array, middle: Array) -> Array:
        """The middle after one step. rollout: (runs, periods, columns)."""
        probable = self.too_high(windows_of(rollout[None])[0], middle)
        moved = middle - 2 * STEP * (probable - 0.5) * self.tells
        return np.clip(moved, *self.belief.space.bounds)


def update(belief: Gaussian, asked: Asked, real: Rollouts, rng: np.random.Generator) -> tuple[Gaussian, str]:
    """The belief after a round, and what is to be said of it."""
    tuner = learn(belief, asked, rng)
    middle, path = belief.centre, []
    for _ in range(STEPS):
        middle = tuner.step(real.seen, middle)
        path.append(middle)
    settled = np.mean(path[-5:], axis=0)  # steps of one size go to and fro
    cannot = [f"{n} ({why})" for n, why in zip(belief.space.names, tuner.why, strict=True) if why]
    said = f"{STEPS} steps of a classifier"
    said += f"; left as they were: {', '.join(cannot)}" if cannot else ""
    return dataclasses.replace(belief, centre=settled), said


def learn(belief: Gaussian, asked: Asked, rng: np.random.Generator) -> Tuner:
    """Learn from robots of the belief, twice as wide."""
    wide = dataclasses.replace(belief, covariance=4 * belief.covariance)
    truth = drawn(wide, ROBOTS, rng)
    seen = asked.simulated(belief.space.clip(belief.space.from_scaled(truth)), belief.space)
    windows = windows_of(np.nan_to_num(seen))
    flat = windows.reshape(-1, windows.shape[-1])
    centre = flat.mean(axis=0)
    some = flat[rng.permutation(len(flat))[:4000]] - centre
    _, size, along = np.linalg.svd(some, full_matrices=False)
    kept = min(COMPONENTS, int((size > 1e-6 * size[0]).sum()))
    scale = size[:kept] / np.sqrt(len(some))
    count = seen.shape[2] // WINDOW
    summed = _with_time((windows - centre) @ along[:kept].T / scale, count)
    test = np.arange(ROBOTS) >= (1 - HELD_OUT) * ROBOTS
    spread = np.sqrt(np.diag(wide.covariance))
    layers = _trained(summed[~test], truth[~test], spread, rng)
    right = _right(layers, summed[test], truth[test], belief.centre)
    return Tuner(belief, centre, scale, along[:kept], count, layers, right, _why(belief, right, summed, truth))


def windows_of(seen: Array) -> Array:
    """Windows of rollouts (n, runs, periods, columns), one after the other. Shape: (n, windows, numbers)."""
    n, runs, periods, columns = seen.shape
    count = periods // WINDOW
    return seen[:, :, : count * WINDOW].reshape(n, runs * count, WINDOW * columns)


def _with_time(summed: Array, count: int) -> Array:
    """Summed-up windows (n, windows, numbers) with when each begins in its run, as all runs begin alike."""
    when = np.tile(np.linspace(-1.0, 1.0, count), summed.shape[1] // count)
    return np.concatenate([summed, np.broadcast_to(when[:, None], (*summed.shape[:2], 1))], axis=2)


def _candidates(truth: Array, spread: Array, rng: np.random.Generator) -> Array:
    """Half near the truth, half anywhere. Shape as the truth."""
    near = np.where(rng.random((len(truth), 1)) < 0.5, 0.3, 1.0)
    return np.asarray(truth + near * spread * rng.standard_normal(truth.shape))


def _trained(summed: Array, truth: Array, spread: Array, rng: np.random.Generator) -> list[tuple[Array, Array]]:
    """A network of two hidden layers, by cross-entropy."""
    import torch

    k, windows = truth.shape[1], summed.shape[1]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(rng.integers(2**31)))
        net = torch.nn.Sequential(
            torch.nn.Linear(summed.shape[2] + k, WIDTH), torch.nn.ELU(),
            torch.nn.Linear(WIDTH, WIDTH), torch.nn.ELU(), torch.nn.Linear(WIDTH, k),
        )  # fmt: skip
        optimiser, loss = torch.optim.Adam(net.parameters(), RATE), torch.nn.BCEWithLogitsLoss()
        for _ in range(BATCHES):
            robots = rng.integers(len(truth), size=BATCH)
            of = truth[robots]
            candidate = _candidates(of, spread, rng)
            given = np.column_stack([summed[robots, rng.integers(windows, size=BATCH)], candidate])
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


def _right(layers: list[tuple[Array, Array]], summed: Array, truth: Array, middle: Array) -> Array:
    """Share of robots far from the belief's middle of which it is told right whether that is too high. Shape: (parameters,).

    The middle is asked about, as any other candidate tells by itself on which side of most robots it is.
    """
    windows = summed.shape[1]
    given = np.concatenate([summed, np.broadcast_to(middle, (*summed.shape[:2], len(middle)))], axis=2)
    logits = _forward(layers, given.reshape(len(summed) * windows, -1)).reshape(len(summed), windows, -1).mean(axis=1)
    far = np.abs(truth - middle) > FAR
    return ((logits > 0) == (truth < middle)).sum(axis=0, where=far) / np.maximum(far.sum(axis=0), 1)


def _why(belief: Gaussian, right: Array, summed: Array, truth: Array) -> list[str]:
    """Why numbers cannot be tuned from these rollouts: another does the same, or nothing that is seen depends on them."""
    features = summed.reshape(len(summed), -1)
    features = features - features.mean(axis=0)
    effect = np.linalg.lstsq(truth - truth.mean(axis=0), features, rcond=None)[0]
    size = np.linalg.norm(effect, axis=1)
    alike = np.abs(effect @ effect.T) / np.maximum(np.outer(size, size), 1e-12) - np.eye(len(effect))
    out, names = [], belief.space.names
    for i, share in enumerate(right):
        other = int(np.argmax(alike[i]))
        if share >= TOLD:
            out.append("")
        elif alike[i, other] > ALIKE:
            out.append(f"told right in {share:.0%}: {names[other]} does the same to these rollouts")
        else:
            out.append(f"told right in {share:.0%}: these rollouts hardly depend on it")
    return out
