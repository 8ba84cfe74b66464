"""Phases: what a joint was doing when it was wrong. Errors that gather in one tell which structure is missing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gapless.arrays import Array
from gapless.gap.measure import Trace

HIGH = 0.85  # quantile above which speed, load and shocks are high
NEAR = 0.1  # s: around a reversal or a shock
REST = 0.02  # of the highest speed: a joint that is slower stands
LATE = 0.7  # of a log
FEW = 20  # samples: fewer say nothing


def phase_map(traces: Sequence[Trace], prediction: str = "twin") -> dict[str, dict[str, float | None]]:
    """How much larger the mean squared error is in a phase than elsewhere, by joint and phase; None where there is none.

    prediction: `twin` or `given`.
    """
    out: dict[str, dict[str, float | None]] = {}
    for j, joint in enumerate(traces[0].joints):
        square = np.concatenate([(getattr(t, prediction)[:, j] - t.measured[:, j]) ** 2 for t in traces])
        every = [phases(t, j) for t in traces]
        there = [p for p in every[0] if all(p in e for e in every)]
        out[joint] = {p: _times(square, np.concatenate([e[p] for e in every])) for p in there}
    return out


def phases(trace: Trace, joint: int) -> dict[str, NDArray[np.bool_]]:
    """The samples of each phase. Shape of each: (samples,)."""
    dq, load = trace.dq[:, joint], np.abs(trace.load[:, joint])
    speed = np.abs(dq)
    top = float(np.nanmax(speed)) if np.isfinite(speed).any() else 0.0
    direction = np.sign(np.where(speed < REST * top, 0.0, np.nan_to_num(dq)))
    going = np.flatnonzero(direction)
    turns = trace.time[going[1:]][np.diff(direction[going]) != 0]
    found = {"reversals": _near(trace.time, turns), "high speed": speed > np.nanquantile(speed, HIGH)}
    if np.isfinite(load).any():
        found["high load"] = load > np.nanquantile(load, HIGH)
    if np.isfinite(trace.shock).any():
        hit = trace.shock > np.nanquantile(trace.shock, HIGH)
        found["contact"] = _near(trace.time, trace.time[hit & ~np.append(False, hit[:-1])])
    return found | {"late": trace.time > LATE * trace.time[-1]}


def _near(time: Array, moments: Array) -> NDArray[np.bool_]:
    """Samples within `NEAR` of a moment; time rises, moments too."""
    if not len(moments):
        return np.zeros(len(time), dtype=bool)
    after = np.searchsorted(moments, time).clip(0, len(moments) - 1)
    before = (after - 1).clip(0)
    return np.minimum(np.abs(time - moments[after]), np.abs(time - moments[before])) <= NEAR


def _times(square: Array, rows: NDArray[np.bool_]) -> float | None:
    seen = np.isfinite(square)
    inside, outside = square[rows & seen], square[~rows & seen]
    if len(inside) < FEW or len(outside) < FEW or not outside.mean() > 0:
        return None
    return float(inside.mean() / outside.mean())
