"""How well a twin predicts logs, free-running in the full model, beside the baselines that any method has to beat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gapless.identify.joint import BLOCK
from gapless.logs import Log
from gapless.twin import Twin
from gapless.twin.space import Array
from gapless.worlds import Replay, Replayer

DELAYS = np.arange(0, 0.2001, 0.005)  # s: what a pure delay may be


@dataclass(frozen=True)
class Errors:
    """Root mean square position error over all samples, mean over joints [rad]; NaN where there is no such prediction."""

    command: float
    """The commanded position as prediction."""
    delay: float
    """The command, as late as fits each joint best."""
    nominal: float
    fit: float


def score(
    twin: Twin, logs: Sequence[Log], values: Array, kept: NDArray[np.bool_], firsts: Sequence[int], seconds: float
) -> tuple[Errors, Errors]:
    """Errors on everything with the first vector of `values`, and on the blocks that are not `kept` with the second.

    `kept` is over the blocks of all logs, of the first `seconds` of each; `firsts` is the number of each log's first block.
    """
    vectors = np.stack([twin.space.nominal, *values])
    squares: list[list[Array]] = [[], []]  # of everything, of what was held out: (4, samples, joints)
    for log, first, end in zip(logs, firsts, [*firsts[1:], len(kept)], strict=True):
        result = Replayer(twin, log, end=seconds)(vectors)
        seen = np.isfinite(result.measured["q"][0]).all(axis=1)
        command = result.command[0] - result.measured["q"][0]
        # a replay that broke is as wrong as half a turn of the joint
        nominal, whole, half = np.nan_to_num(result.error("q")[:, 0], nan=np.pi)
        lag = _best_delay(log, result)
        out = seen & ~kept[np.minimum(first + (result.time[0] / BLOCK).astype(int), end - 1)]
        squares[0].append(np.stack([command, lag, nominal, whole])[:, seen] ** 2)
        squares[1].append(np.stack([command, lag, nominal, half])[:, out] ** 2)
    everything, heldout = (Errors(*np.sqrt(np.concatenate(s, axis=1).mean(axis=1)).mean(axis=1).tolist()) for s in squares)
    return everything, heldout


def _best_delay(log: Log, result: Replay) -> Array:
    """Error of the command as late as fits each joint best. Shape: (samples, joints)."""
    measured = result.measured["q"][0]
    if "q_cmd" not in log:
        return np.full(measured.shape, np.nan)
    order = [log["q_cmd"].columns.index(j) for j in result.joints]
    times = result.starts[0] + result.time[0]
    tried = np.stack([log.at("q_cmd", times - d)[:, order] - measured for d in DELAYS])
    best = np.nanmean(tried**2, axis=1).argmin(axis=0)
    return np.stack([tried[b, :, j] for j, b in enumerate(best)], axis=1)
