"""Overlays for a page: one stretch of each joint, what was measured beside what was predicted, and below it the errors."""

import os
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from gapless.arrays import Array, Ints
from gapless.measure.trace import Trace
from gapless.report import BLUE, GREY, ORANGE, RED, Plot, Section, line, shown, size

MOST_POINTS = 400  # of a line; a plot is not wider in pixels
MOST_JOINTS = 16  # with plots of their own: those with the largest error
COLOURS = (ORANGE, RED)  # of predictions


def names_of(traces: Sequence[Trace]) -> list[str]:
    """What to call logs: by their file names where these differ."""
    short = [os.path.basename(t.name) for t in traces]
    return short if len(set(short)) == len(short) else [t.name for t in traces]


def rms(off: Array) -> float:
    """Root mean square of what is finite; NaN if nothing is."""
    off = off[np.isfinite(off)]
    return float(np.sqrt(np.mean(off**2))) if len(off) else float("nan")


def overlays(
    traces: Sequence[Trace], predictions: Mapping[str, str], judged: str, units: Mapping[str, str]
) -> Iterator[Section]:
    """A typical window of each joint, and the worst one.

    Args:
        traces: all of the same joints in the same order.
        predictions: label to the trace's field; at most two.
        judged: the field whose error chooses the windows.
        units: of each joint's position.
    """
    joints = traces[0].joints if traces else ()
    pieces = [(t, rows) for t in traces for k in np.unique(t.window) if len(rows := np.flatnonzero(t.window == k)) > 1]
    errors = np.array([[rms(t.error(judged)[rows, j]) for j in range(len(joints))] for t, rows in pieces])
    errors = errors.reshape(len(pieces), len(joints))
    mean = np.array([rms(column) for column in errors.T])
    kept = np.sort(np.argsort(-np.nan_to_num(mean, nan=-1.0), kind="stable")[:MOST_JOINTS]).tolist()
    names = {t.name: f" in {name}" for t, name in zip(traces, names_of(traces), strict=True) if len(traces) > 1}
    legend = [("measured", BLUE), ("command", GREY), *zip(predictions, COLOURS, strict=False)]
    few = f" The {MOST_JOINTS} joints with the largest error." if len(joints) > MOST_JOINTS else ""
    for title, place in (("A typical stretch of each joint", 0.5), ("The worst stretch of each joint", 1.0)):
        plots = []
        for j in kept:
            seen = np.flatnonzero(np.isfinite(errors[:, j]))
            if len(seen):
                order = seen[np.argsort(errors[seen, j], kind="stable")]
                chosen = int(order[min(int(place * len(order)), len(order) - 1)])
                trace, rows = pieces[chosen]
                caption = f"{joints[j]}{names.get(trace.name, '')}: {size(float(errors[chosen, j]), units[joints[j]])} off"
                plots.append(_overlay(trace, rows, j, predictions, units[joints[j]], caption))
        if plots:
            yield Section(title, f"Below, the error: predicted minus measured.{few}", legend=legend, plots=plots)


def _overlay(trace: Trace, rows: Ints, joint: int, predictions: Mapping[str, str], unit: str, caption: str) -> Plot:
    rows = rows[:: max(1, -(-len(rows) // MOST_POINTS))]
    factor, label = shown(unit)
    time, command, measured = trace.time[rows], factor * trace.command[rows, joint], factor * trace.measured[rows, joint]
    data = [line(time, measured, BLUE, 3, name="measured")]
    data += [line(time, command, GREY, 1, name="command")] if np.isfinite(command).any() else []
    for (name, field), colour in zip(predictions.items(), COLOURS, strict=False):
        off = factor * trace.error(field)[rows, joint]
        data.append(line(time, measured + off, colour, 1.4, name=name))
        data.append(line(time, off, colour, 1.4, name=name) | {"yaxis": "y2"})
    layout = {
        "xaxis": {"title": "s", "anchor": "y2"},
        "yaxis": {"title": label, "domain": [0.42, 1]},
        "yaxis2": {"title": "error", "domain": [0, 0.32], "nticks": 4, "zeroline": True},
    }
    return Plot(caption, data, layout, height=250)
