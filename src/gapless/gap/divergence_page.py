"""The report of a replay experiment: how two runs of the same commands part."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gapless.report import BLUE, GREY, ORANGE, Plot, Section, Table, Verdict, flat, line, percent, short, size, write

if TYPE_CHECKING:
    from rich.console import Console

LABELS = {"itself": "robot beside itself", "twin": "twin beside robot"}
COLOURS = {"itself": BLUE, "twin": ORANGE}
BARS, COLUMNS = "▁▂▃▄▅▆▇█", 50


def page(summary: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write the report of a replay experiment to an HTML file; summary: the content of experiment.json."""
    runs = [k for k in ("itself", "twin") if summary.get(k)]
    sections = []
    if runs:
        plots = [_parting(summary[k], COLOURS[k], LABELS[k]) for k in runs]
        said = f"Distance of positions as a share of the motion; dashed: {percent(summary[runs[0]]['share'])}."
        sections.append(Section("How they part", said, legend=[(LABELS[k], COLOURS[k]) for k in runs], plots=plots))
        rows = [[LABELS[k], *_figures(summary[k])] for k in runs]
        head = ("", "at first", "in the end", "growth [1/s]", "90 % interval", "comparable for")
        sections.append(Section("In figures", table=Table(head, rows)))
        joints = [[j, *(size(summary[k]["joints"][j], "rad") for k in runs)] for j in summary[runs[0]]["joints"]]
        sections.append(
            Section("By joint", "Root mean square difference.", Table(("joint", *(LABELS[k] for k in runs)), joints))
        )
        pairs = [[LABELS[k], str(p)] for k in runs for p in summary[k]["pairs"]]
        sections.append(Section("Compared", table=Table(("", "runs"), pairs, words=2, fold=f"{len(pairs)} pairs of runs")))
    made = list(flat(summary.get("provenance") or {}))
    apart = distribution_section(summary)
    sections += [apart] if apart and not runs else []
    sections.append(Section("Made from", table=Table(("", ""), [list(r) for r in made], words=2)))
    write(path, "Replay experiment", verdict(summary), sections)


def verdict(summary: Mapping[str, Any]) -> Verdict:
    """What the experiment says, in a sentence or two."""
    said, good = [], True
    for key, who, whom in (
        ("itself", "Told the same again, the robot", "itself"),
        ("twin", "Told the same, the twin", "the robot"),
    ):
        d = summary.get(key)
        if not d:
            continue
        rate, low, high = (d["growth"][k] for k in ("rate", "low", "high"))
        if rate is None:
            text = f"{who} differs from {whom} by {percent(d['end'])} of the motion, and that does not grow"
        else:
            text = (
                f"{who} parts from {whom} by a factor of e every {1 / rate:.2g} s ({rate:.3g} 1/s, {low:.3g} to {high:.3g}), "
            )
            text += f"up to {percent(d['end'])} of the motion"
        if d["horizon"] is None:
            text += f": open-loop comparison means something for all {d['seconds']:.3g} s."
        else:
            text += f": after {d['horizon']:.2g} s ({percent(d['share'])} of the motion) open-loop comparison means little."
            good = False
        said.append(text)
    if not said:
        d = summary["distribution"]["sliced"]
        ratio = f"{d['size'] / d['usual']:.2g} times" if d["size"] is not None and d["usual"] else "not comparable with"
        said.append(
            f"Not comparable over time: {summary['note']}. The states are {ratio} as far apart as two halves of one log."
        )
        good = False
    return Verdict(" ".join(said), good)


def _parting(d: Mapping[str, Any], colour: str, label: str) -> Plot:
    """Distance over time on a logarithmic axis: the middle pair, and the range of all."""
    curve = {k: np.array([math.nan if v is None else v for v in d["curve"][k]]) for k in ("time", "low", "middle", "high")}
    data = [line(curve["time"], 100 * np.maximum(curve["middle"], 1e-6), colour, 2.5, name=label)]
    if len(d["pairs"]) > 1:
        data += [line(curve["time"], 100 * np.maximum(curve[k], 1e-6), colour, 0.8, name=k) for k in ("low", "high")]
    data.append(line([0, d["seconds"]], [100 * d["share"]] * 2, GREY, 1.3, "dash", "share"))
    layout = {
        "xaxis": {"title": {"text": "s"}},
        "yaxis": {"type": "log", "title": {"text": "% of the motion"}, "nticks": 5, "exponentformat": "none"},
    }
    pairs = f"{len(d['pairs'])} pairs of runs" if len(d["pairs"]) > 1 else "1 pair of runs"
    return Plot(f"{label}: {pairs}", data, layout, height=280)


def _figures(d: Mapping[str, Any]) -> list[str]:
    g = d["growth"]
    rate = ("none", "–") if g["rate"] is None else (f"{g['rate']:.3g}", f"{g['low']:.3g} to {g['high']:.3g}")
    reach = f"all {d['seconds']:.0f} s" if d["horizon"] is None else f"{d['horizon']:.2g} s"
    return [percent(d["start"]), percent(d["end"]), *rate, reach]


def show(summary: Mapping[str, Any], console: Console) -> None:
    """Print the experiment: the verdict, and distances over time as a line of bars on a logarithmic scale."""
    from rich.panel import Panel
    from rich.text import Text

    said = verdict(summary)
    title = "replay experiment"
    console.print(Panel(Text(said.text), border_style="green" if said.good else "yellow", title=title, title_align="left"))
    for key in LABELS:
        d = summary.get(key)
        if d:
            middle = np.array([math.nan if v is None else v for v in d["curve"]["middle"]])
            parts = [p[np.isfinite(p)] for p in np.array_split(middle, COLUMNS)]
            levels = np.log10([max(float(np.median(p)), 1e-6) if len(p) else 1e-6 for p in parts])
            low, high = math.floor(levels.min()), max(math.ceil(levels.max()), math.floor(levels.min()) + 1)
            bars = "".join(BARS[min(int(len(BARS) * (v - low) / (high - low)), len(BARS) - 1)] for v in levels)
            scale = f"{percent(10.0**low)} to {percent(10.0**high)} of the motion, over {d['seconds']:.3g} s"
            console.print(Text.assemble(f"{LABELS[key]:20}", (bars, "yellow"), f"\n{'':20}{scale}"))


def distribution_section(measured: Mapping[str, Any]) -> Section | None:
    """Distances between distributions, the worst columns first."""
    d = measured.get("distribution") or {}
    every = [("all, sliced", d.get("sliced")), ("all, kernel (MMD)", d.get("mmd")), *(d.get("columns") or {}).items()]
    there = [(n, v["size"], v["usual"]) for n, v in every if v and v["size"] is not None and v["usual"]]
    there = there[:2] + sorted(there[2:], key=lambda row: -row[1] / row[2])
    rows = [[n, short(ours), short(usual), short(ours / usual)] for n, ours, usual in there]
    said = (
        "How far apart the states are that the robot and the free-running model were in, whenever that was, in units of how "
        "much each signal moves; beside it, two halves of the robot's own log. This needs no alignment in time."
    )
    head = ("state", "model", "robot itself", "ratio")
    return Section("Distribution of states", said, Table(head, rows, fold=f"{len(rows)} distances")) if rows else None
