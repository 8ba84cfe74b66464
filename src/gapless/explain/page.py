"""The report of a diagnosis: why the model is off, how far, and what to do next; on a page and in a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from gapless.gap import gap_off
from gapless.identify import hidden, hidden_section
from gapless.report import GREY, ORANGE, Cell, Plot, Section, Table, Verdict, dots, known, literal, percent, short, span

if TYPE_CHECKING:
    from gapless.explain.causes import Cause
    from gapless.explain.diagnosis import Diagnosis

SMALL, MUCH = 0.05, 0.25  # shares: of a cause, and of all tolerances together, that are worth a sentence
MOST_ROWS = 12  # of parameters that are shown at once
MOST_STEPS = 5  # of what to do next that a terminal shows
WORDS = 24  # letters that fit beside a bar of a plot
NAME, BAR = 32, 24  # letters, in a terminal


def verdict(diagnosis: Diagnosis) -> Verdict:
    """How far and why, in a few short sentences."""
    why, how_far = diagnosis.explanation, diagnosis.gap.verdict()
    if not known(diagnosis.gap.mean("given")):
        return how_far
    if why.verdict == "none":
        none = f"No gap above noise and tolerances: the model is {gap_off(diagnosis.gap)}"
        return Verdict(f"{none}, as numbers within their tolerances would make it. {hidden(why.limits)}", good=True)
    text = [how_far.text]
    causes = [f"{cause(c)} ({percent(c.share)})" for c in why.mechanisms if c.share >= SMALL][:3]
    if causes:
        text.append(f"Because of {causes[0]}" + (f", then {' and '.join(causes[1:])}" if causes[1:] else "") + ".")
    if why.tolerances >= MUCH:
        text.append(f"Many small numbers within their tolerances make {percent(why.tolerances)}.")
    if why.verdict == "non-parametric":
        text.append(f"{percent(why.remainder.share)} of it no parameter explains.")
    return Verdict(" ".join(text), good=False)


def sections(diagnosis: Diagnosis) -> Iterator[Section | None]:
    """The page after its verdict."""
    yield _summary(diagnosis)
    steps = [[f"{i}. {step}"] for i, step in enumerate(diagnosis.explanation.next, start=1)]
    yield Section("What to do next", table=Table(("",), steps)) if steps else None
    _, how_far, *details, made_from = (s for s in diagnosis.gap.sections() if s)
    used = (
        f"Causes were looked for in {diagnosis.explanation.seconds_used:.0f} s, the error measured over {diagnosis.gap.used}."
    )
    text = [
        "Causes by their share of the error, with 90 % intervals; and the error by time ahead. Dotted lines need no model.",
        used,
    ]
    plots = [*_causes(diagnosis), *how_far.plots]
    yield Section("Why, and how far", text, legend=how_far.legend, plots=plots, wide=True)
    yield from (
        *details,
        _parameters(diagnosis),
        _remainder(diagnosis),
        hidden_section(diagnosis.explanation.limits),
        _task(diagnosis),
        made_from,
    )


def _summary(diagnosis: Diagnosis) -> Section:
    """The causes and what they were found to be, and the robot beside its twins."""
    rows = []
    for c in diagnosis.explanation.mechanisms:
        given, found = (span([(getattr(p, side), p.unit) for p in c.parameters.values()]) for side in ("nominal", "value"))
        rows.append([cause(c), percent(c.share), given, found])
    rows += [[label, percent(share), "", ""] for label, share in _rest(diagnosis).items()]
    table = Table(("why", "share of the error", "in the model", "found"), rows)
    return Section("At a glance", "", table, film=diagnosis.gap.moving)


def glance(diagnosis: Diagnosis) -> list[RenderableType]:
    """Bars of causes, what to do next, and the error over time ahead."""
    parts = [p for p in (_bars(diagnosis),) if p]
    steps = RichTable(title="what to do next", title_justify="left", box=None, show_header=False, pad_edge=False)
    for i, step in enumerate(diagnosis.explanation.next[:MOST_STEPS], start=1):
        steps.add_row(f"{i}.", Text(step))
    return [*parts, *([Group(Text(""), steps)] if diagnosis.explanation.next else []), *diagnosis.gap.glance()]


def cause(c: Cause) -> str:
    """A cause, where it is, and what the logs cannot tell it from."""
    more = f" and {len(c.joints) - 2} more" if len(c.joints) > 2 else ""
    where = f" of {', '.join(c.joints[:2])}{more}" if c.joints else ""
    return " or ".join([f"{c.name}{where}", *c.group])


def _rest(diagnosis: Diagnosis) -> dict[str, float]:
    """Shares that are no cause's."""
    why = diagnosis.explanation
    return {"numbers within tolerance": why.tolerances, "no parameter explains": why.remainder.share}


