"""What a stress test found, as a result that prints itself, makes its page and saves what other commands take."""

import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import RenderableType

from gapless.check.response import Heat, Response, Rest
from gapless.learn import CourseResult
from gapless.plain import NOT_SAVED, write_json
from gapless.report import BLUE, COLOURS, GREY, ORANGE, Cell, Plot, Result, Section, Table, Verdict, in_terminal, line, percent

ENOUGH = 1.2
"""Margin below which an axis is worth a word."""


@dataclass(frozen=True)
class Curve:
    """One thing made worse; the first level is as modelled."""

    name: str
    unit: str
    levels: tuple[float, ...]
    success: tuple[float, ...]
    """Share of runs."""
    low: tuple[float, ...]
    high: tuple[float, ...]
    """Its 90 % interval (Clopper-Pearson)."""
    loss: tuple[float, ...]
    """Of the task, 0 to 1."""
    fails_from: float
    """Level from which less than nine tenths of what succeeds as modelled succeed; NaN where none that was tried does."""
    identified: float
    """Level of the robot as identified, and its standard deviation; NaN where nothing is known."""
    deviation: float
    margin: float
    """Room until it fails over what was identified (else over `plausible`), both from as modelled; infinite where the robot
    is no worse."""
    plausible: float = math.nan
    """The worst that the preset `wide` holds possible, where nothing was identified; NaN where it says nothing."""

    def sentence(self) -> str:
        """For example: falls from 31 ms; measured 18 +- 2 ms: margin 1.7."""
        tried = self.levels[-1]
        text = (
            f"fails from {_amount(self.fails_from, self.unit)}"
            if math.isfinite(self.fails_from)
            else (f"holds up to {_amount(tried, self.unit)}, the worst tried")
        )
        if math.isfinite(self.identified):
            least = "" if math.isfinite(self.fails_from) else "at least "
            margin = f"{least}{self.margin:.1f}" if math.isfinite(self.margin) else "no worse than modelled"
            text += f"; measured {_amount(self.identified, self.unit)} ± {_amount(self.deviation, self.unit)}: margin {margin}"
        elif math.isfinite(self.plausible):
            least = "" if math.isfinite(self.fails_from) else "at least "
            text += f"; not measured, robots have up to {_amount(self.plausible, self.unit)}: margin {least}{self.margin:.1f}"
        return text


@dataclass(frozen=True)
class Together:
    """Robots drawn from a belief."""

    source: str
    runs: int
    success: float
    low: float
    high: float
    loss: float


@dataclass(frozen=True)
class Corner:
    """The worst robot that a search found among those that may exist."""

    levels: dict[str, float]
    """By axis."""
    success: float
    loss: float
    runs: int
    """Of the search."""
    standin: str
    """The robot as a stand-in's file."""


@dataclass(frozen=True)
class Cost:
    """What one cause costs the task."""

    cause: str
    alone: float
    """Loss that it adds when only it is as identified."""
    alone_error: float
    """Standard error, over the same robots."""
    left_out: float
    """Loss that it saves when only it is as modelled."""
    left_out_error: float
    matters: bool
    """Whether swapping it changes the outcome: only then it is blamed."""


