"""Shares: how much of the gap each cause makes, by switching the fitted values on and off on parts that were held out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import factorial

import numpy as np
from numpy.typing import NDArray

from gapless.arrays import Array
from gapless.explain.compete import stepped, tolerances
from gapless.explain.contest import Contest, Hypothesis
from gapless.explain.physics import errors_of

DRAWS = 500  # of blocks, for intervals
QUANTILES = (5.0, 95.0)


@dataclass(frozen=True)
class Shares:
    """Shapley values of the causes and, last, of the tolerances: everything else, moved within its tolerance.

    Shares are of the squared error above the sensors' noise. Shape of each array: (causes + 1,).
    """

    share: Array
    low: Array
    high: Array
    left: float
    """What remains with everything switched on."""


def shares(contest: Contest, fit: Hypothesis, noise: Array, rng: np.random.Generator) -> Shares:
    """Fit either half of the blocks, and switch the fitted values on and off on the other. noise: by joint [rad]."""
    data = contest.arenas[contest.arena(fit.causes)]
    block, joints = data.block, len(data.twin.joints)
    first = data.split.first[block]
    games = []
    for seen in (first, ~first):
        mask = np.repeat(seen.astype(float), len(contest.floor))
        half = replace(contest, mask=mask, slopes=contest.slopes * mask[:, None])
        start = Hypothesis(fit.causes, fit.x, fit.residual * mask)
        refitted = stepped(half, [start])[0] if fit.causes else tolerances(half, start, 1)
        games.append(_squares(contest, refitted)[:, :, :joints].mean(axis=2))
    judged = data.split.held_out(block, *(game.T for game in games)).T  # (subsets, samples)
    count = np.bincount(block)
    used = np.flatnonzero(count)
    by_block = np.stack([np.bincount(block, weights=s)[used] for s in judged])
    weight = count[used].astype(float)
    quiet = float((noise[:joints] ** 2).mean())

    def of(rows: NDArray[np.int64]) -> tuple[Array, float]:
        value = by_block[:, rows].sum(axis=1) / weight[rows].sum()
        whole = max(float(value[0]) - quiet, 1e-3 * float(value[0]))
        return shapley(value[0] - value) / whole, float(np.clip((value[-1] - quiet) / whole, 0.0, 1.0))

    share, left = of(np.arange(len(used)))
    drawn = np.array([of(rng.integers(0, len(used), len(used)))[0] for _ in range(DRAWS)])
    low, high = np.percentile(drawn, QUANTILES, axis=0)
    return Shares(share, np.minimum(low, share), np.maximum(high, share), left)


def _squares(contest: Contest, fit: Hypothesis) -> Array:
    """Squared errors with every subset of the players switched on; in the order of binary counting, causes first."""
    player = np.full(len(fit.x), len(fit.causes))  # of each variable
    for k, cause in enumerate(fit.causes):
        player[contest.causes[cause]] = k
    players = np.arange(len(fit.causes) + 1)
    switches = np.arange(2 ** len(players))[:, None] >> players & 1  # (subsets, players)
    arena = contest.arena(fit.causes)
    return errors_of(contest.arenas[arena], contest.values(fit.x * switches[:, player], arena)) ** 2


def shapley(value: Sequence[float] | Array) -> Array:
    """The Shapley value of each player. value: of every subset, in the order of binary counting. Shape: (players,)."""
    n = int(np.log2(len(value)))
    out = np.zeros(n)
    for k in range(n):
        others = [j for j in range(n) if j != k]
        for size in range(n):
            weight = factorial(size) * factorial(n - size - 1) / factorial(n)
            for team in combinations(others, size):
                without = sum(1 << j for j in team)
                out[k] += weight * (value[without | 1 << k] - value[without])
    return out
