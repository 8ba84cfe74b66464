"""BeliefHistory: what was believed over time: the range of every parameter by round, beside the truth where it is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from rich.console import RenderableType

from gapless.arrays import Array
from gapless.report import BLUE, RED, Cell, Plot, Result, Section, Table, Verdict, in_terminal, line, notes, short
from gapless.twin.belief import DRAWS, Belief, Box

LEAST = 1e-6
"""Scaled units: a range that is narrower counts as this wide, as the logarithm of nothing is no number."""
MOST_ROUNDS = 200
"""That a picture shows."""


@dataclass(frozen=True, repr=False)
class BeliefHistory(Result):
    """A belief that moved. Shape of each array: (rounds, parameters), in the parameters' own units."""

    NAME = "history"

    robot: str
    method: str
    """What moved it: adr, simopt, bayessim, autotuned."""
    step: str
    """What is counted: iteration or round."""
    at: list[int]
    """Number of each iteration or round; 0 is the start."""
    names: list[str]
    units: list[str]
    low: Array
    middle: Array
    high: Array
    """Ends and middle of 90 % intervals; of a box its bounds."""
    entropy: list[float]
    """Mean logarithm of the ranges' widths in units of a real mismatch [nats a parameter]."""
    truth: dict[str, float]
    """By name, where the robot is a stand-in."""
    said: list[str]
    """What happened, in sentences."""

    @property
    def title(self) -> str:
        return f"What was believed about {self.robot}, by {self.method}"

    @property
    def held(self) -> dict[str, bool]:
        """Whether the last ranges hold the truth, by parameter that has one."""
        at = {name: i for i, name in enumerate(self.names)}
        return {n: bool(self.low[-1, at[n]] <= v <= self.high[-1, at[n]]) for n, v in self.truth.items() if n in at}

    def verdict(self) -> Verdict:
        first, last = self.entropy[0], self.entropy[-1]
        text = f"Over {self.at[-1]} {self.step}s the ranges of {len(self.names)} parameters "
        text += "grew" if last > first + 0.01 else "shrank" if last < first - 0.01 else "stayed as wide as they were"
        text += f": entropy {first:.2f} to {last:.2f} nats a parameter."
        if self.held:
            text += f" The last ones hold the truth in {sum(self.held.values())} of {len(self.held)}."
        return Verdict(text, good=True)

    def sections(self) -> Iterator[Section | None]:
        at = _thinned(self.at)
        axes = {"xaxis": {"title": self.step}, "yaxis": {"title": "nats a parameter"}}
        where, entropy = np.array(self.at)[at], np.array(self.entropy)[at]
        yield Section("How wide the ranges are", plots=[Plot("entropy", [line(where, entropy, BLUE)], axes, 220)])
        plots = []
        for i, (name, unit) in enumerate(zip(self.names, self.units, strict=True)):
            drawn = [
                line(where, each[at, i], BLUE, width, dash)
                for each, width, dash in ((self.low, 1.0, "solid"), (self.middle, 1.5, "dot"), (self.high, 1.0, "solid"))
            ]
            if name in self.truth:
                drawn.append(line(where[[0, -1]], [self.truth[name]] * 2, RED, 1.5, "dash"))
            plots.append(Plot(name, drawn, {"xaxis": {"title": self.step}, "yaxis": {"title": unit or "–"}}, 160))
        legend = [("range and its middle", BLUE), *([("truth", RED)] if self.truth else [])]
        yield Section("Every parameter", legend=legend, plots=plots, narrow=True)
        yield self._table()
        if self.said:
            yield Section("What happened", self.said)

    def glance(self) -> Iterator[RenderableType]:
        yield in_terminal(self._table())
        yield from notes("note", self.said[-5:])

    def _table(self) -> Section:
        rows: list[list[str | Cell]] = []
        for i, (name, unit) in enumerate(zip(self.names, self.units, strict=True)):
            first, last = (f"{short(self.low[k, i])} to {short(self.high[k, i])}" for k in (0, -1))
            truth = short(self.truth[name]) if name in self.truth else "–"
            rows.append([name, first, last, short(self.middle[-1, i]), truth, unit or "–"])
        head = ("parameter", "range at first", "at last", "its middle", "truth", "unit")
        return Section("Ranges at first and at last", table=Table(head, rows))


def history(
    robot: str,
    method: str,
    step: str,
    at: Sequence[int],
    beliefs: Sequence[Belief],
    truth: dict[str, float] | None = None,
    said: Sequence[str] = (),
) -> BeliefHistory:
    """The history of beliefs over one space, each after so many iterations or rounds."""
    space = beliefs[0].space
    ends = np.array([interval(belief) for belief in beliefs])
    return BeliefHistory(
        robot, method, step, list(at), list(space.names), [p.unit for p in space.parameters],
        ends[:, 0], np.array([b.mean() for b in beliefs]), ends[:, 1],
        [entropy(b) for b in beliefs], dict(truth or {}), list(said),
    )  # fmt: skip


def interval(belief: Belief) -> tuple[Array, Array]:
    """Ends of the 90 % interval of every parameter; the bounds of a box. Shape of each: (parameters,)."""
    if isinstance(belief, Box):
        return belief.low, belief.high
    low, high = np.percentile(belief.sample(DRAWS, np.random.default_rng(0)), (5, 95), axis=0)
    return low, high


def entropy(belief: Belief) -> float:
    """Mean logarithm of the widths in units of a real mismatch (Akkaya et al. 2019, of boxes) [nats a parameter]."""
    low, high = (belief.space.to_scaled(end) for end in interval(belief))
    return float(np.log(np.maximum(high - low, LEAST)).mean())


def _thinned(at: Sequence[int]) -> Array:
    return np.unique(np.linspace(0, len(at) - 1, min(len(at), MOST_ROUNDS)).round().astype(np.int64))
