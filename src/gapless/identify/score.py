"""How well a twin predicts logs, free-running in the full model, beside the baselines that any method has to beat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gapless.logs import Log
from gapless.twin import Twin
from gapless.twin.space import Array
from gapless.worlds import Replay, Replayer

DELAYS = np.arange(0, 0.2001, 0.005)  # s: what a pure delay may be
BLOCK = 2.0  # s


@dataclass(frozen=True)
class Errors:
    """Root mean square position error over all samples, mean over joints [rad]; NaN where there is no such prediction."""

    command: float
    """The commanded position as prediction."""
    delay: float
    """The command, as late as fits each joint best."""
    nominal: float
    fit: float


def score(twin: Twin, logs: Sequence[Log], values: Array, kept: NDArray[np.bool_], seconds: float) -> tuple[Errors, Errors]:
    """Errors on everything with the first vector of `values`, and on the blocks that are not `kept` with the second.

    `kept` is over blocks of two seconds, log after log, of the first `seconds` of each.
    """
    vectors = np.stack([twin.space.nominal, *values])
    squares: list[list[Array]] = [[], []]  # of everything, of what was held out: (4, samples, joints)
    first = 0
    for log in logs:
        result = Replayer(twin, log, end=seconds)(vectors)
        lag = _best_delay(log, result)
        command = result.command[0] - result.measured["q"][0]
        # a replay that broke is as wrong as a turn of the joint
        nominal, whole, half = np.nan_to_num(result.error("q")[:, 0], nan=np.pi)
        block = first + (result.time[0] / BLOCK).astype(int)
        count = int(((len(result.time[0]) - 1) / log.rate("q")) / BLOCK) + 1
        out = ~kept[np.minimum(block, len(kept) - 1)]
        squares[0].append(np.stack([command, lag, nominal, whole]) ** 2)
        squares[1].append(np.stack([command, lag, nominal, half])[:, out] ** 2)
        first += count
    everything, heldout = (Errors(*np.sqrt(np.concatenate(s, axis=1).mean(axis=1)).mean(axis=1).tolist()) for s in squares)
    return everything, heldout


def _best_delay(log: Log, result: Replay) -> Array:
    """Error of the command as late as fits each joint best. Shape: (samples, joints)."""
    measured = result.measured["q"][0]
    if np.isnan(result.command).any():
        return np.full(measured.shape, np.nan)
    order = [log["q_cmd"].columns.index(j) for j in result.joints]
    times = result.starts[0] + result.time[0]
    tried = np.stack([log.at("q_cmd", times - d)[:, order] - measured for d in DELAYS])
    best = (tried**2).mean(axis=1).argmin(axis=0)
    return np.stack([tried[b, :, j] for j, b in enumerate(best)], axis=1)
