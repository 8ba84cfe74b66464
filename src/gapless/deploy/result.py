"""Run: what a policy did on a live robot, as one typed result for terminal, JSON and page."""

from collections.abc import Iterable
from dataclasses import dataclass

from rich.console import RenderableType
from rich.text import Text

from gapless.report import Result, Section, Table, Verdict, in_terminal


@dataclass(frozen=True, repr=False)
class Run(Result):
    """A run on a robot."""

    NAME = "run"

    policy: str
    robot: str
    address: str
    seconds: float
    """For which the policy ran."""
    began: float
    """When it took over from the slow start, after the first command [s]."""
    rung: str
    """Where the robot stood at the end: RUN where nothing stopped it."""
    first: str
    reason: str
    """Why it stopped; empty where nothing stopped it."""
    events: list[tuple[float, str, str]]
    ticks: int
    answers: int
    missed: int
    missed_policy: int
    lost: int
    """Readings that never came."""
    limited: dict[str, float]
    """Share of commands that each limit changed."""
    times: dict[str, dict[str, float]]
    """Percentiles of period, computing time, round trip and the policy's own time [us]."""
    warnings: int
    growth: int
    unchecked: bool
    recording: str

    @property
    def exit_code(self) -> int:
        return 0 if not self.reason else 1

    @property
    def stretch(self) -> str:
        """The part of the recording in which the policy ran, as commands that read logs take it."""
        return f"{self.recording}@{self.began:.2f}:{self.began + self.seconds:.2f}"

    @property
    def title(self) -> str:
        return f"Run of {self.policy} on {self.robot}"

    def verdict(self) -> Verdict:
        unchecked = " UNCHECKED: this policy has no passed verdict." if self.unchecked else ""
        if self.reason:
            stop = f"STOPPED on {self.robot} after {self.seconds:.1f} s ({self.first.lower()}): {self.reason}."
            return Verdict(stop + unchecked, False)
        late = f" {self.missed} of {self.ticks} deadlines were missed." if self.missed else ""
        return Verdict(f"Ran on {self.robot} for {self.seconds:.1f} s without a stop.{late}{unchecked}", True)

    def sections(self) -> Iterable[Section | None]:
        rows = [[name, *(f"{v:.0f}" for v in times.values())] for name, times in self.times.items()]
        head = ["time [us]", *next(iter(self.times.values()), {})]
        yield Section("Times", table=Table(head, rows)) if rows else None
        shares = [[name, f"{100 * share:.3f} %"] for name, share in self.limited.items() if share > 0]
        yield Section("Commands that a limit changed", table=Table(["limit", "share"], shares)) if shares else None
        events = [[f"{time:.2f} s", rung, why] for time, rung, why in self.events]
        yield Section("What happened", table=Table(["time", "rung", "why"], events, words=3)) if events else None
        counts = (
            f"{self.ticks} commands, {self.answers} answers of the policy, {self.lost} readings lost, {self.warnings} warnings."
        )
        yield Section("Counts", counts + (f" The policy's part of the recording: {self.stretch}" if self.recording else ""))

    def glance(self) -> Iterable[RenderableType]:
        for section in self.sections():
            if section is not None:
                yield in_terminal(section) if section.table is not None else Text(str(section.text))
