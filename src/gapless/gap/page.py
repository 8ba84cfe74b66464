"""The report of a gap: how far the model is from the robot, by joint, signal and time ahead; on a page and in a terminal."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from rich.console import RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from gapless.gap.distribution import Distances
from gapless.measure import overlays
from gapless.report import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    Cell,
    Plot,
    Section,
    Table,
    Verdict,
    known,
    line,
    percent,
    short,
    shown,
    size,
)

if TYPE_CHECKING:
    from gapless.gap.by_horizon import Gap

AHEAD = {"step": "one sample ahead", "0.1": "0.1 s ahead", "0.5": "0.5 s ahead", "1": "1 s ahead", "free": "over whole logs"}
TICKS = {"step": "1 sample", "0.1": "0.1 s", "0.5": "0.5 s", "1": "1 s", "free": "whole log"}
PREDICTIONS = {
    "hold": ("last state held", PURPLE, ("▽", "dim")),
    "command": ("command", GREY, ("□", "white")),
    "delay": ("command, late", GREEN, ("◇", "green")),
    "given": ("model", ORANGE, ("●", "bold yellow")),
    "twin": ("with the causes", RED, ("▲", "bold red")),
}
"""Label, colour on a page, mark and style in a terminal."""
FLOOR = ("┊", "blue")
STRIP = 44  # letters of an axis in a terminal
NEAR = 2.0  # times the noise floor: an error that is good news


def verdict(gap: Gap) -> Verdict:
    """How far, in a sentence or two."""
    error, noise = gap.mean("given"), gap.over_joints(gap["q"].noise)
    if not known(error):
        text = f"The model's physics breaks in {gap.broken} of {gap.windows} replays, so it predicts nothing."
        return Verdict(text, good=False)
    times = f"{error / noise:.2g} times" if noise > 0 else "above"
    text = f"The model is {off(gap)}: {times} {_noise(gap)}."
    for baseline in ("delay", "command"):
        if gap.mean(baseline) < error:
            closer = size(gap.mean(baseline), gap.unit)
            text += f" The {PREDICTIONS[baseline][0]}, without any model, is closer ({closer})."
            break
    return Verdict(text, good=error < NEAR * noise)


def off(gap: Gap) -> str:
    """How far off the model as given is, in words."""
    q = gap["q"]
    moving = q.relative("given", gap.horizon)[np.array(q.units) == gap.unit]
    share = float(np.mean(moving[np.isfinite(moving)])) if np.isfinite(moving).any() else math.nan
    of = f", {percent(share)} of the motion" if known(share) else ""
    return f"{size(gap.mean('given'), gap.unit)} off {AHEAD[gap.horizon]}{of}"


def sections(gap: Gap) -> Iterator[Section | None]:
    """The page of a gap alone."""
    yield _summary(gap)
    text = "The error by time ahead. Dotted lines need no model."
    legend = [PREDICTIONS[p][:2] for p in reversed(PREDICTIONS) if curve(gap, p)] + [("noise floor", BLUE)]
    yield Section("How far", text, legend=legend, plots=[_horizons(gap)], wide=True)
    units = dict(zip(gap["q"].columns, gap["q"].units, strict=True))
    predictions = {"model": "given", **({"with the causes": "twin"} if gap.with_causes else {})}
    yield from overlays(gap.traces, predictions, "given", units)
    yield _joints(gap)
    yield _signals(gap)
    yield distribution(gap.distances)
    yield gap.origin.section(("motion", gap.used))


def _summary(gap: Gap) -> Section:
    """What predicts how well, and the robot beside its twins."""
    shown_first = ("twin", "given", "delay", "command")
    rows = [[PREDICTIONS[p][0], size(gap.mean(p), gap.unit)] for p in shown_first if gap.horizon in curve(gap, p)]
    rows.append(["noise floor", size(gap.over_joints(gap["q"].noise), gap.unit)])
    return Section("At a glance", "", Table(("predicted by", f"error {AHEAD[gap.horizon]}"), rows), film=gap.moving)


def curve(gap: Gap, prediction: str) -> dict[str, float]:
    """Error by horizon of a prediction, where there is one."""
    if prediction == "twin" and not gap.with_causes:
        return {}
    by = {h: gap.mean(prediction, h) for h in TICKS}
    return {h: v for h, v in by.items() if known(v) and v > 0}


def _horizons(gap: Gap) -> Plot:
    """Error against time ahead on a logarithmic axis; positions of the horizons are even, for a whole log has no length."""
    place = {h: i for i, h in enumerate(TICKS)}
    factor, unit = shown(gap.unit)
    data = []
    for prediction, (label, colour, _) in PREDICTIONS.items():
        by, ours = curve(gap, prediction), prediction in ("given", "twin")
        if by:
            x, y = [place[h] for h in by], [factor * v for v in by.values()]
            mark = line(x, y, colour, 2.5 if ours else 1.3, "solid" if ours else "dot", label)
            data.append(mark | {"mode": "lines+markers", "marker": {"size": 8 if ours else 5, "color": colour}})
    floor, ends = gap.over_joints(gap["q"].noise), [-0.3, len(place) - 0.5]
    if floor > 0:
        data.append(line(ends, [factor * floor] * 2, BLUE, 1.5, "dash", "noise floor"))
    layout = {
        "xaxis": {"tickvals": list(place.values()), "ticktext": list(TICKS.values()), "range": ends},
        "yaxis": {"type": "log", "title": f"error [{unit}]", "dtick": 1, "exponentformat": "none"},
    }
    return Plot("Error, mean over joints", data, layout, height=250)


def glance(gap: Gap) -> Iterable[RenderableType]:
    """The same for a terminal: a row for each horizon, errors as marks on one logarithmic axis."""
    factor, unit = shown(gap.unit)
    curves = {p: {h: factor * v for h, v in curve(gap, p).items()} for p in PREDICTIONS if curve(gap, p)}
    floor = factor * gap.over_joints(gap["q"].noise)
    every = [v for c in curves.values() for v in c.values()] + [floor] * (floor > 0)
    if not every:
        return []
    low = math.floor(math.log10(min(every)))
    high = max(math.ceil(math.log10(max(every))), low + 1)

    def place(value: float) -> int:
        return round((STRIP - 1) * min(max((math.log10(value) - low) / (high - low), 0.0), 1.0))

    axis = [" "] * (STRIP + 6)
    for power in range(low, high + 1):
        tick = f"{10.0**power:g}"
        axis[place(10.0**power) : place(10.0**power) + len(tick)] = tick
    table = RichTable(box=None, pad_edge=False)
    for heading in ("", "".join(axis).rstrip(), "model"):
        table.add_column(heading, no_wrap=True, justify="right" if heading == "model" else "left")
    for h, name in TICKS.items():
        cells = [Text("·", "bright_black") for _ in range(STRIP)]
        if floor > 0:
            cells[place(floor)] = Text(*FLOOR)
        for p, c in curves.items():
            if h in c:
                cells[place(c[h])] = Text(*PREDICTIONS[p][2])
        error = gap.mean("given", h)
        table.add_row(name, Text("").join(cells), f"{factor * error:.3g}" if known(error) else "broke")
    marks = [Text.assemble(PREDICTIONS[p][2], f" {PREDICTIONS[p][0]}") for p in curves]
    marks += [Text.assemble(FLOOR, " noise floor")] * (floor > 0)
    used = Text(f"how far: error, mean over joints [{unit}]; {gap.used}", "italic")
    return [Text(""), used, table, Text("  ").join(marks)]


def distribution(distances: Distances) -> Section | None:
    """Distances between distributions, the worst columns first."""
    every = [("all, sliced", distances.sliced), ("all, kernel (MMD)", distances.mmd), *distances.columns.items()]
    rows = [(name, d) for name, d in every if known(d.size) and d.usual > 0]
    rows = rows[:2] + sorted(rows[2:], key=lambda row: -row[1].ratio)
    text = (
        "How far apart the states are that the robot and the free-running model were in, whenever that was, in units of how "
        "much each signal moves; beside it, two halves of the robot's own log. This needs no alignment in time."
    )
    cells = [[name, short(d.size), short(d.usual), short(d.ratio)] for name, d in rows]
    table = Table(("state", "model", "robot itself", "ratio"), cells, fold=f"{len(rows)} distances")
    return Section("Distribution of states", text, table) if rows else None


def _joints(gap: Gap) -> Section:
    q = gap["q"]
    error, relative = q.of("given", gap.horizon), q.relative("given", gap.horizon)
    most = np.nanmax(np.where(np.isfinite(relative), relative, 0.0), initial=1e-9)
    rows: list[list[str | Cell]] = []
    for j, (name, unit) in enumerate(zip(q.columns, q.units, strict=True)):
        rows.append(
            [
                name,
                size(error[j], unit),
                Cell(percent(relative[j]), float(relative[j] / most) if known(relative[j]) else 0.0),
                size(q.noise[j], unit),
                short(error[j] / q.noise[j]) if q.noise[j] > 0 else "–",
                f"{1000 * gap.delays[name]:.0f} ms" if name in gap.delays else "–",
            ]
        )
    head = ("joint", "error", "of the motion", "noise floor", "error / noise", "follows after")
    text = [f"Of the model as given, {AHEAD[gap.horizon]}.", f"The noise floor is {_noise(gap)}."]
    if gap.delays:
        text.append("A joint follows its command by its delay and by the lag of its drive, which the model has already.")
    return Section("By joint", text, Table(head, rows))


def _signals(gap: Gap) -> Section:
    rows = []
    for signal, e in gap.errors.items():
        for i, (column, unit) in enumerate(zip(e.columns, e.units, strict=True)):
            figures = [*(e.of("given", h)[i] for h in TICKS), e.moves[i], e.noise[i]]
            rows.append([f"{signal} {column}", *(size(f, unit) for f in figures)])
    head = ("signal", *TICKS.values(), "moves by", "noise floor")
    table = Table(head, rows, fold=f"All {len(rows)} signals in numbers")
    return Section("By signal and time ahead", "Of the model as given.", table)


def _noise(gap: Gap) -> str:
    floor = gap["q"].floor
    what = "how far the robot is from itself" if (floor.repeated > 0).any() else "the sensors' noise"
    return f"{what} ({size(gap.over_joints(floor.size), gap.unit)})"
