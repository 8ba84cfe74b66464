"""Overlays: one stretch of each joint, what was measured beside what was predicted, and below it the errors."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gapless.arrays import Array, Ints
from gapless.report.page import BLUE, GREY, ORANGE, RED, Plot, Section, line
from gapless.report.words import shown, size

MOST_POINTS = 400  # of a line; a plot is not wider in pixels
MOST_JOINTS = 16  # with plots of their own: those with the largest error
COLOURS = (ORANGE, RED)  # of predictions


@dataclass(frozen=True)
class Curves:
    """One log beside predictions of it. Shape of arrays, unless stated: (samples, joints)."""

    name: str
    joints: tuple[str, ...]
    time: Array
    """[s]. Shape: (samples,)."""
    measured: Array
    command: Array
    predictions: Mapping[str, Array]
    """By label; at most two."""
    stretch: Ints
    """Number of the stretch that each sample belongs to. Shape: (samples,)."""


def names_of(paths: Sequence[str]) -> list[str]:
    """What to call logs: by their file names where these differ."""
    short = [os.path.basename(p) for p in paths]
    return short if len(set(short)) == len(short) else list(paths)


def stretches(time: Array, seconds: float) -> Ints:
    """The number of the stretch that each sample belongs to; a short rest at the end belongs to the stretch before."""
    since = np.nan_to_num(time - time[:1])
    return np.minimum(since // seconds, max(0, round(float(since.max(initial=0.0)) / seconds) - 1)).astype(np.int64)


def rms(off: Array) -> float:
    """Root mean square of what is finite; NaN if nothing is."""
    off = off[np.isfinite(off)]
    return float(np.sqrt(np.mean(off**2))) if len(off) else float("nan")


def overlays(logs: Sequence[Curves], judged: str, units: Mapping[str, str]) -> Iterator[Section]:
    """A typical stretch of each joint, and the worst one.

    Args:
        logs: all of the same joints in the same order.
        judged: the prediction whose error chooses the stretches.
        units: of each joint's position.
    """
    if not logs:
        return
    joints = logs[0].joints
    pieces = [(c, rows) for c in logs for k in np.unique(c.stretch) if len(rows := np.flatnonzero(c.stretch == k)) > 1]
    errors = np.array([[rms((c.predictions[judged] - c.measured)[rows, j]) for j in range(len(joints))] for c, rows in pieces])
    errors = errors.reshape(len(pieces), len(joints))
    mean = np.array([rms(column) for column in errors.T])
    kept = np.sort(np.argsort(-np.nan_to_num(mean, nan=-1.0), kind="stable")[:MOST_JOINTS])
    names = dict(zip([c.name for c in logs], names_of([c.name for c in logs]), strict=True)) if len(logs) > 1 else {}
    legend = [("measured", BLUE), ("command", GREY), *zip(logs[0].predictions, COLOURS, strict=False)]
    few = f" The {MOST_JOINTS} joints with the largest error." if len(joints) > MOST_JOINTS else ""
    for title, place in (("A typical stretch of each joint", 0.5), ("The worst stretch of each joint", 1.0)):
        plots = []
        for j in kept.tolist():
            seen = np.flatnonzero(np.isfinite(errors[:, j]))
            if len(seen):
                order = seen[np.argsort(errors[seen, j], kind="stable")]
                chosen = int(order[min(int(place * len(order)), len(order) - 1)])
                plots.append(_overlay(*pieces[chosen], j, units[joints[j]], names, float(errors[chosen, j])))
        if plots:
            yield Section(title, f"Below, the error: predicted minus measured.{few}", legend=legend, plots=plots)


def _overlay(log: Curves, rows: Ints, joint: int, unit: str, names: Mapping[str, str], error: float) -> Plot:
    rows = rows[:: max(1, -(-len(rows) // MOST_POINTS))]
    factor, label = shown(unit)
    time, command, measured = log.time[rows], factor * log.command[rows, joint], factor * log.measured[rows, joint]
    data = [line(time, measured, BLUE, 3, name="measured")]
    data += [line(time, command, GREY, 1, name="command")] if np.isfinite(command).any() else []
    for (name, values), colour in zip(log.predictions.items(), COLOURS, strict=False):
        predicted = factor * values[rows, joint]
        data.append(line(time, predicted, colour, 1.4, name=name))
        data.append(line(time, predicted - measured, colour, 1.4, name=name) | {"yaxis": "y2"})
    layout = {
        "xaxis": {"title": {"text": "s"}, "anchor": "y2"},
        "yaxis": {"title": {"text": label}, "domain": [0.42, 1]},
        "yaxis2": {"title": {"text": "error"}, "domain": [0, 0.32], "nticks": 4, "zeroline": True},
    }
    where = f" in {names[log.name]}" if names else ""
    return Plot(f"{log.joints[joint]}{where}: {size(error, unit)} off", data, layout, height=250)
