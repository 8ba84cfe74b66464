"""A gap and a replay experiment as plain data, for JSON and for reports. Angles stay in rad."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gapless.arrays import Array
from gapless.gap.distribution import Distance, Distances
from gapless.gap.divergence import Divergence, Experiment
from gapless.gap.growth import SHARE, smoothed
from gapless.gap.measure import HORIZONS, PREDICTIONS, Gap

MOST_POINTS = 300  # of a curve


def plain(gap: Gap) -> dict[str, Any]:
    """`error` of the model as given, `baselines` and `noise_floor`.

    Where the gap was measured at other values, `with_causes` in `error` is what they leave.
    """
    q = gap["q"]
    joints = {
        joint: {
            "value": number(q.of("given", gap.horizon)[j]),
            "relative": number(q.relative("given", gap.horizon)[j]),
            "unit": q.units[j],
        }
        for j, joint in enumerate(q.columns)
    }
    moving = q.relative("given", gap.horizon)[np.array(q.units) == gap.unit]
    error: dict[str, Any] = {
        "value": number(gap.mean("given")),
        "unit": gap.unit,
        "relative": number(float(np.mean(moving[~np.isnan(moving)])) if (~np.isnan(moving)).any() else np.nan),
        "horizon": gap.horizon,
        "horizons": {h: number(gap.mean("given", h)) for h in HORIZONS},
        "joints": joints,
        "signals": {s: _signal(gap, s) for s in gap.errors},
        "delays": gap.delays,
        "distribution": _distances(gap.distances),
        "windows": gap.windows,
        "broken": gap.broken,
        "robot_seconds": gap.seconds,
    }
    if not np.array_equal(q.size["twin"], q.size["given"], equal_nan=True):
        error["with_causes"] = {h: number(gap.mean("twin", h)) for h in HORIZONS}
    repeated = q.floor.repeated
    return {
        "error": error,
        "baselines": {p: {h: number(gap.mean(p, h)) for h in HORIZONS} for p in PREDICTIONS if p != "twin"},
        "noise_floor": {
            "value": number(gap.over_joints(q.noise)),
            "unit": gap.unit,
            "from": "repeats" if repeated.all() else "repeats and sensor" if repeated.any() else "sensor",
            "repeated_seconds": float(repeated.max(initial=0.0)),
            "joints": dict(zip(q.columns, q.noise.tolist(), strict=True)),
        },
    }


def plain_experiment(found: Experiment) -> dict[str, Any]:
    """`itself`, `twin`, `distribution` and `note`."""
    return {
        "itself": _divergence(found.itself),
        "twin": _divergence(found.twin),
        "distribution": _distances(found.distances) if found.distances else None,
        "note": found.note,
    }


def number(value: float) -> float | None:
    """JSON has no number for what is not one."""
    return float(value) if math.isfinite(value) else None


def finite(data: Any) -> Any:
    """Nested data without what JSON has no number for."""
    if isinstance(data, dict):
        return {k: finite(v) for k, v in data.items()}
    if isinstance(data, list | tuple):
        return [finite(v) for v in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def _signal(gap: Gap, signal: str) -> dict[str, Any]:
    e = gap[signal]
    out: dict[str, Any] = {}
    for i, column in enumerate(e.columns):
        out[column] = {"unit": e.units[i], "moves": number(e.moves[i]), "noise": number(e.noise[i])}
        out[column] |= {h: number(e.of("given", h)[i]) for h in HORIZONS}
    return out


def _distances(d: Distances) -> dict[str, Any]:
    def both(distance: Distance) -> dict[str, float | None]:
        return {"size": number(distance.size), "usual": number(distance.usual)}

    return {"sliced": both(d.sliced), "mmd": both(d.mmd), "columns": {n: both(c) for n, c in d.columns.items()}}


def _divergence(d: Divergence | None) -> dict[str, Any] | None:
    if d is None:
        return None
    g = d.growth
    rows = np.unique(np.linspace(0, len(d.time) - 1, MOST_POINTS).astype(int))
    apart = smoothed(d.time, d.apart)[:, rows]
    return {
        "pairs": list(d.pairs),
        "seconds": float(d.time[-1]),
        "share": SHARE,
        "start": number(g.start),
        "end": number(g.end),
        "growth": {"rate": number(g.rate), "low": number(g.low), "high": number(g.high)},
        "horizon": number(g.horizon),
        "joints": dict(zip(d.joints, d.size.tolist(), strict=True)),
        "curve": {"time": d.time[rows].tolist(), "low": _over(np.nanmin, apart), "middle": _over(np.nanmedian, apart)}
        | {"high": _over(np.nanmax, apart)},
    }


def _over(f: Any, values: Array) -> list[float | None]:
    """A figure over pairs, None where none is left."""
    return [number(f(column)) if np.isfinite(column).any() else None for column in values.T]
