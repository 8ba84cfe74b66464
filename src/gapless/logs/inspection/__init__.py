"""Inspection: what is wrong with a log, in plain words, before anything is fitted to it.

inspection = inspect(log)               # or inspect(log, load_robot("arm.xml").ranges) to compare with a model
print(inspection)
for finding in inspection.findings: print(finding.severity, finding.sentence)
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from rich.console import RenderableType
from rich.text import Text

from gapless.logs.inspection.channel import channel_findings
from gapless.logs.inspection.clock import clock_findings
from gapless.logs.inspection.delay_estimate import Delay, delays, together
from gapless.logs.inspection.finding import ERROR, INFO, WARNING, Finding, Ranges
from gapless.logs.inspection.imu import imu_findings
from gapless.logs.inspection.joints import joint_findings
from gapless.logs.inspection.slip import slip_findings
from gapless.logs.log import Log
from gapless.plain import NOT_SAVED
from gapless.report import BLUE, GREY, RED, Plot, Result, Section, Table, Verdict, line

STYLES = {ERROR: "bold red", WARNING: "yellow", INFO: "cyan"}
MEASURED = {"q_cmd": "q", "dq_cmd": "dq", "tau_cmd": "tau"}
MOST_POINTS = 1000
"""Points drawn of a channel: the lowest and highest of each stretch, so that no spike is lost."""


@dataclass(frozen=True, repr=False)
class Inspection(Result):
    """What was found: errors first, then warnings, then what is only worth knowing; and the real rate of every signal."""

    NAME = "inspection"

    source: str
    duration: float
    """[s]"""
    rates: dict[str, float]
    """Hz by signal."""
    findings: tuple[Finding, ...]
    delays: dict[str, Delay]
    """Of each joint's command, where that was asked for."""
    log: Log | None = field(default=None, metadata=NOT_SAVED)
    """For plots; a loaded inspection has none."""

    @property
    def errors(self) -> int:
        """How many findings are errors."""
        return sum(f.severity == ERROR for f in self.findings)

    def json(self) -> dict[str, Any]:
        return super().json() | {"errors": self.errors}

    @property
    def title(self) -> str:
        return f"Inspection of {os.path.basename(self.source) or 'a log'}"

    def verdict(self) -> Verdict:
        counts = {kind: sum(f.severity == kind for f in self.findings) for kind in (ERROR, WARNING)}
        parts = [f"{n} {kind}{'s' * (n > 1)}" for kind, n in counts.items() if n]
        return Verdict(f"{' and '.join(parts) or 'nothing wrong was'} found.".capitalize(), good=not self.errors)

    def sections(self) -> Iterator[Section]:
        rows = [[f.severity, f.sentence] for f in self.findings]
        yield Section("Findings", table=Table(("", ""), rows, words=2)) if rows else Section("Findings", "None.")
        if self.delays:
            yield Section("Delay of commands", list(self._late()))
        for name, signal in self.log.signals.items() if self.log else ():
            if name in MEASURED and MEASURED[name] in self.log:  # type: ignore[operator]
                continue  # drawn with what was measured
            pair = next((c for c, m in MEASURED.items() if m == name and c in self.log), None)  # type: ignore[operator]
            legend = [("measured", BLUE), *([("command", GREY)] if pair else [])]
            legend += [("where something was found", RED)] if any(f.signal in (name, pair) for f in self.findings) else []
            plots = [self._plot(name, pair, column) for column in signal.columns]
            yield Section(f"{name} [{signal.unit}]", "Over time [s].", legend=legend, plots=plots, narrow=True)

    def __rich__(self) -> RenderableType:
        by_rate: dict[str, list[str]] = {}
        for name, rate in self.rates.items():
            by_rate.setdefault(f"{rate:.1f} Hz", []).append(name)
        rates = "; ".join(f"{', '.join(names)} at {rate}" for rate, names in by_rate.items())
        lines = [Text.assemble((self.source or "the log", "bold"), f": {self.duration:.1f} s; {rates}")]
        lines += [Text.assemble((f"  {f.severity:8}", STYLES[f.severity]), f" {f.sentence}") for f in self.findings]
        lines += [Text(f"  delay    {sentence}") for sentence in self._late()]
        lines += [] if any(f.severity != INFO for f in self.findings) else [Text("  nothing wrong was found")]
        return Text("\n").join(lines)

    def _late(self) -> Iterable[str]:
        """How late each joint hears its command, in sentences."""
        shared = together(self.delays) if len(self.delays) > 1 else None
        named = {f"{j} hears its command": d for j, d in self.delays.items()}
        named |= {"all joints together hear their commands": shared} if shared else {}
        for who, d in named.items():
            if d.determined:
                yield f"{who} {1e3 * d.seconds:.1f} ms late (within {1e3 * d.uncertainty:.1f} ms)"
        if unclear := [j for j, d in self.delays.items() if not d.determined]:
            yield f"not determined by this log: {', '.join(unclear)}"

    def _plot(self, name: str, pair: str | None, column: str) -> Plot:
        """One column of a signal, its command over it, and findings as grey bands."""
        assert self.log is not None
        start, data = self.log.start, []
        for signal, colour in ((pair, GREY), (name, BLUE)):
            if signal and column in self.log[signal].columns:
                x, y = _thinned(self.log[signal].time - start, self.log[signal].column(column))
                data.append(line(x, y, colour, 1.2, name=signal))
        bands = [
            {"type": "rect", "yref": "paper", "y0": 0, "y1": 1, "fillcolor": RED, "opacity": 0.2, "line": {"width": 0}}
            | {"x0": f.start - start, "x1": max(f.end, f.start + 1e-3) - start}
            for f in self.findings
            if f.signal in (name, pair) and f.joint in ("", column) and f.start is not None and f.end is not None
        ]
        return Plot(column, data, {"shapes": bands}, height=150)


def inspect(log: Log, model: Ranges | None = None, delay: bool = False, more: Iterable[Finding] = ()) -> Inspection:
    """Everything that looks wrong in a log.

    Args:
        log: what a robot recorded.
        model: joints and ranges of the model that it is meant for (`RobotModel.ranges`), to compare with.
        delay: whether to estimate how late each joint hears its command (about a second a joint).
        more: what else was found, such as by `gapless.measure.model_findings`; what is said already is not said again.
    """
    findings = [Finding("note", INFO, note) for note in log.provenance.notes]
    with np.errstate(all="ignore"):
        clocks = list(clock_findings(log))
        findings += [*clocks, *channel_findings(log), *joint_findings(log, model), *imu_findings(log)]
        findings += slip_findings(log)
    said = [f.sentence for f in findings]
    findings += [f for f in more if not any(sentence in f.sentence for sentence in said)]
    findings.sort(key=lambda f: (ERROR, WARNING, INFO).index(f.severity))
    rates = {name: log.rate(name) for name in log.signals}
    timed = delay and not any(f.severity == ERROR for f in clocks)  # nanoseconds taken for seconds would be a log of 600 years
    return Inspection(log.provenance.source, log.duration, rates, tuple(findings), delays(log) if timed else {}, log)


def _thinned(time: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if len(values) <= MOST_POINTS:
        return time, values
    width = 2 * len(values) // MOST_POINTS
    blocks = np.nan_to_num(values[: len(values) // width * width]).reshape(-1, width)
    ends = np.sort(np.column_stack([blocks.argmin(1), blocks.argmax(1)]), axis=1) + np.arange(len(blocks))[:, None] * width
    return time[ends.ravel()], values[ends.ravel()]