def _causes(diagnosis: Diagnosis) -> Iterator[Plot]:
    """Shares as horizontal bars with intervals, the largest on top; what is left in grey."""
    causes = [c for c in diagnosis.explanation.mechanisms if known(c.share)]
    if not causes:
        return
    rows = [(literal(label), share, share, share) for label, share in _rest(diagnosis).items() if known(share)][::-1]
    others = len(rows)
    for c in causes[::-1]:  # plotly's first bar is the lowest
        ends = [c.share, *(end for end in (c.low, c.high) if known(end))]
        rows.append((_lines(c), c.share, min(ends), max(ends)))
    place, colours = list(range(len(rows))), [GREY] * others + [ORANGE] * len(causes)
    share, low, high = (100 * np.array([r[k] for r in rows]) for k in (1, 2, 3))
    bars = {"type": "bar", "orientation": "h", "y": place, "x": share.tolist(), "marker": {"color": colours}}
    interval = dots(share[others:], place[others:], GREY, 1, 0.0)
    interval["error_x"] = {"type": "data", "symmetric": False, "thickness": 1.5, "width": 4, "color": GREY}
    interval["error_x"] |= {"array": (high - share)[others:].tolist(), "arrayminus": (share - low)[others:].tolist()}
    labels = dots(np.maximum(high, 0.0), place, GREY, 1, 0.0) | {"mode": "text", "textposition": "middle right"}
    labels["text"] = [f" {s:.0f} %" for s in share]
    left, right = min(0.0, float(low.min())), max(0.0, float(high.max()), 1.0)
    view = [left - 0.02 * right, right + 0.35 * (right - left)]
    layout = {
        "xaxis": {"range": view, "title": "% of the squared error"},
        "yaxis": {"tickvals": place, "ticktext": [r[0] for r in rows], "nticks": len(rows), "showgrid": False},
        "bargap": 0.45,
    }
    yield Plot("Causes", [bars, interval, labels], layout, height=max(250, 70 + 34 * len(rows)))


def _lines(c: Cause) -> str:
    """A cause in a few short lines."""
    where = [f"({c.joints[0]})" if len(c.joints) == 1 else f"({len(c.joints)} joints)"] if c.joints else []
    lines = [c.name, *where, *(f"or {g}" for g in c.group)]
    return "<br>".join(literal(t if len(t) <= WORDS else t[: WORDS - 1] + "…") for t in lines[:3])


