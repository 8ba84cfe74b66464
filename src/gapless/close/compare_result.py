"""Compared: techniques on robots with one mismatch each, as a table, a matrix, a page and a picture."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np
from rich.console import RenderableType

from gapless.arrays import Array
from gapless.files import atomic
from gapless.report import Cell, Result, Section, Table, Verdict, in_terminal

RESAMPLES = 1000
CONTROL, STANDARD = "none", "wide"
"""The robot without a mismatch, which counts apart; and the technique that the others are held against."""


@dataclass(frozen=True)
class Row:
    """A technique on one robot. Shape of each array: (runs,); all techniques have the same runs."""

    technique: str
    mismatch: str
    seed: int
    held: Array
    """1 for a run that succeeded, of a robot with legs one without a fall; else 0."""
    error: Array
    """Distance from what was asked: of a robot with legs in velocity [m/s]; as the task tells it otherwise."""
    power: Array
    """Mean positive mechanical power [W]."""
    robot: float
    """Robot time [s]."""
    computing: float
    """Time of all cores, training of the policy that was tuned included [s]."""
    note: str
    """Why the technique could not be applied, so that the policy to tune was left as it was; empty where it could."""


@dataclass(frozen=True, repr=False)
class Compared(Result):
    """Which technique helps against which mismatch, and at what price."""

    NAME = "compare"

    robot: str
    task: str
    iterations: int
    """Of tuning."""
    rows: list[Row]
    says: dict[str, str]
    """Techniques, and what each does."""
    limits: list[str]
    """Techniques that look at what nobody knows."""

    @property
    def title(self) -> str:
        return f"Remedies compared on a {self.robot}"

    @property
    def mismatches(self) -> list[str]:
        return list(dict.fromkeys(r.mismatch for r in self.rows))

    @property
    def counted(self) -> list[str]:
        """All but the control, where there are others."""
        return [m for m in self.mismatches if m != CONTROL] or [CONTROL]

    @property
    def seeds(self) -> int:
        return len({r.seed for r in self.rows})

    def of(self, technique: str, mismatch: str = "") -> list[Row]:
        """The rows of a technique, on one mismatch or on all but the control."""
        wanted = [mismatch] if mismatch else self.counted
        return [r for r in self.rows if r.technique == technique and r.mismatch in wanted]

    def mean(self, technique: str, mismatch: str = "", what: str = "held") -> tuple[float, float, float]:
        """A figure's mean over seeds, mismatches and runs, with its 90 % interval."""
        return _interval([(r.seed, getattr(r, what)) for r in self.of(technique, mismatch)])

    def gain(self, technique: str, mismatch: str = "", over: str = STANDARD) -> tuple[float, float, float]:
        """How many more runs hold than with another technique, the same robots and starts in pairs, with 90 % interval."""
        pairs = zip(self.of(technique, mismatch), self.of(over, mismatch), strict=True)
        return _interval([(a.seed, a.held - b.held) for a, b in pairs])

    def best(self, mismatch: str = "") -> str:
        """The technique that holds most runs, of those that can be had."""
        return max((t for t in self.says if t not in self.limits), key=lambda t: self.mean(t, mismatch)[0])

    def verdict(self) -> Verdict:
        best, robots = self.best(), len(self.counted)
        held, low, high = self.mean(best)
        text = (
            f"Most runs hold with the technique {best!r}: {held:.0%} ({low:.0%} to {high:.0%}), over {robots} "
            f"mismatch{'es' if robots > 1 else ''} of the {self.robot} and {self._seeds()}."
        )
        if best == STANDARD or STANDARD not in self.says:
            return Verdict(text, good=best != STANDARD)
        more, low, high = (100 * x for x in self.gain(best))
        text += f" That is {more:+.0f} points ({low:+.0f} to {high:+.0f}) over {STANDARD}, run by run."
        return Verdict(text if low > 0 else f"{text} It may be chance.", good=low > 0)

    def _seeds(self) -> str:
        return f"{self.seeds} seeds" if self.seeds > 1 else "one seed, so that intervals are over runs alone"

    def sections(self) -> Iterator[Section]:
        yield self.matrix()
        yield self.prices()
        yield self.by_mismatch()
        notes = [f"{r.technique} on {r.mismatch}, seed {r.seed}: {r.note}" for r in self.rows if r.note]
        if notes:
            yield Section("Where a technique could not be applied", notes)
        words = [[name, f"This technique {text}."] for name, text in self.says.items()]
        yield Section("Techniques", table=Table(("technique", "what it does"), words, words=2))

    def glance(self) -> Iterable[RenderableType]:
        return [in_terminal(self.matrix()), in_terminal(self.prices())]

    def matrix(self) -> Section:
        """Share of runs that hold, by technique and mismatch."""
        rows: list[list[str | Cell]] = [
            [t, *(Cell(f"{100 * held:.0f}", 1 - held) for held, _, _ in (self.mean(t, m) for m in self.mismatches))]
            for t in self.says
        ]
        title = "Runs that hold [%], by technique and mismatch"
        return Section(title, table=Table(("technique", *self.mismatches), rows))

    def prices(self) -> Section:
        """What each technique reaches over all mismatches, and what it takes."""
        rows = [self._price(t) for t in self.says]
        head = ("technique", "held [%]", f"more than {STANDARD}", "error", "power [W]", "robot [s]", "computing [s]")
        return Section("Over all mismatches, with 90 % intervals", table=Table(head, rows))

    def _price(self, technique: str) -> list[str]:
        of = self.of(technique)
        more = _shown(self.gain(technique), 100, "+.0f") if STANDARD in self.says and technique != STANDARD else ""
        error, power = (f"{self.mean(technique, what=what)[0]:.3g}" for what in ("error", "power"))
        cost = (f"{np.mean(column):.0f}" for column in ([r.robot for r in of], [r.computing for r in of]))
        return [technique, _shown(self.mean(technique), 100, ".0f"), more, error, power, *cost]

    def by_mismatch(self) -> Section:
        """The best that can be had against each mismatch, beside doing nothing and the limit."""
        beside = [t for t in ("nothing", STANDARD, *self.limits) if t in self.says]
        rows = [
            [m, self.best(m), *(_shown(self.mean(t, m), 100, ".0f") for t in (self.best(m), *beside))] for m in self.mismatches
        ]
        return Section("Best remedy, by mismatch: held [%]", table=Table(("mismatch", "best", "it", *beside), rows, words=2))

    def save(self, folder: str | os.PathLike[str]) -> None:
        super().save(folder)
        with atomic(Path(folder) / "matrix.svg") as part:
            part.write_text(self.picture())

    def picture(self) -> str:
        """The matrix as an SVG picture."""
        wide, high, left, top = 74, 30, 110, 46
        size = left + wide * len(self.mismatches) + 10, top + high * len(self.says) + 30
        font = 'font-family="sans-serif" font-size="13"'
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size[0]} {size[1]}" width="{size[0]}" {font}>',
            f'<rect width="{size[0]}" height="{size[1]}" fill="white"/>',
        ]
        for j, mismatch in enumerate(self.mismatches):
            parts.append(_text(left + wide * (j + 0.5), top - 12, mismatch))
        for i, technique in enumerate(self.says):
            parts.append(_text(left - 8, top + high * (i + 0.65), technique, "end"))
            for j, mismatch in enumerate(self.mismatches):
                held, x, y = self.mean(technique, mismatch)[0], left + wide * j, top + high * i
                colour = f"hsl({120 * held:.0f}, 55%, 72%)"
                parts.append(f'<rect x="{x}" y="{y}" width="{wide - 2}" height="{high - 2}" fill="{colour}"/>')
                parts.append(_text(x + wide / 2, y + 0.65 * high, f"{100 * held:.0f}"))
        said = f"runs that hold [%], {self.robot}, {self.seeds} seed{'s' if self.seeds > 1 else ''}"
        return "\n".join([*parts, _text(left, size[1] - 10, said, "start"), "</svg>\n"])


def _text(x: float, y: float, words: str, anchor: str = "middle") -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="#222">{escape(words)}</text>'


def _shown(figure: tuple[float, float, float], times: float, how: str) -> str:
    value, low, high = (format(times * x, how) for x in figure)
    return f"{value} ({low} to {high})"


def _interval(each: list[tuple[int, Array]]) -> tuple[float, float, float]:
    """Mean of runs, and its 90 % interval: seeds are drawn again, and runs of each."""
    by_seed = {seed: np.concatenate([a for s, a in each if s == seed]) for seed, _ in each}
    groups, rng = list(by_seed.values()), np.random.default_rng(0)
    if all(np.isnan(a).all() for a in groups):
        return np.nan, np.nan, np.nan
    drawn = np.zeros(RESAMPLES)
    for _ in groups:
        means = np.stack([np.nanmean(rng.choice(a, (RESAMPLES, len(a))), axis=1) for a in groups])
        drawn += means[rng.integers(0, len(groups), RESAMPLES), np.arange(RESAMPLES)] / len(groups)
    low, high = np.percentile(drawn, (5, 95))
    return float(np.mean([np.nanmean(a) for a in groups])), float(low), float(high)
