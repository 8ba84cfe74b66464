"""The report of a replay experiment: how two runs of the same commands part; on a page and in a terminal."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from rich.console import RenderableType
from rich.text import Text

from gapless.gap.growth import SHARE
from gapless.gap.page import distribution
from gapless.report import BLUE, GREY, ORANGE, Plot, Section, Table, Verdict, known, line, percent, size

if TYPE_CHECKING:
    from gapless.gap.divergence import Divergence, Experiment

COLOURS = {"robot beside itself": BLUE, "twin beside robot": ORANGE}
BARS, COLUMNS = "▁▂▃▄▅▆▇█", 50


def runs_of(experiment: Experiment) -> dict[str, Divergence]:
    """What was compared, by label."""
    both = zip(COLOURS, (experiment.itself, experiment.twin), strict=True)
    return {label: d for label, d in both if d is not None}


def verdict(experiment: Experiment) -> Verdict:
    """What the experiment says, in a sentence or two."""
    text, good = [], True
    for who, whom, d in (
        ("Given the same commands again, the robot", "itself", experiment.itself),
        ("Given the same commands, the twin", "the robot", experiment.twin),
    ):
        if d is None:
            continue
        g = d.growth
        if known(g.rate):
            grows = f"by a factor of e every {1 / g.rate:.2g} s ({g.rate:.3g} 1/s, {g.low:.3g} to {g.high:.3g})"
            told = f"{who} parts from {whom} {grows}, up to {percent(g.end)} of the motion"
        else:
            told = f"{who} differs from {whom} by {percent(g.end)} of the motion, and that does not grow"
        if known(g.horizon):
            told += f": after {g.horizon:.2g} s ({percent(SHARE)} of the motion) open-loop comparison means little."
            good = False
        else:
            told += f": open-loop comparison means something for all {d.seconds:.3g} s."
        text.append(told)
    if experiment.distances and not text:
        states = experiment.distances.sliced
        far = f"{states.ratio:.2g} times" if known(states.ratio) else "not comparable with"
        text.append(f"Not comparable over time: {experiment.note}. The states are {far} as far apart as two halves of one log.")
        good = False
    return Verdict(" ".join(text), good)


def sections(experiment: Experiment) -> Iterator[Section | None]:
    """The page after its verdict."""
    runs = runs_of(experiment)
    if runs:
        text = f"Distance of positions as a share of the motion; dashed: {percent(SHARE)}."
        legend = [(label, COLOURS[label]) for label in runs]
        yield Section("How they part", text, legend=legend, plots=[_parting(d, label) for label, d in runs.items()])
        head = ("", "at first", "in the end", "growth [1/s]", "90 % interval", "comparable for")
        yield Section("In figures", table=Table(head, [[label, *_figures(d)] for label, d in runs.items()]))
        joints = next(iter(runs.values())).joints
        rows = [[joint, *(size(d.size[j], "rad") for d in runs.values())] for j, joint in enumerate(joints)]
        yield Section("By joint", "Root mean square difference.", Table(("joint", *runs), rows))
        pairs = [[label, pair] for label, d in runs.items() for pair in d.pairs]
        yield Section("Compared", table=Table(("", "runs"), pairs, words=2, fold=f"{len(pairs)} pairs of runs"))
    elif experiment.distances:
        yield distribution(experiment.distances)
    yield experiment.origin.section()


def glance(experiment: Experiment) -> Iterable[RenderableType]:
    """Distances over time as a line of bars on a logarithmic scale."""
    for label, d in runs_of(experiment).items():
        parts = [p[np.isfinite(p)] for p in np.array_split(d.curve.middle, COLUMNS)]
        levels = np.log10([max(float(np.median(p)), 1e-6) if len(p) else 1e-6 for p in parts])
        low, high = math.floor(levels.min()), max(math.ceil(levels.max()), math.floor(levels.min()) + 1)
        bars = "".join(BARS[min(int(len(BARS) * (v - low) / (high - low)), len(BARS) - 1)] for v in levels)
        scale = f"{percent(10.0**low)} to {percent(10.0**high)} of the motion, over {d.seconds:.3g} s"
        yield Text.assemble(f"{label:20}", (bars, "yellow"), f"\n{'':20}{scale}")


def _parting(d: Divergence, label: str) -> Plot:
    """Distance over time on a logarithmic axis: the middle pair, and the range of all."""
    c, colour = d.curve, COLOURS[label]
    ends = {"low": c.low, "high": c.high} if len(d.pairs) > 1 else {}
    data = [line(c.time, 100 * np.maximum(c.middle, 1e-6), colour, 2.5, name=label)]
    data += [line(c.time, 100 * np.maximum(values, 1e-6), colour, 0.8, name=name) for name, values in ends.items()]
    data.append(line([0, d.seconds], [100 * SHARE] * 2, GREY, 1.3, "dash", "share"))
    layout = {
        "xaxis": {"title": "s"},
        "yaxis": {"type": "log", "title": "% of the motion", "nticks": 5, "exponentformat": "none"},
    }
    return Plot(f"{label}: {len(d.pairs)} pair{'s' * (len(d.pairs) > 1)} of runs", data, layout, height=280)


def _figures(d: Divergence) -> list[str]:
    g = d.growth
    rate = (f"{g.rate:.3g}", f"{g.low:.3g} to {g.high:.3g}") if known(g.rate) else ("none", "–")
    return [percent(g.start), percent(g.end), *rate, f"{g.horizon:.2g} s" if known(g.horizon) else f"all {d.seconds:.0f} s"]