@dataclass(frozen=True, repr=False)
class Stress(Result):
    """How much worse than modelled a robot may be."""

    NAME = "stress"

    robot: str
    policy: str
    """SHA-256 of its network."""
    seed: int
    runs: int
    success: float
    """Share of runs on the robot as modelled, without kicks."""
    loss: float
    curves: tuple[Curve, ...]
    together: Together
    corner: Corner
    costs: tuple[Cost, ...]
    """Worst first; none without a belief."""
    responses: tuple[Response, ...]
    rest: Rest
    heat: Heat
    torque_margin: float
    """Share of the torque limit that was never used, of the joint that had the least, on the robot as modelled."""
    speed_margin: float
    drawn: CourseResult | None = field(default=None, metadata=NOT_SAVED)
    """Runs on robots drawn from the belief, which the gate judges."""

    def losses(self) -> dict[str, float]:
        """Cause to what it costs the task, as `gapless gap --task` takes it; only those that change the outcome."""
        return {c.cause: max(c.alone, c.left_out) for c in self.costs if c.matters}

    def verdict(self) -> Verdict:
        thin = sorted((c for c in self.curves if c.margin < ENOUGH), key=lambda c: c.margin)
        drawn = f"{percent(self.together.success)} of {self.together.runs} robots drawn from {self.together.source} survive"
        if thin:
            return Verdict(f"{drawn}. The margin is thin in {thin[0].name}: {thin[0].sentence()}.", good=False)
        first = [c for c in self.curves if math.isfinite(c.fails_from)]
        text = f"; {first[0].name}: {first[0].sentence()}" if first else ""
        return Verdict(f"{drawn}{text}.", good=self.together.low >= 0.8)

    def sections(self) -> Iterator[Section]:
        yield self._margins()
        yield Section("Curves", "Blue: share of runs that survive, with its 90 % interval. Orange: loss of the task.",
                      plots=[self._plot(c) for c in self.curves])  # fmt: skip
        yield self._corner()
        if self.costs:
            yield self._costs()
        yield self._figures()
        plots = [
            Plot(f"{r.command}: asked and got", [line(r.asked, r.asked, GREY, dash="dot"), line(r.asked, r.got, BLUE),
                 line(r.asked, r.aside, ORANGE)], {"xaxis": {"title": "asked"}}, 220)
            for r in self.responses
        ]  # fmt: skip
        if plots:
            legend = [("got", BLUE), ("aside: the largest other direction", ORANGE), ("as asked", GREY)]
            yield Section("Command and response", legend=legend, plots=plots)

    def glance(self) -> Iterable[RenderableType]:
        yield in_terminal(self._margins())
        if self.costs:
            yield in_terminal(self._costs())
        yield in_terminal(self._corner())
        yield in_terminal(self._figures())

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Also losses.json for `gapless gap --task`, and worst.toml, a stand-in that is the worst corner."""
        super().save(folder)
        write_json(Path(folder) / "losses.json", self.losses())
        (Path(folder) / "worst.toml").write_text(self.corner.standin)

    def _margins(self) -> Section:
        rows: list[list[str | Cell]] = [[c.name, Cell(c.sentence(), 0.6 if c.margin < ENOUGH else 0.0)] for c in self.curves]
        t = self.together
        drawn = f"{percent(t.success)} survive ({percent(t.low)} to {percent(t.high)}, {t.runs} runs), loss {t.loss:.2f}"
        rows.append([f"all together, from {t.source}", drawn])
        return Section("How much worse the robot may be", table=Table(("made worse", "what happens"), rows, words=2))

    def _corner(self) -> Section:
        rows = [[name, f"{level:.3g}"] for name, level in self.corner.levels.items()]
        corner = self.corner
        text = f"The worst robot in {corner.runs} runs: {percent(corner.success)} of its own survive, loss {corner.loss:.2f}."
        return Section("The worst corner", text, Table(("", "level"), rows))

    def _costs(self) -> Section:
        rows = [
            [
                c.cause,
                f"{c.alone:+.3f} ± {c.alone_error:.3f}",
                f"{c.left_out:+.3f} ± {c.left_out_error:.3f}",
                "yes" if c.matters else "no",
            ]
            for c in self.costs
        ]
        head = ("cause", "loss when alone", "loss when left out of all", "changes the outcome")
        return Section("What each cause costs the task", table=Table(head, rows))

    def _figures(self) -> Section:
        heat, rest = self.heat, self.rest
        warm = "never" if not math.isfinite(heat.minutes) else f"{heat.minutes:.1f} min"
        still = f"{rest.speed:.2f} rad/s at {rest.joint}" + (f", {rest.frequency:.1f} Hz" if rest.shakes else "")
        rows = [
            ["survival as modelled", percent(self.success)],
            ["least torque margin", percent(self.torque_margin)],
            ["least margin of joint speed", percent(self.speed_margin)],
            [f"until {heat.joint} overheats, with the usual figures of such drives", warm],
            ["joint speed at rest", still],
        ]
        rows += [[f"dead zone of {r.command}", f"{r.dead:.2g}"] for r in self.responses]
        rows += [[f"largest drift under {r.command}", f"{r.drift:.2g}"] for r in self.responses]
        return Section("Figures on the robot as modelled", table=Table(("", "value"), rows))

    def _plot(self, curve: Curve) -> Plot:
        lines = [line(curve.levels, curve.low, GREY, 1), line(curve.levels, curve.high, GREY, 1),
                 line(curve.levels, curve.success, BLUE, 2), line(curve.levels, curve.loss, ORANGE, 2)]  # fmt: skip
        if math.isfinite(curve.identified):
            lines.append(line([curve.identified] * 2, [0, 1], COLOURS[4], 1.5, "dash"))
        return Plot(curve.name, lines, {"xaxis": {"title": curve.unit}, "yaxis": {"range": [-0.05, 1.05]}}, 200)


def _amount(value: float, unit: str) -> str:
    if unit == "s":
        return f"{1000 * value:.3g} ms"
    if unit == "rad":
        return f"{math.degrees(value):.3g} deg"
    return f"x{value:.3g}{unit[1:]}" if unit.startswith("x") else f"{value:.3g} {unit}".strip()
