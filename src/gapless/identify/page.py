"""The report of a fit: is it better, where, by which model, what is still unknown, and what the rest looks like."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gapless.identify.score import Trace
from gapless.identify.temperature import growth
from gapless.report import BLUE, GREY, ORANGE, RED, Cell, Plot, Section, Table, Verdict, dots, line, write

Array = NDArray[np.float64]

WINDOW = 3.0  # s: as much of a motion as one plot shows
MOST_POINTS = 500  # of a line; a plot is not wider in pixels
MOST_DOTS = 400  # of a cloud
BINS = 12
BASELINES = {"command": "command", "delay": "best delay", "nominal": "as given", "fit": "fitted"}
PREDICTIONS = ("command", "delayed", "nominal", "heldout")
"""The same in a trace."""


def page(
    summary: Mapping[str, Any],
    traces: Sequence[Trace],
    path: str | os.PathLike[str],
) -> None:
    """Write the report of a fit to an HTML file.

    Args:
        summary: the content of fit.json.
        traces: one for each log, all of the same joints in the same order.
        path: the file.
    """
    names = _names(traces)
    sections = [
        _baselines(summary),
        _trust(summary),
        _unknown(summary),
        *_by_joint(traces, names),
        _overlays(traces, names, "A typical stretch of each joint", lambda errors: np.argsort(errors)[len(errors) // 2]),
        _overlays(traces, names, "The worst stretch of each joint", np.argmax),
        _ladder(summary),
        *_parameters(summary),
        *_residuals(traces),
        _warm(traces),
        _provenance(summary),
    ]
    write(path, f"Fit of {summary.get('robot') or 'a robot'}", verdict(summary), [s for s in sections if s])


def verdict(summary: Mapping[str, Any]) -> Verdict:
    """The fit in a few sentences: before and after beside the baselines, whether to trust it, and what is not known."""
    held = _degrees(summary, "heldout")
    before, after = held.get("nominal"), held.get("fit")
    if before is None or after is None:
        text = "No part of the logs was held out, so nothing is known about how well the fit predicts."
        return Verdict(text, good=False)
    text = f"Held-out error fell from {before:.3g} to {after:.3g} deg ({before / max(after, 1e-9):.1f} times)"
    if after >= before:
        text = f"Held-out error did not fall: {before:.3g} deg as given, {after:.3g} fitted"
    others = [
        f"{name} {held[k]:.3g}" for k, name in (("delay", "a pure delay leaves"), ("command", "the command alone")) if k in held
    ]
    text += f"; {', '.join(others)}." if others else "."
    if not summary.get("trusted", True):
        reason = str((summary.get("warnings") or ["it does not beat the baselines"])[0]).rstrip(". ")
        return Verdict(f"Do not use it: {reason}. {text}", good=False)
    notes = len(summary.get("warnings") or [])
    use = "It beats every baseline, so use it" + (f", but read the note{'s' * (notes > 1)} below." if notes else ".")
    return Verdict(f"{text} {use} {unknown(summary)}", good=True)


def unknown(summary: Mapping[str, Any]) -> str:
    """How much the logs leave open, in a sentence."""
    parameters: Mapping[str, Mapping[str, Any]] = summary.get("parameters") or {}
    loose = sum(not p.get("identified", True) for p in parameters.values())
    stuck = sum(bool(p.get("at_bound")) for p in parameters.values())
    shared = len(summary.get("undetermined") or [])
    said = [f"{loose} of {len(parameters)} parameters"] if loose else []
    said += [f"{shared} combination{'s' * (shared > 1)} of parameters"] if shared else []
    text = f"The logs do not tell {' and '.join(said)}." if said else "The logs tell all of its parameters."
    return text + (f" {stuck} at a bound: not to be trusted." if stuck else "")


def _names(traces: Sequence[Trace]) -> list[str]:
    """What to call the logs: by their file names where these differ."""
    short = [Path(t.name).name for t in traces]
    return short if len(set(short)) == len(short) else [t.name for t in traces]


def _off(trace: Trace, of: str, joint: int, rows: Any = slice(None)) -> Array:
    """A prediction of one joint minus what was measured, in some rows [rad]."""
    return np.asarray(getattr(trace, of)[rows, joint] - trace.measured[rows, joint])


def _error(trace: Trace, of: str, joint: int, rows: Any = slice(None)) -> float:
    """Root mean square error of a prediction of one joint in some rows [deg]; NaN if there is none."""
    off = _off(trace, of, joint, rows)
    off = off[np.isfinite(off)]
    return math.degrees(float(np.sqrt(np.mean(off**2)))) if len(off) else math.nan


def _degrees(summary: Mapping[str, Any], part: str) -> dict[str, float]:
    errors = (summary.get("errors") or {}).get(part) or {}
    return {k: math.degrees(v) for k, v in errors.items() if isinstance(v, int | float) and math.isfinite(v)}


def _baselines(summary: Mapping[str, Any]) -> Section:
    held = _degrees(summary, "heldout")
    there = [(k, held[k]) for k in BASELINES if k in held][::-1]  # plotly's first bar is the lowest
    bars = {
        "type": "bar",
        "orientation": "h",
        "y": [BASELINES[k] for k, _ in there],
        "x": [v for _, v in there],
        "text": [f"{v:.3g}" for _, v in there],
        "textposition": "outside",
        "cliponaxis": False,
        "marker": {"color": [RED if k == "fit" else GREY for k, _ in there]},
    }
    most = max([v for _, v in there], default=1.0)
    plot = Plot("held out, mean over joints [deg]", [bars], {"xaxis": {"range": [0, 1.15 * most]}}, height=150)
    said = "Root mean square error of joint positions where the fit did not look, in the full model."
    return Section("Does it predict?", said, plots=[plot] if there else [])


def _trust(summary: Mapping[str, Any]) -> Section | None:
    """Whether to use the fit, and what to know before."""
    if not summary.get("errors"):
        return None
    warnings = [f"– {w}" for w in summary.get("warnings") or []]
    first = "It beats the model as given, the command and a pure delay on data that it was not fitted to"
    first += ". Know this before you use it:" if warnings else ", and nothing in the logs speaks against it."
    return Section("Can it be trusted?", [first if summary.get("trusted", True) else "No, and this is why:", *warnings])


def _by_joint(traces: Sequence[Trace], names: Sequence[str]) -> Iterator[Section]:
    """Before and after, by joint, and by motion if there are several."""
    if not traces:
        return
    joints = traces[0].joints
    rows = []
    for j, joint in enumerate(joints):
        errors = [_pooled(traces, of, j) for of in PREDICTIONS]
        better = errors[2] / errors[3] if errors[3] > 0 else math.nan
        rows.append([joint, *map(_short, errors), f"{better:.1f}" if math.isfinite(better) else "–"])
    said = "Held-out error [deg], and the ratio of as given to fitted."
    yield Section("By joint", said, Table(("joint", *BASELINES.values(), "ratio"), rows))
    if len(traces) < 2:
        return
    after = np.array([[_error(t, "heldout", j) for j in range(len(joints))] for t in traces])
    most = float(np.nanmax(after, initial=1e-9))
    cells: list[list[str | Cell]] = []
    for name, t, left in zip(names, traces, after, strict=True):
        before = [_short(_error(t, "nominal", j)) for j in range(len(joints))]
        tints = np.nan_to_num(left / most).tolist()
        cells.append([name, *(Cell(f"{b} → {_short(a)}", tint) for b, a, tint in zip(before, left, tints, strict=True))])
    said = "Held-out error [deg], as given → fitted; the redder, the more is left."
    yield Section("By motion and joint", said, Table(("motion", *joints), cells))


def _pooled(traces: Sequence[Trace], of: str, joint: int) -> float:
    """Root mean square error over all traces [deg]."""
    counted = [(_error(t, of, joint), len(t.time)) for t in traces]
    counted = [(e, n) for e, n in counted if math.isfinite(e)]
    return math.sqrt(sum(n * e**2 for e, n in counted) / sum(n for _, n in counted)) if counted else math.nan


def _overlays(traces: Sequence[Trace], names: Sequence[str], title: str, choose: Callable[[Array], Any]) -> Section | None:
    """One stretch of each joint: what was measured beside the command, before and after."""
    stretches = [(name, t, rows) for name, t in zip(names, traces, strict=True) for rows in _stretches(t)]
    plots = []
    for j, joint in enumerate(traces[0].joints if traces else ()):
        errors = np.array([_error(t, "heldout", j, rows) for _, t, rows in stretches])
        order = np.flatnonzero(np.isfinite(errors))
        if not len(order):
            continue
        at = order[int(choose(errors[order]))]
        name, t, rows = stretches[at]
        rows = rows[:: max(1, -(-len(rows) // MOST_POINTS))]
        command, measured, nominal, fitted = (
            np.degrees(getattr(t, k)[rows, j]) for k in ("command", "measured", "nominal", "heldout")
        )
        time = t.time[rows]
        lines = [
            line(time, command, GREY, 1, name="command"),
            line(time, measured, BLUE, 3, name="measured"),
            line(time, nominal, ORANGE, 1.3, "dash", name="as given"),
            line(time, fitted, RED, 1.3, name="fitted"),
            line(time, nominal - measured, ORANGE, 1.3, "dash", name="as given") | {"yaxis": "y2"},
            line(time, fitted - measured, RED, 1.3, name="fitted") | {"yaxis": "y2"},
        ]
        layout = {
            "xaxis": {"title": {"text": "s"}, "anchor": "y2"},
            "yaxis": {"title": {"text": "deg"}, "domain": [0.42, 1]},
            "yaxis2": {"title": {"text": "error"}, "domain": [0, 0.32], "nticks": 5, "zeroline": True},
        }
        where = f" in {name}" if len(traces) > 1 else ""
        plots.append(Plot(f"{joint}{where}: {_short(errors[at])} deg left", lines, layout, height=250))
    legend = (("measured", BLUE), ("command", GREY), ("as given", ORANGE), ("fitted", RED))
    said = f"{WINDOW:g} s, and below it the errors: simulated minus measured."
    return Section(title, said, legend=legend, plots=plots) if plots else None


def _stretches(trace: Trace) -> Iterator[NDArray[np.int64]]:
    """Rows of each `WINDOW` of a trace; a short rest at the end belongs to the window before."""
    if not len(trace.time):
        return
    since = trace.time - trace.time[0]
    number = np.minimum(since // WINDOW, max(0, round(since[-1] / WINDOW) - 1))
    for k in np.unique(number):
        rows = np.flatnonzero(number == k)
        if len(rows) > 1:
            yield rows


def _ladder(summary: Mapping[str, Any]) -> Section | None:
    rungs = summary.get("ladder") or []
    rows = []
    for i, r in enumerate(rungs):
        gain = f"{100 * r['gain']:.0f} ± {100 * r['error']:.0f} %" if r.get("gain") or r.get("error") else "–"
        error = r.get("heldout")
        shown = "–" if error is None else _short(math.degrees(error))
        taken = "climbed" if r.get("climbed") else "left out"
        rows.append([str(r["name"]), taken if i else "", shown, gain])
    said = ["Each rung adds a cause to the model, and is climbed if the held-out error falls by more than chance."]
    if any(str(r["name"]).startswith("full model") for r in rungs):
        said.append("Errors are those of joints alone before the full model, and of the whole robot from there on.")
    head = ("rung", "", "held-out error [deg]", "gain")
    return Section("Which model does the actuator need?", said, Table(head, rows, words=2)) if rows else None


def _parameters(summary: Mapping[str, Any]) -> Iterator[Section]:
    parameters: Mapping[str, Mapping[str, Any]] = summary.get("parameters") or {}
    if not parameters:
        return
    groups: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
    for name, p in parameters.items():
        quantity, _, of = name.partition("/")
        groups.setdefault(quantity, []).append((of, p))
    plots = [_intervals(quantity, members) for quantity, members in groups.items()]
    rows = []
    for name, p in parameters.items():
        interval = f"{_short(p.get('low'))} to {_short(p.get('high'))}"
        rows.append([name, _remark(p), _short(p.get("nominal")), _short(p.get("value")), interval, str(p.get("unit") or "–")])
    loose = sum(not p.get("identified", True) for p in parameters.values())
    stuck = sum(bool(p.get("at_bound")) for p in parameters.values())
    said = [
        f"{len(parameters)} parameters were fitted; {loose} of them the logs do not determine, and {stuck} are at a bound. "
        "Bars are 90 % intervals."
    ]
    head = ("parameter", "", "as given", "fitted", "90 % interval", "unit")
    legend = (("fitted", RED), ("not determined, or at a bound", ORANGE), ("as given", GREY))
    table = Table(head, rows, words=2, fold=f"All {len(rows)} parameters in numbers")
    yield Section("Parameters", said, table, legend, plots, narrow=True)


def _intervals(quantity: str, members: Sequence[tuple[str, Mapping[str, Any]]]) -> Plot:
    """Value, interval and nominal value of a quantity, a row for each joint."""
    members = [(of, p) for of, p in members if all(isinstance(p.get(k), int | float) for k in ("value", "low", "high"))]
    unit = next((str(p.get("unit") or "") for _, p in members), "")
    rows = np.arange(len(members))
    nominal = [p.get("nominal") for _, p in members]
    given = dots([math.nan if n is None else n for n in nominal], rows, GREY, 11, 1.0)
    given["marker"] |= {"symbol": "line-ns-open", "line": {"width": 2}}
    data = [given]
    for colour, wanted in ((RED, True), (ORANGE, False)):
        kept = [(i, p) for i, (_, p) in enumerate(members) if (p.get("identified", True) and not p.get("at_bound")) == wanted]
        if kept:
            values = np.array([[p["value"], p["low"], p["high"]] for _, p in kept])
            found = dots(values[:, 0], [i for i, _ in kept], colour, 7, 1.0)
            bars = {"type": "data", "symmetric": False, "thickness": 1.5, "width": 0, "color": colour}
            up, down = (values[:, 2] - values[:, 0]).tolist(), (values[:, 0] - values[:, 1]).tolist()
            data.append(found | {"error_x": bars | {"array": up, "arrayminus": down}})
    # the view is that of values and of intervals that say something; the rest may leave it
    told = [p[k] for _, p in members if p.get("identified", True) for k in ("low", "high")] + [p["value"] for _, p in members]
    told += [n for n in nominal if n is not None]
    low, high = min(told, default=0.0), max(told, default=1.0)
    pad = 0.08 * (high - low) or 0.1 * abs(high) or 1.0
    layout = {
        "xaxis": {"range": [low - pad, high + pad], "title": {"text": _plain(unit)}},
        "yaxis": {
            "tickvals": rows.tolist(),
            "ticktext": ["all" if of == "*" else _plain(of) for of, _ in members],
            "range": [len(members) - 0.5, -0.5],
            "nticks": len(members),
        },
    }
    return Plot(quantity, data, layout, height=70 + 18 * len(members))


def _remark(p: Mapping[str, Any]) -> str:
    if p.get("at_bound"):
        return "at a bound: not to be trusted"
    return "" if p.get("identified", True) else "not determined by these logs"


def _unknown(summary: Mapping[str, Any]) -> Section | None:
    rows = []
    for each in summary.get("undetermined") or []:
        names = [str(n) for n in each.get("parameters") or []]
        many = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
        rows.append([str(each.get("meaning") or ""), many])
    said = ["The parameters can move in these directions without the logs noticing." if rows else unknown(summary)]
    table = Table(("what", "parameters"), rows, words=2) if rows else None
    return Section("What is not known", said, table) if summary.get("parameters") else None


def _residuals(traces: Sequence[Trace]) -> Iterator[Section]:
    """The held-out error against what it may depend on: whatever bends here, no parameter explains."""
    against: dict[str, Callable[[Trace], Array]] = {
        "angle [deg]": lambda t: np.degrees(t.measured),
        "velocity [rad/s]": lambda t: t.dq,
        "load [Nm]": lambda t: t.load,
        "time [s]": lambda t: np.repeat((t.time - t.time[0])[:, None], len(t.joints), axis=1),
    }
    there = [t for t in traces if len(t.time)]
    for label, get in against.items():
        plots = list(_clouds(there, [get(t) for t in there], label))
        if plots:
            said = "Fitted minus measured [deg]; the line is the mean. Where it bends, a cause is missing."
            legend = (("samples", BLUE), ("mean", RED))
            yield Section(f"Residual against {label.partition(' [')[0]}", said, legend=legend, plots=plots, narrow=True)


def _warm(traces: Sequence[Trace]) -> Section | None:
    """The size of the held-out error against temperature; nothing if none was logged."""
    both = [(t, t.temperature) for t in traces if t.temperature is not None and len(t.time)]
    there, degrees = [t for t, _ in both], [c for _, c in both]
    plots = list(_clouds(there, degrees, "temperature [°C]", np.abs))
    if not plots:
        return None
    said = []
    errors, speeds, block = [t.error("heldout") for t in there], [t.dq for t in there], np.concatenate([t.block for t in there])
    for j, joint in enumerate(there[0].joints):
        error, degree, speed = (np.concatenate([x[:, j] for x in xs]) for xs in (errors, degrees, speeds))
        found = growth(error, degree, speed, block, len(there[0].joints))
        if found:
            cold, hot = (math.degrees(e) for e in (found.cold_error, found.hot_error))
            said.append(
                f"{joint}: the error grows with temperature, from {cold:.2g} deg at {found.cold:.0f} °C to {hot:.2g} deg at "
                f"{found.hot:.0f} °C (by chance with a probability of {found.p:.1g}, speed allowed for): friction and winding "
                "resistance change as a drive warms up, so record it as warm as it will work."
            )
    if not said:
        said = ["No joint's error grows with its temperature by more than chance, speed allowed for."]
    said.append("Size of fitted minus measured [deg]; the line is the mean.")
    legend = (("samples", BLUE), ("mean", RED))
    return Section("Residual against temperature", said, legend=legend, plots=plots, narrow=True)


def _clouds(
    traces: Sequence[Trace], xs: Sequence[Array], label: str, shown: Callable[[Array], Array] = lambda y: y
) -> Iterator[Plot]:
    """The held-out error of each joint against something of shape (samples, joints) in each trace."""
    for j, joint in enumerate(traces[0].joints if traces else ()):
        x = np.concatenate([each[:, j] for each in xs])
        y = shown(np.degrees(np.concatenate([_off(t, "heldout", j) for t in traces])))
        seen = np.isfinite(x) & np.isfinite(y)
        if seen.sum() > 2 * BINS:
            yield _cloud(joint, label, x[seen], y[seen])


def _cloud(joint: str, label: str, x: Array, y: Array) -> Plot:
    number = np.searchsorted(np.unique(np.quantile(x, np.linspace(0, 1, BINS + 1)))[1:-1], x, side="right")
    bins = [np.flatnonzero(number == k) for k in np.unique(number)]
    thin = np.arange(len(x))[:: max(1, -(-len(x) // MOST_DOTS))]
    most = 1.1 * float(np.quantile(np.abs(y), 0.99)) or 1.0
    data = [
        dots(x[thin], y[thin], BLUE, 3, 0.35),
        line([x[b].mean() for b in bins], [y[b].mean() for b in bins], RED, 2),
    ]
    low = -most if y.min() < 0 else 0.0
    layout = {"xaxis": {"title": {"text": label}}, "yaxis": {"range": [low, most], "zeroline": True}}
    return Plot(joint, data, layout, height=150)


def _provenance(summary: Mapping[str, Any]) -> Section:
    rows = [["log", str(log)] for log in summary.get("logs") or []]
    for key in ("versions", "provenance"):
        rows += [[name, value] for name, value in _flat(summary.get(key) or {})]
    seconds = summary.get("seconds")
    if isinstance(seconds, int | float):
        rows.append(["time taken", f"{seconds:.1f} s"])
    return Section("Made from", table=Table(("", ""), rows, words=2))


def _flat(data: Any, name: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(data, Mapping):
        for key, value in data.items():
            yield from _flat(value, f"{name} {key}".strip())
    elif isinstance(data, list):
        yield name, ", ".join(map(str, data))
    else:
        yield name, str(data)


def _short(value: Any) -> str:
    there = isinstance(value, int | float | np.floating) and math.isfinite(value)
    return f"{value:.3g}" if there else "–"


def _plain(text: str) -> str:
    """Text that plotly shows as it is: it reads some HTML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