def _bars(diagnosis: Diagnosis) -> RenderableType | None:
    """Shares as bars with their intervals; the loss of the task beside them, where it is known."""
    causes, losses = [c for c in diagnosis.explanation.mechanisms if known(c.share)], diagnosis.explanation.task
    if not causes:
        return None
    title = f"why: share of the error, with 90 % interval; from {diagnosis.explanation.seconds_used:.0f} s of logs"
    table = RichTable(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column(max_width=NAME)
    table.add_column(no_wrap=True, min_width=BAR)
    table.add_column(no_wrap=True)
    if losses:
        table.add_column("task loss (place)", justify="right")
    lost = {name: f"{loss:.3g} ({place}.)" for place, (name, loss) in enumerate(losses.items(), start=1)}
    rest = {label: share for label, share in _rest(diagnosis).items() if known(share)}
    top = max([c.high if known(c.high) else c.share for c in causes] + list(rest.values()) + [0.01])
    for c in causes:
        interval = f"  ({100 * c.low:.0f} to {100 * c.high:.0f})" if known(c.low) and known(c.high) else ""
        row = [Text(cause(c)), _bar(c.share / top, c.high / top), Text(f"{percent(c.share)}{interval}")]
        table.add_row(*row, *([Text(lost.pop(c.name, "-"))] if losses else []))
    for label, share in rest.items():
        table.add_row(Text(label, "dim"), _bar(share / top, share / top, "bright_black"), Text(percent(share)))
    for name, loss in lost.items():
        table.add_row(Text(name), Text(""), Text("-"), Text(loss))
    return table


def _bar(share: float, high: float, style: str = "yellow") -> Text:
    """A bar up to the share, and a line to the end of its interval; both as parts of the longest."""
    full, end = (round(BAR * min(max(v, 0.0), 1.0)) if known(v) else 0 for v in (share, high))
    reach = "─" * (end - full - 1) + "┤" if end > full else ""
    return Text.assemble(("█" * full, style), (reach, "bright_black"), " " * (BAR - max(end, full)))


def _parameters(diagnosis: Diagnosis) -> Section | None:
    """What the causes were found to be."""
    rows = []
    for c in diagnosis.explanation.mechanisms:
        for name, p in c.parameters.items():
            rows.append([name, short(p.nominal), short(p.value), short(p.value / p.nominal) if p.nominal else "–", p.unit])
    head = ("parameter", "as given", "found", "found / given", "unit")
    text = "The numbers that explain the gap best, all else within its tolerance. `gapless fit` gives intervals too."
    fold = f"{len(rows)} parameters" if len(rows) > MOST_ROWS else ""
    return Section("Parameters", text, Table(head, rows, fold=fold)) if rows else None


def _remainder(diagnosis: Diagnosis) -> Section | None:
    """What no parameter explains: where it is, in words and as a map of joints and phases."""
    rest, table = diagnosis.explanation.remainder, None
    text = [f"{percent(rest.share)} of the squared error is left when every cause has its best value.", *rest.where]
    if diagnosis.phases:
        phases = list(dict.fromkeys(phase for ratios in diagnosis.phases.values() for phase in ratios))
        most = max([r for ratios in diagnosis.phases.values() for r in ratios.values() if r is not None] + [1e-9])
        rows: list[list[str | Cell]] = []
        for joint, ratios in diagnosis.phases.items():
            cells = [ratios.get(phase) for phase in phases]
            rows.append([joint, *(Cell("–", 0.0) if r is None else Cell(f"{r:.2g}", r / most) for r in cells)])
        table = Table(("joint", *phases), rows)
        text.append(
            "In the table: mean squared error in a phase over that elsewhere, with the causes put in; 1 is as everywhere."
        )
    return Section("What no parameter explains", text, table) if known(rest.share) or table else None


def _task(diagnosis: Diagnosis) -> Section | None:
    """Two rankings side by side: what makes the error, and what costs the task."""
    losses, shares = diagnosis.explanation.task, {c.name: c.share for c in diagnosis.explanation.mechanisms}
    by_share = sorted(shares, key=lambda name: -shares[name])
    most = max([abs(loss) for loss in losses.values()] + [1e-9])
    rows: list[list[str | Cell]] = []
    for place, (name, loss) in enumerate(losses.items(), start=1):
        made = f"{percent(shares[name])} ({by_share.index(name) + 1}.)" if name in shares else "–"
        rows.append([f"{place}. {name}", Cell(f"{loss:.3g}", max(loss, 0.0) / most), made])
    text = "What costs the task is another question than what makes the error, and often has another answer."
    table = Table(("cause", "loss of the task", "share of the error (place)"), rows)
    return Section("What it costs the task", text, table) if rows else None
