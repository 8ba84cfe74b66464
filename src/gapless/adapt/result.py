"""Adapted: what a search on a robot found, trial by trial, in robot seconds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from rich.console import RenderableType

from gapless.arrays import Array
from gapless.report import BLUE, ORANGE, Plot, Result, Section, Table, Verdict, dots, in_terminal, line


@dataclass(frozen=True, repr=False)
class Adapted(Result):
    """A policy that was adapted to one robot by trials on it."""

    NAME = "adapt"

    robot: str
    policy: str
    method: str
    names: tuple[str, ...]
    """Of z."""
    z: Array
    """What was found. Shape: (size,)."""
    truth: Array
    """What the teacher would be told on a stand-in, to compare with. Shape: (size,)."""
    reward: Array
    """Of each trial, per second. Shape: (trials,)."""
    fell: Array
    """Whether it fell, 0 or 1. Shape: (trials,)."""
    seconds: Array
    """Robot time of each trial [s]. Shape: (trials,)."""
    stopped: str
    """Why the search ended before its budget; empty where it did not."""
    before: Array
    after: Array
    """Rewards per second of other runs, with z = 0 (or the policy as it was) and with what was found. Shape: (runs,)."""

    @property
    def title(self) -> str:
        return f"Adapting {self.policy} to {self.robot}"

    def verdict(self) -> Verdict:
        unit, was = "updates" if self.method == "tune" else "trials", "z = 0" if self.names else "what it was"
        spent = f"{len(self.reward)} {unit} and {self.seconds.sum():.0f} s of robot time"
        if self.stopped:
            return Verdict(f"The search stopped, as {self.stopped}; the best of them is kept ({spent}).", good=False)
        more = self.after.mean() - self.before.mean()
        error = float(np.hypot(*(a.std() / np.sqrt(len(a)) for a in (self.before, self.after))))
        text = (
            f"After {spent} the policy earns {self.after.mean():.2f} per second on this robot, {more:+.2f} over {was} "
            f"({self.before.mean():.2f}), in {len(self.after)} runs that the search did not see."
        )
        return Verdict(text if more > 1.645 * error else f"{text} That may be chance.", good=more > 1.645 * error)

    def sections(self) -> Iterator[Section]:
        if self.names:
            yield self._found()
        spent, best = np.cumsum(self.seconds), np.maximum.accumulate(self.reward)
        data = [dots(spent, self.reward, BLUE, 6, 0.8, "trial"), line(spent, best, ORANGE, name="best so far")]
        layout = {"xaxis": {"title": "robot time [s]"}, "yaxis": {"title": "reward per second"}}
        legend = (("trial", BLUE), ("best so far", ORANGE))
        yield Section("Trials", plots=[Plot("", data, layout, 300)], legend=legend, wide=True)

    def glance(self) -> Iterable[RenderableType]:
        return [in_terminal(self._found())] if self.names else []

    def _found(self) -> Section:
        rows = [[n, f"{a:+.2f}", f"{b:+.2f}"] for n, a, b in zip(self.names, self.z, self.truth, strict=True)]
        text = "From -1 to 1 over what training drew. A search looks for what works, which need not be the truth."
        return Section("What the robot is taken for", text, Table(("", "found", "true (stand-in)"), rows))
