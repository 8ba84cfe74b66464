"""Phases: what a joint was doing when it was wrong. Errors that gather in one tell which structure is missing."""

from collections.abc import Sequence

import numpy as np

from gapless.arrays import Array, Bools
from gapless.measure.trace import Trace

HIGH = 0.85  # quantile above which speed, load, shocks and the way from the middle of the range are high
NEAR = 0.1  # s: around a reversal or a shock
REST = 0.02  # of the highest speed: a joint that is slower stands
EARLY, LATE = 0.3, 0.7  # of a log
FEW = 20  # samples: fewer say nothing


def phase_map(traces: Sequence[Trace]) -> dict[str, dict[str, float | None]]:
    """How much larger the twin's mean squared error is in a phase than elsewhere, by joint and phase; None where none is."""
    out: dict[str, dict[str, float | None]] = {}
    for j, joint in enumerate(traces[0].joints):
        square = np.concatenate([t.error("twin")[:, j] ** 2 for t in traces])
        every = [phases(t, j) for t in traces]
        common = [p for p in every[0] if all(p in e for e in every)]
        out[joint] = {p: _ratio(square, np.concatenate([e[p] for e in every])) for p in common}
    return out


def phases(trace: Trace, joint: int) -> dict[str, Bools]:
    """The samples of each phase. Shape of each: (samples,)."""
    time, dq, load = trace.time, trace.dq[:, joint], np.abs(trace.load[:, joint])
    speed, away = np.abs(dq), np.abs(trace.measured[:, joint] - np.nanmedian(trace.measured[:, joint]))
    top = float(np.nanmax(speed)) if np.isfinite(speed).any() else 0.0
    direction = np.sign(np.where(speed < REST * top, 0.0, np.nan_to_num(dq)))
    going = np.flatnonzero(direction)
    turns = time[going[1:]][np.diff(direction[going]) != 0]
    out = {"reversals": _near(time, turns), "high speed": _high(speed)}
    if np.isfinite(load).any():
        out["high load"] = _high(load)
    if np.isfinite(trace.shock).any():
        hit = _high(trace.shock)
        out["contact"] = _near(time, time[hit & ~np.append(False, hit[:-1])])
    return out | {"range ends": _high(away), "early": time < EARLY * time[-1], "late": time > LATE * time[-1]}


def _high(values: Array) -> Bools:
    return np.asarray(values > np.nanquantile(values, HIGH))


def _near(time: Array, moments: Array) -> Bools:
    """Samples within `NEAR` of a moment; time rises, moments too."""
    if not len(moments):
        return np.zeros(len(time), dtype=bool)
    after = np.searchsorted(moments, time).clip(0, len(moments) - 1)
    before = (after - 1).clip(0)
    return np.minimum(np.abs(time - moments[after]), np.abs(time - moments[before])) <= NEAR


def _ratio(square: Array, rows: Bools) -> float | None:
    seen = np.isfinite(square)
    inside, outside = square[rows & seen], square[~rows & seen]
    if len(inside) < FEW or len(outside) < FEW or not outside.mean() > 0:
        return None
    return float(inside.mean() / outside.mean())
