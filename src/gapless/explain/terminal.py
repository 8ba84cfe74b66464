"""A gap in the terminal: the verdict, bars of causes, error over horizon against the baselines, what to do next."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from gapless.explain.page import LABELS, REST, TICKS, cause, curve, verdict
from gapless.gap import HORIZONS
from gapless.report import known, percent, shown

NAME, BAR = 32, 24  # letters
STRIP = 44
MARKS = {"hold": ("▽", "dim"), "command": ("□", "white"), "delay": ("◇", "green"), "given": ("●", "bold yellow")}
MARKS |= {"twin": ("●", "bold red")}
FLOOR = ("┊", "blue")
MOST_STEPS = 5  # of what to do next; the report has all


def show(summary: Mapping[str, Any], console: Console) -> None:
    """Print the picture of a gap; summary: the content of gap.json."""
    said = verdict(summary)
    console.print(Panel(Text(said.text), border_style="green" if said.good else "yellow", title="gap", title_align="left"))
    parts = [p for p in (_causes(summary), _next(summary), _horizons(summary)) if p]
    console.print(Group(*parts))


def _causes(summary: Mapping[str, Any]) -> RenderableType | None:
    """Shares as bars with their intervals; the loss of the task beside them, where it is known."""
    causes = [m for m in summary.get("mechanisms") or [] if known(m.get("share"))]
    if not causes:
        return None
    losses = {t["name"]: t["loss"] for t in summary.get("task") or []}
    order = sorted(losses, key=lambda n: -losses[n])
    table = Table(title="why: share of the error, with 90 % interval", title_justify="left", box=None, pad_edge=False)
    table.add_column(max_width=NAME)
    table.add_column(no_wrap=True, min_width=BAR)
    table.add_column(no_wrap=True)
    if losses:
        table.add_column("task loss (place)", justify="right")
    rest = summary.get("remainder") or {}
    others = [float(rest[key]) for key in REST.values() if known(rest.get(key))]
    top = max([m["high"] if known(m.get("high")) else m["share"] for m in causes] + others + [0.01])
    for m in causes:
        share, low, high = m["share"], m.get("low"), m.get("high")
        interval = "" if low is None or high is None else f"  ({100 * low:.0f} to {100 * high:.0f})"
        row: list[RenderableType] = [Text(cause(m)), _bar(share, low, high, top), Text(f"{percent(share)}{interval}")]
        if losses:
            name = str(m["name"])
            row.append(Text(f"{losses[name]:.3g} ({order.index(name) + 1}.)" if name in losses else "-"))
        table.add_row(*row)
    for label, key in REST.items():
        if known(rest.get(key)):
            table.add_row(Text(label, "dim"), _bar(float(rest[key]), None, None, top, "bright_black"), Text(percent(rest[key])))
    for name in (n for n in order if n not in {str(m["name"]) for m in causes}):
        table.add_row(Text(str(name)), Text(""), Text("-"), Text(f"{losses[name]:.3g} ({order.index(name) + 1}.)"))
    return table


def _bar(share: float, low: float | None, high: float | None, top: float, style: str = "yellow") -> Text:
    """A bar up to the share, and a line over its interval."""

    def place(value: float) -> int:
        return round(BAR * min(max(value / top, 0.0), 1.0))

    letters = ["█" if i < place(share) else " " for i in range(BAR)]
    text = Text("".join(letters), style)
    if low is not None and high is not None and place(high) > place(share):
        reach = Text("─" * (place(high) - place(share) - 1) + "┤", "bright_black")
        text = Text("█" * place(share), style) + reach + Text(" " * (BAR - place(high)))
    return text


def _horizons(summary: Mapping[str, Any]) -> RenderableType:
    """A row for each horizon, errors as marks on one logarithmic axis."""
    unit = summary["error"]["unit"]
    factor, label = shown(unit)
    curves = {p: {h: factor * v for h, v in curve(summary, p).items()} for p in MARKS}
    curves = {p: c for p, c in curves.items() if c}
    floor = factor * (summary["noise_floor"]["value"] or 0.0)
    every = [v for c in curves.values() for v in c.values()] + ([floor] if floor > 0 else [])
    if not every:
        return Text("")
    low, high = math.floor(math.log10(min(every))), math.ceil(math.log10(max(every)))
    high = max(high, low + 1)

    def place(value: float) -> int:
        return round((STRIP - 1) * min(max((math.log10(value) - low) / (high - low), 0.0), 1.0))

    table = Table(
        title=Text(f"how far: error, mean over joints [{label}]", "italic"), title_justify="left", box=None, pad_edge=False
    )
    axis = [" "] * (STRIP + 6)
    for power in range(low, high + 1):
        tick = f"{10.0**power:g}"
        axis[place(10.0**power) : place(10.0**power) + len(tick)] = tick
    for heading in ("", "".join(axis).rstrip(), "model"):
        table.add_column(heading, no_wrap=True, justify="right" if heading == "model" else "left")
    for h in HORIZONS:
        cells = [Text("·", "bright_black") for _ in range(STRIP)]
        if floor > 0:
            cells[place(floor)] = Text(*FLOOR)
        for p, c in curves.items():
            if h in c:
                cells[place(c[h])] = Text(*MARKS[p])
        error = summary["error"]["horizons"][h]
        table.add_row(TICKS[h], Text("").join(cells), "broke" if error is None else f"{factor * error:.3g}")
    legend = Text("  ").join(
        [Text.assemble(MARKS[p], f" {LABELS[p]}") for p in curves]
        + ([Text.assemble(FLOOR, " noise floor")] if floor > 0 else [])
    )
    return Group(Text(""), table, legend)


def _next(summary: Mapping[str, Any]) -> RenderableType | None:
    steps = [str(s) for s in summary.get("next") or []]
    if not steps:
        return None
    table = Table(title="what to do next", title_justify="left", box=None, show_header=False, pad_edge=False)
    for i, step in enumerate(steps[:MOST_STEPS], start=1):
        table.add_row(f"{i}.", Text(step))
    return Group(Text(""), table)
