"""The report of a gap: how far the model is from the robot, why, and what to do next."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gapless.arrays import Array
from gapless.gap import HORIZONS, Trace, distribution_section
from gapless.report import (
    BLUE,
    GREY,
    ORANGE,
    RED,
    Cell,
    Plot,
    Section,
    Table,
    Verdict,
    dots,
    flat,
    known,
    line,
    literal,
    percent,
    short,
    shown,
    size,
    write,
)

AHEAD = {"step": "one sample ahead", "0.1": "0.1 s ahead", "0.5": "0.5 s ahead", "1": "1 s ahead", "free": "over whole logs"}
TICKS = {"step": "1 sample", "0.1": "0.1 s", "0.5": "0.5 s", "1": "1 s", "free": "whole log"}
LABELS = {
    "hold": "last state held",
    "command": "command",
    "delay": "command, late",
    "given": "model",
    "twin": "with the causes",
}
REST = {"numbers within tolerance": "tolerances", "no parameter explains": "share"}
GREEN, VIOLET = "#2a9d6f", "#9467bd"
COLOURS = {"hold": VIOLET, "command": GREY, "delay": GREEN, "given": ORANGE, "twin": RED}
MOST_POINTS = 400  # of a line; a plot is not wider in pixels
MOST_JOINTS = 16  # with plots of their own: those that are worst
SMALL, MUCH = 0.05, 0.25  # shares: of a cause, and of all tolerances together, that are worth a sentence
MOST_ROWS = 12  # of parameters that are shown at once
SHARE = "% of the squared error"
WORDS = 24  # letters that fit beside a bar


def page(summary: Mapping[str, Any], traces: Sequence[Trace], path: str | os.PathLike[str]) -> None:
    """Write the report of a gap to an HTML file.

    Args:
        summary: the content of gap.json.
        traces: one for each log, all of the same joints in the same order.
        path: the file.
    """
    sections = [
        _next(summary),
        _why_and_how_far(summary),
        _overlays(summary, traces, "A typical stretch of each joint", typical=True),
        _overlays(summary, traces, "The worst stretch of each joint", typical=False),
        _joints(summary),
        _signals(summary),
        _parameters(summary),
        _remainder(summary),
        _task(summary),
        distribution_section(summary["error"]),
        _provenance(summary),
    ]
    write(path, f"Gap of {summary.get('robot') or 'a robot'}", verdict(summary), [s for s in sections if s])


def verdict(summary: Mapping[str, Any]) -> Verdict:
    """How far and why, in a few short sentences."""
    error, floor = summary["error"], summary["noise_floor"]
    ahead = AHEAD[error["horizon"]]
    if error["value"] is None:
        text = f"The model's physics breaks in {error['broken']} of {error['windows']} replays, so it predicts nothing."
        return Verdict(text, good=False)
    off = f"{size(error['value'], error['unit'])} off {ahead}"
    share = "" if error["relative"] is None else f", {percent(error['relative'])} of the motion"
    times = f"{error['value'] / floor['value']:.2g} times" if floor["value"] else "above"
    if (summary.get("remainder") or {}).get("kind") == "none":
        text = (
            f"No gap above noise and tolerances: the model is {off}{share}, as numbers within their tolerances would make it."
        )
        return Verdict(text, good=True)
    text = f"The model is {off}{share}: {times} {_noise(floor)}."
    beaten = [p for p in ("delay", "command") if (summary["baselines"][p][error["horizon"]] or math.inf) < error["value"]]
    if beaten:
        closer = size(summary["baselines"][beaten[0]][error["horizon"]], error["unit"])
        text += f" The {LABELS[beaten[0]]}, without any model, is closer ({closer})."
    return Verdict(" ".join([text, *_because(summary)]), good=False)


def _because(summary: Mapping[str, Any]) -> Iterator[str]:
    """Why, in a sentence or two."""
    causes = [m for m in summary.get("mechanisms") or [] if (m.get("share") or 0) >= SMALL][:3]
    if causes:
        named = [f"{cause(m)} ({percent(m['share'])})" for m in causes]
        yield f"Because of {named[0]}" + (f", then {' and '.join(named[1:])}" if named[1:] else "") + "."
    rest = summary.get("remainder") or {}
    if known(rest.get("tolerances")) and rest["tolerances"] >= MUCH:
        yield f"Many small numbers within their tolerances make {percent(rest['tolerances'])}."
    if rest.get("kind") == "non-parametric":
        yield f"{percent(rest.get('share'))} of it no parameter explains."


def _why_and_how_far(summary: Mapping[str, Any]) -> Section:
    plots = [p for p in (_causes(summary), _horizons(summary)) if p]
    there = [k for k in COLOURS if curve(summary, k)]
    legend = [(LABELS[k], COLOURS[k]) for k in reversed(there)] + [("noise floor", BLUE)]
    said = "Causes by their share of the error, with 90 % intervals; and the error by time ahead. Dotted lines need no model."
    return Section("Why, and how far", said, legend=legend, plots=plots, wide=True)


def _causes(summary: Mapping[str, Any]) -> Plot | None:
    """Shares as horizontal bars with intervals, the largest on top; what is left in grey."""
    causes = [m for m in summary.get("mechanisms") or [] if known(m.get("share"))]
    if not causes:
        return None
    rest: Mapping[str, Any] = summary.get("remainder") or {}
    rows = [(literal(label), *(3 * [rest[key]]), GREY) for label, key in REST.items() if known(rest.get(key))][::-1]
    for m in causes[::-1]:  # plotly's first bar is the lowest
        low, high = (m[k] if known(m.get(k)) else m["share"] for k in ("low", "high"))
        rows.append((_lines(m), m["share"], min(low, m["share"]), max(high, m["share"]), ORANGE))
    place = list(range(len(rows)))
    share, low, high = (100 * np.array([r[k] for r in rows]) for k in (1, 2, 3))
    bars = {"type": "bar", "orientation": "h", "y": place, "x": share.tolist(), "marker": {"color": [r[4] for r in rows]}}
    ours = [k for k in place if rows[k][4] == ORANGE]
    interval = dots(share[ours], ours, GREY, 1, 0.0)
    interval["error_x"] = {"type": "data", "symmetric": False, "thickness": 1.5, "width": 4, "color": "#808488"}
    interval["error_x"] |= {"array": (high - share)[ours].tolist(), "arrayminus": (share - low)[ours].tolist()}
    labels = dots(np.maximum(high, 0.0), place, GREY, 1, 0.0) | {"mode": "text", "textposition": "middle right"}
    labels["text"] = [f" {s:.0f} %" for s in share]
    left, right = min(0.0, float(low.min())), max(0.0, float(high.max()), 1.0)
    layout = {
        "xaxis": {"range": [left - 0.02 * right, right + 0.35 * (right - left)], "title": {"text": SHARE}},
        "yaxis": {"tickvals": place, "ticktext": [r[0] for r in rows], "nticks": len(rows), "showgrid": False},
        "bargap": 0.45,
    }
    return Plot("Causes", [bars, interval, labels], layout, height=_height(summary))


def _height(summary: Mapping[str, Any]) -> int:
    """Of the first two plots, in pixels."""
    return max(250, 70 + 34 * (2 + len(summary.get("mechanisms") or [])))


def _lines(mechanism: Mapping[str, Any]) -> str:
    """A cause in a few short lines."""
    joints = [str(j) for j in mechanism.get("joints") or []]
    where = [f"({joints[0]})" if len(joints) == 1 else f"({len(joints)} joints)"] if joints else []
    lines = [str(mechanism["name"]), *where, *(f"or {g}" for g in mechanism.get("group") or [])]
    return "<br>".join(literal(t if len(t) <= WORDS else t[: WORDS - 1] + "…") for t in lines[:3])


def curve(summary: Mapping[str, Any], prediction: str) -> dict[str, float]:
    """Error by horizon of a prediction, where there is one."""
    error = summary["error"]
    by = {"given": error["horizons"], "twin": error.get("with_causes") or {}}.get(prediction)
    by = summary["baselines"].get(prediction, {}) if by is None else by
    return {h: v for h, v in by.items() if known(v) and v > 0}


def _horizons(summary: Mapping[str, Any]) -> Plot:
    """Error against time ahead on a logarithmic axis; positions of the horizons are even, for a whole log has no length."""
    unit, place = summary["error"]["unit"], {h: i for i, h in enumerate(HORIZONS)}
    factor, label = shown(unit)
    data = []
    for prediction in COLOURS:
        by = curve(summary, prediction)
        x, y = [place[h] for h in by], [factor * v for v in by.values()]
        if x:
            ours = prediction in ("given", "twin")
            mark = line(x, y, COLOURS[prediction], 2.5 if ours else 1.3, "solid" if ours else "dot", LABELS[prediction])
            data.append(mark | {"mode": "lines+markers", "marker": {"size": 8 if ours else 5, "color": COLOURS[prediction]}})
    floor = summary["noise_floor"]["value"]
    if floor:
        data.append(line([-0.3, len(place) - 0.5], [factor * floor] * 2, BLUE, 1.5, "dash", "noise floor"))
    layout = {
        "xaxis": {"tickvals": list(place.values()), "ticktext": [TICKS[h] for h in place], "range": [-0.3, len(place) - 0.5]},
        "yaxis": {"type": "log", "title": {"text": f"error [{label}]"}, "dtick": 1, "exponentformat": "none"},
    }
    return Plot("Error, mean over joints", data, layout, height=_height(summary))


def _next(summary: Mapping[str, Any]) -> Section | None:
    steps = [str(s) for s in summary.get("next") or []]
    rows = [[f"{i}. {s}"] for i, s in enumerate(steps, start=1)]
    return Section("What to do next", table=Table(("",), rows)) if rows else None


def _overlays(summary: Mapping[str, Any], traces: Sequence[Trace], title: str, typical: bool) -> Section | None:
    """One stretch of each joint: what was measured beside the command and the model, and below it the model's error."""
    fitted = bool(summary["error"].get("with_causes"))
    windows = [(t, np.flatnonzero(t.window == k)) for t in traces for k in np.unique(t.window)]
    joints = summary["error"]["joints"]
    worst = sorted(joints, key=lambda j: -(joints[j]["value"] or math.inf))[:MOST_JOINTS]
    plots = []
    for j, joint in enumerate(traces[0].joints if traces else ()):
        if joint not in worst:
            continue
        errors = np.array([_rms(t.given[rows, j] - t.measured[rows, j]) for t, rows in windows])
        there = np.flatnonzero(np.isfinite(errors))
        if not len(there):
            continue
        order = there[np.argsort(errors[there], kind="stable")]
        at = int(order[len(order) // 2] if typical else order[-1])
        plots.append(_overlay(*windows[at], j, joints[joint]["unit"], fitted, len(traces) > 1, float(errors[at])))
    legend = [("measured", BLUE), ("command", GREY), ("model", ORANGE), *([("with the causes", RED)] if fitted else [])]
    few = f" The {MOST_JOINTS} joints with the largest error." if traces and len(traces[0].joints) > MOST_JOINTS else ""
    said = f"Below, the error: simulated minus measured.{few}"
    return Section(title, said, legend=legend, plots=plots) if plots else None


def _overlay(trace: Trace, rows: NDArray[np.int64], joint: int, unit: str, fitted: bool, several: bool, error: float) -> Plot:
    rows = rows[:: max(1, -(-len(rows) // MOST_POINTS))]
    factor, label = shown(unit)
    time = trace.time[rows]
    command, measured, given, twin = (factor * getattr(trace, k)[rows, joint] for k in ("command", "measured", "given", "twin"))
    lines = [line(time, measured, BLUE, 3, name="measured"), line(time, given, ORANGE, 1.5, name="model")]
    lines += [line(time, command, GREY, 1, name="command")] if np.isfinite(command).any() else []
    off = [line(time, given - measured, ORANGE, 1.5, name="model") | {"yaxis": "y2"}]
    if fitted:
        lines.append(line(time, twin, RED, 1.3, name="with the causes"))
        off.append(line(time, twin - measured, RED, 1.3, name="with the causes") | {"yaxis": "y2"})
    layout = {
        "xaxis": {"title": {"text": "s"}, "anchor": "y2"},
        "yaxis": {"title": {"text": label}, "domain": [0.42, 1]},
        "yaxis2": {"title": {"text": "error"}, "domain": [0, 0.32], "nticks": 4, "zeroline": True},
    }
    where = f" in {os.path.basename(trace.name)}" if several else ""
    return Plot(f"{trace.joints[joint]}{where}: {size(error, unit)} off", [*lines, *off], layout, height=250)


def _joints(summary: Mapping[str, Any]) -> Section:
    error, noise = summary["error"], summary["noise_floor"]["joints"]
    relative = [j["relative"] or 0.0 for j in error["joints"].values()]
    most = max([*relative, 1e-9])
    rows: list[list[str | Cell]] = []
    for name, j in error["joints"].items():
        times = j["value"] / noise[name] if j["value"] is not None and noise.get(name) else None
        rows.append(
            [
                name,
                size(j["value"], j["unit"]),
                Cell(percent(j["relative"]), (j["relative"] or 0.0) / most),
                size(noise.get(name), j["unit"]),
                "–" if times is None else f"{times:.3g}",
                "–" if name not in error["delays"] else f"{1000 * error['delays'][name]:.0f} ms",
            ]
        )
    head = ("joint", "error", "of the motion", "noise floor", "error / noise", "best pure delay")
    said = [f"Of the model as given, {AHEAD[error['horizon']]}.", f"The noise floor is {_noise(summary['noise_floor'])}."]
    return Section("By joint", said, Table(head, rows))


def _signals(summary: Mapping[str, Any]) -> Section | None:
    rows = []
    for signal, columns in summary["error"]["signals"].items():
        for name, c in columns.items():
            sizes = [size(c[h], c["unit"]) for h in HORIZONS]
            rows.append([f"{signal} {name}", *sizes, size(c["moves"], c["unit"]), size(c["noise"], c["unit"])])
    head = ("signal", *TICKS.values(), "moves by", "noise floor")
    fold = f"All {len(rows)} signals in numbers"
    return Section("By signal and time ahead", "Of the model as given.", Table(head, rows, fold=fold)) if rows else None


def _parameters(summary: Mapping[str, Any]) -> Section | None:
    """What the causes were found to be."""
    rows = []
    for m in summary.get("mechanisms") or []:
        for name, p in (m.get("parameters") or {}).items():
            factor = p["value"] / p["nominal"] if p.get("nominal") and known(p.get("value")) else None
            times = "–" if factor is None else f"{factor:.3g}"
            rows.append([str(name), short(p.get("nominal")), short(p.get("value")), times, str(p.get("unit") or "")])
    head = ("parameter", "as given", "found", "found / given", "unit")
    said = "The numbers that explain the gap best, all else within its tolerance. `gapless fit` gives intervals too."
    fold = f"{len(rows)} parameters" if len(rows) > MOST_ROWS else ""
    return Section("Parameters", said, Table(head, rows, fold=fold)) if rows else None


def _remainder(summary: Mapping[str, Any]) -> Section | None:
    """What no parameter explains: where it is, in words and as a map of joints and phases."""
    rest = summary.get("remainder") or {}
    text = [str(s) for s in rest.get("where") or []]
    if known(rest.get("share")):
        text.insert(0, f"{percent(rest['share'])} of the squared error is left when every cause has its best value.")
    table = None
    if rest.get("map"):
        phases = list(dict.fromkeys(p for by in rest["map"].values() for p in by))
        sizes = [v for by in rest["map"].values() for v in by.values() if v is not None]
        most = max([*sizes, 1e-9])
        rows: list[list[str | Cell]] = []
        for joint, by in rest["map"].items():
            cells = [by.get(p) for p in phases]
            rows.append([joint, *(Cell("–", 0.0) if v is None else Cell(f"{v:.2g}", max(v, 0.0) / most) for v in cells)])
        table = Table(("joint", *phases), rows)
        text.append(
            "In the table: mean squared error in a phase over that elsewhere, with the causes put in; 1 is as everywhere."
        )
    return Section("What no parameter explains", text, table) if text else None


def _task(summary: Mapping[str, Any]) -> Section | None:
    """Two rankings side by side: what makes the error, and what costs the task."""
    task = summary.get("task") or []
    if not task:
        return None
    shares = {str(m["name"]): m["share"] for m in summary.get("mechanisms") or []}
    by_share = sorted(shares, key=lambda n: -shares[n])
    most = max([abs(t["loss"]) for t in task] + [1e-9])
    rows: list[list[str | Cell]] = []
    for place, t in enumerate(task, start=1):
        name = str(t["name"])
        made = f"{percent(shares[name])} ({by_share.index(name) + 1}.)" if name in shares else "–"
        rows.append([f"{place}. {name}", Cell(f"{t['loss']:.3g}", max(t["loss"], 0.0) / most), made])
    said = "What costs the task is another question than what makes the error, and often has another answer."
    return Section("What it costs the task", said, Table(("cause", "loss of the task", "share of the error (place)"), rows))


def _provenance(summary: Mapping[str, Any]) -> Section:
    rows = list(flat(summary.get("provenance") or {}))
    rows.append(("robot time", f"{summary['error']['robot_seconds']:.0f} s"))
    return Section("Made from", table=Table(("", ""), [list(r) for r in rows], words=2))


def cause(mechanism: Mapping[str, Any]) -> str:
    """A cause, where it is, and what the logs cannot tell it from."""
    joints = [str(j) for j in mechanism.get("joints") or []]
    where = f" of {', '.join(joints[:2])}{f' and {len(joints) - 2} more' if len(joints) > 2 else ''}" if joints else ""
    return " or ".join([f"{mechanism['name']}{where}", *map(str, mechanism.get("group") or [])])


def _noise(floor: Mapping[str, Any]) -> str:
    what = "the sensors' noise" if floor["from"] == "sensor" else "how far the robot is from itself"
    return f"{what} ({size(floor['value'], floor['unit'])})"


def _rms(off: Array) -> float:
    off = off[np.isfinite(off)]
    return float(np.sqrt(np.mean(off**2))) if len(off) else math.nan
