"""Moved: what rounds of rollouts and updates of a belief came to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from rich.console import RenderableType

from gapless.close.next_step import Advice
from gapless.close.result import Spent
from gapless.report import Cell, Result, Section, Table, Verdict, in_terminal, known, percent
from gapless.twin import BeliefHistory


@dataclass(frozen=True)
class MovedRound:
    """A round."""

    lost: float
    """Share of its task that the policy lost in the rollouts; NaN where nobody saw."""
    taken: bool
    """Whether its update of the belief was taken."""
    said: str
    before: float
    after: float
    """How far the model at the old and the new middle is from the rollouts."""


@dataclass(frozen=True, repr=False)
class Moved(Result):
    """A belief that followed the robot, and the policies that were trained in it."""

    NAME = "moved"

    robot: str
    task: str
    method: str
    policy: str
    """Folder of the policy that lost least on the robot."""
    kept: int
    """Which that is: 0 is the first, before any round."""
    rounds: list[MovedRound]
    success: dict[str, float]
    """Of the first and the kept policy on the stand-in at length, which no round has seen. Empty for hardware."""
    history: BeliefHistory
    advice: list[Advice]
    """What could be done next, what is worth most first."""
    spent: list[Spent]

    @property
    def title(self) -> str:
        return f"{self.method} on {self.robot}, {self.task}"

    @property
    def robot_seconds(self) -> float:
        return sum(s.robot for s in self.spent)

    @property
    def exit_code(self) -> int:
        """0 where a policy that was tried is kept, 3 where nobody has tried it."""
        return 0 if any(known(r.lost) for r in self.rounds) else 3

    def verdict(self) -> Verdict:
        lost = [r.lost for r in self.rounds if known(r.lost)]
        if not lost:
            text = "The belief was moved and a policy trained in it, but nobody has tried that on the robot."
            return Verdict(f"{text} {self.rounds[0].said}", good=self.rounds[0].taken)
        text = (
            f"In rollouts on the robot the first policy lost {percent(lost[0])} of its task, the kept one {percent(min(lost))}"
        )
        text += f" ({'the first' if self.kept == 0 else f'of round {self.kept}'}). {self.robot_seconds:.0f} s of robot time."
        if self.success:
            text += (
                f" At length it succeeds in {percent(self.success['kept'])}, and the first in {percent(self.success['first'])}."
            )
        out = sum(not r.taken for r in self.rounds[:-1])
        text += f" {out} of {len(self.rounds) - 1} updates were kept out." if out else ""
        return Verdict(text, good=min(lost) < lost[0])

    def sections(self) -> Iterator[Section | None]:
        yield self._rounds()
        yield self._next()
        yield from self.history.sections()

    def glance(self) -> Iterator[RenderableType]:
        yield in_terminal(self._rounds())
        yield in_terminal(self._next())
        yield from self.history.glance()
        yield f"The policy is {self.policy}"

    def _next(self) -> Section:
        rows = [[a.name, f"{a.seconds:g}", percent(a.left), f"{100 * a.worth:.2f}"] for a in self.advice]
        text = f"Worth most: {self.advice[0].name}." if self.advice else "No experiment is known for this robot."
        text += " Shares are of what may still be wrong about what the policy does; training takes no robot time."
        head = ("experiment", "robot [s]", "left afterwards", "worth [% a second]")
        return Section("What to do next on the robot", text, Table(head, rows) if rows else None)

    def _rounds(self) -> Section:
        rows: list[list[str | Cell]] = []
        for k, r in enumerate(self.rounds):
            lost = percent(r.lost) if known(r.lost) else "–"
            cost = f"{r.before:.3f} to {r.after:.3f}" if np.isfinite(r.before) else "–"
            rows.append([str(k + 1), lost, cost, r.said])
        head = ("round", "task lost in rollouts", "distance of the model", "update")
        return Section("Rounds", table=Table(head, rows, words=4))
