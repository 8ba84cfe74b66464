"""The report of a fit: is it better, where, by which model, what is still unknown, and what the rest looks like."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import RenderableType

from gapless.arrays import Array
from gapless.identify.detection_limits import hidden_section
from gapless.identify.warming import warming
from gapless.measure import Trace, names_of, overlays, rms
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
    few,
    in_terminal,
    known,
    line,
    literal,
    notes,
    short,
    size,
    span,
)
from gapless.worlds import film

if TYPE_CHECKING:
    from gapless.identify.result import Estimate, Fit
    from gapless.identify.walking.result import WalkingFit

MOST_DOTS = 400  # of a cloud
MOST_UNKNOWN = 5  # that a terminal shows
BINS = 12
BASELINES = {"command": "command", "delay": "best delay", "given": "as given", "fit": "fitted"}
PREDICTIONS = ("command", "delayed", "given", "heldout")
"""The same in a trace."""


def sections(fit: Fit) -> Iterator[Section | None]:
    """The page after its verdict."""
    yield _baselines(fit)
    yield _summary(fit)
    yield _trust(fit)
    yield _unknown(fit)
    yield hidden_section(fit.limits)
    yield _errors(fit)
    yield from _by_joint(fit.traces)
    yield from overlays(fit.traces, {"as given": "given", "fitted": "heldout"}, "heldout", dict.fromkeys(fit.pose, "rad"))
    yield _ladder(fit)
    yield parameters_section(fit)
    yield from _residuals(fit.traces)
    yield _warm(fit.traces)
    yield fit.origin.section(("computing time", f"{fit.seconds:.1f} s"), ("fitted to", fit.used))


def _summary(fit: Fit) -> Section | None:
    """What each quantity was found to be, and the robot of the first log beside its twins; a free base stays at home."""
    rows, loose = [], []
    for quantity, members in by_quantity(fit).items():
        sure = [p for p in members.values() if p.sure]
        if sure:
            rows.append([quantity, *(span((getattr(p, side), p.unit) for p in sure) for side in ("nominal", "value"))])
        else:
            loose.append(quantity)
    rows += [["not determined", "", few(loose)]] if loose else []
    table, text, made = Table(("number", "in the model", "found"), rows) if rows else None, list[str](), None
    if table:
        text.append("Where joints differ, the least and the largest of them; intervals are under Parameters.")
    if fit.traces and fit.twin:
        first = fit.traces[0]
        made = film(fit.twin, first.time, {"measured": first.measured, "fitted": first.heldout, "as given": first.given})
        text += [f"The robot moves as in the first seconds of {names_of([first])[0]}."] * (made is not None)
    return Section("At a glance", text, table, film=made) if made or table else None


def by_quantity(fit: Fit | WalkingFit) -> dict[str, dict[str, Estimate]]:
    """What was found, by quantity and then by joint or link."""
    groups: dict[str, dict[str, Estimate]] = {}
    for name, p in fit.parameters.items():
        quantity, _, owner = name.partition("/")
        groups.setdefault(quantity, {})[owner] = p
    return groups


def glance(fit: Fit) -> Iterable[RenderableType]:
    """What a terminal shows after the verdict."""
    more = len(fit.undetermined) - MOST_UNKNOWN
    unknown = [f"{few(u.parameters)}: {u.meaning}" for u in fit.undetermined[:MOST_UNKNOWN]]
    unknown += [f"{more} more in the report"] * (more > 0)
    shown = [in_terminal(s) for s in (_ladder(fit), _errors(fit)) if s]
    return [
        *shown,
        *notes("not known", unknown),
        *notes("suspicion", fit.suspicions),
        *notes("note", fit.warnings),
        f"Fitted to {fit.used}.",
    ]


def verdict(fit: Fit) -> Verdict:
    """The fit in a few sentences: before and after beside the baselines, whether to trust it, and what is not known."""
    held = fit.heldout
    if fit.against and not known(held.fit):
        return Verdict(f"Do not use it: {fit.against[0].rstrip('. ')}.", good=False)
    if not (known(held.given) and known(held.fit)):
        text = "No part of the logs was held out, so nothing is known about how well the fit predicts."
        return Verdict(text, good=False)
    before, after = _degrees(held.given), _degrees(held.fit)
    text = f"Held-out error fell from {before} to {after} deg (by a factor of {held.given / max(held.fit, 1e-9):.1f})"
    if held.fit >= held.given:
        text = f"Held-out error did not fall: {before} deg as given, {after} deg fitted"
    baselines = (("a pure delay leaves", held.delay), ("the command alone", held.command))
    others = [f"{name} {_degrees(error)}" for name, error in baselines if known(error)]
    text += f"; {', '.join(others)}." if others else "."
    if not fit.predicts:
        return Verdict(f"Do not use it: {fit.against[0].rstrip('. ')}. {text}", good=False)
    if not fit.trusted:
        more = f" ({len(fit.suspicions) - 1} more below)" if len(fit.suspicions) > 1 else ""
        return Verdict(f"It predicts, but do not trust its numbers: {fit.suspicions[0]}{more}. {text} {_open(fit)}", good=False)
    several = "s" * (len(fit.warnings) > 1)
    use = "It beats every baseline, so use it" + (f", but read the note{several} below." if fit.warnings else ".")
    return Verdict(f"{text} {use} {_open(fit)}", good=True)


def _open(fit: Fit | WalkingFit) -> str:
    """How much the logs leave open, in a sentence."""
    loose = sum(not p.identified for p in fit.parameters.values())
    stuck, shared = sum(p.at_bound for p in fit.parameters.values()), len(fit.undetermined)
    parts = [f"{loose} of {len(fit.parameters)} parameters"] * bool(loose)
    parts += [f"{shared} combination{'s' * (shared > 1)} of parameters"] * bool(shared)
    text = f"The logs do not determine {' and '.join(parts)}." if parts else "The logs determine all of its parameters."
    return text + (f" {stuck} at a bound: do not rely on {'them' if stuck > 1 else 'it'}." if stuck else "")


def _degrees(angle: float) -> str:
    return short(math.degrees(angle))


def _off(trace: Trace, prediction: str, joint: int) -> Array:
    """A prediction of one joint minus what was measured [deg]. Shape: (samples,)."""
    return np.degrees(trace.error(prediction)[:, joint])


def _baselines(fit: Fit) -> Section:
    errors = [(BASELINES[k], math.degrees(e)) for k, e in asdict(fit.heldout).items() if known(e)]
    names, values = [name for name, _ in errors[::-1]], [value for _, value in errors[::-1]]  # plotly's first bar is the lowest
    colours = [RED if name == "fitted" else GREY for name in names]
    bars = {"type": "bar", "orientation": "h", "y": names, "x": values, "marker": {"color": colours}, "cliponaxis": False}
    bars |= {"text": [short(v) for v in values], "textposition": "outside"}
    layout = {"xaxis": {"range": [0, 1.15 * max(values, default=1.0)]}}
    plot = Plot("held out, mean over joints [deg]", [bars], layout, height=150)
    text = "Root mean square error of joint positions where the fit did not look, in the full model."
    return Section("Does it predict?", text, plots=[plot] if errors else [])


def _errors(fit: Fit) -> Section:
    parts = {"held out": fit.heldout, "all logs": fit.train}
    rows = [[name, *map(_degrees, asdict(scores).values())] for name, scores in parts.items()]
    return Section("Error in the full model", "Mean over joints [deg].", Table(("[deg]", *BASELINES.values()), rows))


def _trust(fit: Fit) -> Section:
    """Whether to use the fit, and what to know before."""
    beats = "It beats the model as given, the command and a pure delay on data that it was not fitted to"
    if not fit.predicts:
        first, why = "Do not use it, and this is why:", fit.against
    elif not fit.trusted:
        first, why = f"{beats}, but do not trust its numbers, and this is why:", fit.suspicions
    else:
        first, why = f"{beats}, and nothing in the logs speaks against its numbers.", []
    return Section("Can it be trusted?", [first, *(f"– {w}" for w in [*why, *fit.warnings])])


def _by_joint(traces: Sequence[Trace]) -> Iterator[Section]:
    """Before and after, by joint, and by motion if there are several."""
    if not traces:
        return
    joints = traces[0].joints
    rows = []
    for j, joint in enumerate(joints):
        errors = [rms(np.concatenate([_off(t, field, j) for t in traces])) for field in PREDICTIONS]
        better = errors[2] / errors[3] if errors[3] > 0 else math.nan
        rows.append([joint, *map(short, errors), f"{better:.1f}" if known(better) else "–"])
    text = "Held-out error [deg], and the ratio of as given to fitted."
    yield Section("By joint", text, Table(("joint", *BASELINES.values(), "ratio"), rows))
    if len(traces) < 2:
        return
    places = range(len(joints))
    before, after = (np.array([[rms(_off(t, field, j)) for j in places] for t in traces]) for field in PREDICTIONS[2:])
    tints = np.nan_to_num(after / np.nanmax(after, initial=1e-9))
    cells: list[list[str | Cell]] = []
    for name, *row in zip(names_of(traces), before, after, tints, strict=True):
        cells.append([name, *(Cell(f"{short(b)} → {short(a)}", float(tint)) for b, a, tint in zip(*row, strict=True))])
    text = "Held-out error [deg], as given → fitted; the redder, the more is left."
    yield Section("By motion and joint", text, Table(("motion", *joints), cells))


def _ladder(fit: Fit) -> Section | None:
    rows = []
    for i, r in enumerate(fit.ladder):
        gain = f"{100 * r.gain:.0f} ± {100 * r.error:.0f} %" if r.gain or r.error else "–"
        rows.append([r.name, ("added" if r.added else "not needed") if i else "", _degrees(r.heldout), gain])
    text = ["Each rung adds a cause to the model, and is kept if the held-out error falls by more than chance."]
    if any(r.name.startswith("full model") for r in fit.ladder):
        text.append("Errors are those of single joints before the full model, and of the whole robot from there on.")
    head = ("rung", "", "held out [deg]", "gain")
    return Section("Which causes does the model need?", text, Table(head, rows, words=2)) if rows else None


def parameters_section(fit: Fit | WalkingFit) -> Section | None:
    """What was found, as a table and a plot for each quantity."""
    if not fit.parameters:
        return None
    rows = []
    for name, p in fit.parameters.items():
        remark = "at a bound: do not rely on it" if p.at_bound else "" if p.identified else "not determined by these logs"
        rows.append([name, remark, short(p.nominal), short(p.value), f"{short(p.low)} to {short(p.high)}", p.unit or "–"])
    text = f"{len(rows)} parameters were fitted. {_open(fit)} Bars are 90 % intervals."
    head = ("parameter", "", "as given", "fitted", "90 % interval", "unit")
    legend = (("fitted", RED), ("not determined, or at a bound", ORANGE), ("as given", GREY))
    table = Table(head, rows, words=2, fold=f"All {len(rows)} parameters in numbers")
    plots = [_intervals(quantity, members) for quantity, members in by_quantity(fit).items()]
    return Section("Parameters", text, table, legend, plots, narrow=True)


def _intervals(quantity: str, members: dict[str, Estimate]) -> Plot:
    """Value, interval and nominal value of a quantity, a row for each joint."""
    estimates = list(members.values())
    rows = list(range(len(members)))
    given = dots([p.nominal for p in estimates], rows, GREY, 11, 1.0)
    given["marker"] |= {"symbol": "line-ns-open", "line": {"width": 2}}
    data = [given]
    for colour, sure in ((RED, True), (ORANGE, False)):
        kept = [(i, p) for i, p in enumerate(estimates) if p.sure == sure and known(p.value + p.low + p.high)]
        if kept:
            data.append(interval_dots(kept, colour))
    # the view is that of values and of intervals that say something; the rest may leave it
    view = [x for p in estimates for x in (p.value, p.nominal, *((p.low, p.high) if p.identified else ())) if known(x)]
    layout = interval_axes(view, estimates[0].unit, members)
    return Plot(quantity, data, layout, height=70 + 18 * len(members))


def interval_dots(rows: Sequence[tuple[float, Estimate]], colour: str, name: str = "") -> dict[str, Any]:
    """Estimates with their intervals as bars, each in a row of a plot."""
    bars = {"type": "data", "symmetric": False, "thickness": 1.5, "width": 0, "color": colour}
    bars |= {"array": [p.high - p.value for _, p in rows], "arrayminus": [p.value - p.low for _, p in rows]}
    return dots([p.value for _, p in rows], [i for i, _ in rows], colour, 7, 1.0, name) | {"error_x": bars}


def interval_axes(view: Sequence[float], unit: str, owners: Collection[str]) -> dict[str, Any]:
    """Axes of a plot that has a row for each joint or link, and all that is to be in view."""
    low, high = min(view, default=0.0), max(view, default=1.0)
    pad = 0.08 * (high - low) or 0.1 * abs(high) or 1.0
    return {
        "xaxis": {"range": [low - pad, high + pad], "title": literal(unit)},
        "yaxis": {
            "tickvals": list(range(len(owners))),
            "ticktext": ["all" if owner == "*" else literal(owner) for owner in owners],
            "range": [len(owners) - 0.5, -0.5],
            "nticks": len(owners),
        },
    }


def _unknown(fit: Fit) -> Section | None:
    rows = [[u.meaning, few(u.parameters, 8)] for u in fit.undetermined]
    text = "The parameters can move in these directions without the logs noticing." if rows else _open(fit)
    table = Table(("what", "parameters"), rows, words=2) if rows else None
    return Section("What is not known", text, table) if fit.parameters else None


def _residuals(traces: Sequence[Trace]) -> Iterator[Section]:
    """The held-out error against what it may depend on: whatever bends here, no parameter explains."""
    against: dict[str, Callable[[Trace], Array]] = {
        "angle [deg]": lambda t: np.degrees(t.measured),
        "velocity [rad/s]": lambda t: t.dq,
        "load [N m]": lambda t: t.load,
        "time [s]": lambda t: np.repeat((t.time - t.time[0])[:, None], len(t.joints), axis=1),
    }
    moving = [t for t in traces if len(t.time)]
    for label, get in against.items():
        text = "Fitted minus measured [deg]; the line is the mean. Where it bends, a cause is missing."
        yield from _clouds(moving, [get(t) for t in moving], label, [text])


def _warm(traces: Sequence[Trace]) -> Section | None:
    """The size of the held-out error against temperature; nothing if none was logged."""
    both = [(t, t.temperature) for t in traces if t.temperature is not None and len(t.time)]
    if not both:
        return None
    warm, degrees = [t for t, _ in both], [c for _, c in both]
    block, joints, text = np.concatenate([t.block for t in warm]), warm[0].joints, []
    for j, joint in enumerate(joints):
        columns = ([t.error("heldout")[:, j] for t in warm], [c[:, j] for c in degrees], [t.dq[:, j] for t in warm])
        error, degree, speed = (np.concatenate(parts) for parts in columns)
        grown = warming(error, degree, speed, block, len(joints))
        if grown:
            text.append(
                f"{joint}: the error grows with temperature, from {size(grown.cold_error, 'rad')} at {grown.cold:.0f} °C to "
                f"{size(grown.hot_error, 'rad')} at {grown.hot:.0f} °C (by chance with a probability of {grown.p:.1g}, speed "
                "allowed for): friction and winding resistance change as a drive warms up; record it as warm as it will work."
            )
    text = text or ["No joint's error grows with its temperature by more than chance, speed allowed for."]
    text.append("Size of fitted minus measured [deg]; the line is the mean.")
    return next(_clouds(warm, degrees, "temperature [°C]", text, np.abs), None)


def _clouds(
    traces: Sequence[Trace], xs: Sequence[Array], label: str, text: list[str], shown: Callable[[Array], Array] = np.asarray
) -> Iterator[Section]:
    """The held-out error of each joint against something of shape (samples, joints) in each trace; nothing of few samples."""
    plots = []
    for j, joint in enumerate(traces[0].joints if traces else ()):
        x = np.concatenate([each[:, j] for each in xs])
        y = shown(np.concatenate([_off(t, "heldout", j) for t in traces]))
        seen = np.isfinite(x) & np.isfinite(y)
        if seen.sum() > 2 * BINS:
            plots.append(_cloud(joint, label, x[seen], y[seen]))
    if plots:
        legend = (("samples", BLUE), ("mean", RED))
        yield Section(f"Residual against {label.partition(' [')[0]}", text, legend=legend, plots=plots, narrow=True)


def _cloud(joint: str, label: str, x: Array, y: Array) -> Plot:
    number = np.searchsorted(np.unique(np.quantile(x, np.linspace(0, 1, BINS + 1)))[1:-1], x, side="right")
    bins = [np.flatnonzero(number == k) for k in np.unique(number)]
    thin = np.arange(len(x))[:: max(1, -(-len(x) // MOST_DOTS))]
    most = 1.1 * float(np.quantile(np.abs(y), 0.99)) or 1.0
    means = line([x[b].mean() for b in bins], [y[b].mean() for b in bins], RED, 2)
    layout = {"xaxis": {"title": label}, "yaxis": {"range": [-most if y.min() < 0 else 0.0, most], "zeroline": True}}
    return Plot(joint, [dots(x[thin], y[thin], BLUE, 3, 0.35), means], layout, height=150)
