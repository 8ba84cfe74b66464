"""WalkingFit: what distributions of a walking robot's states tell, as an object that prints, saves and makes its page."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import RenderableType

from gapless.arrays import Array
from gapless.gap import Distances, distances_section
from gapless.identify.page import parameters_section
from gapless.identify.result import Estimate, save_twin
from gapless.identify.trust import strange
from gapless.identify.uncertainty import Unknown
from gapless.plain import NOT_SAVED
from gapless.report import Result, Section, Table, Verdict, few, in_terminal, notes, short
from gapless.twin import Origin, Plain, Twin, load_belief


@dataclass(frozen=True, repr=False)
class WalkingFit(Result):
    """What a fit to a walking robot found. Distances are Wasserstein's, in units of how much each signal moves."""

    NAME = "walking"

    robot: str
    parameters: dict[str, Estimate]
    """Those that were fitted, by name."""
    fixed: dict[str, float]
    """Those that were stated."""
    nominal: Distances
    fitted: Distances
    """Between the states of the robot and those of the model as given, and as fitted."""
    heldout_given: float
    heldout: float
    """The same for halves of the logs, each beside the fit to the other half; mean over columns."""
    unlike: float
    """How far the robot is from simulated ones with its numbers, over how far these are from each other."""
    fell: float
    """Share of simulated robots that fell."""
    undetermined: list[Unknown]
    warnings: list[str]
    seconds: float
    """Computing time."""
    seconds_used: float
    seconds_given: float
    origin: Origin
    twin: Twin = field(metadata=NOT_SAVED)
    values: Array = field(metadata=NOT_SAVED)
    """Over `twin.space`."""
    belief: Plain = field(metadata=NOT_SAVED)

    @property
    def floor(self) -> float:
        """Distance between two halves of the robot's own log, mean over columns."""
        return self.fitted.mean.usual

    @property
    def predicts(self) -> bool:
        """Whether the fitted model walks more like the robot than the model as given, where it was not fitted."""
        return self.heldout < self.heldout_given

    @property
    def shown(self) -> dict[str, Estimate]:
        """The numbers that walking shows."""
        return {name: p for name, p in self.parameters.items() if p.identified}

    @property
    def suspicion(self) -> str:
        """Why its numbers must not be trusted; empty if nothing speaks against them."""
        return strange(self.unlike)

    @property
    def title(self) -> str:
        return f"Fit of {self.robot}, walking"

    def verdict(self) -> Verdict:
        """Whether the model walks more like the robot, what that shows, and what it does not show."""
        before, after, floor = map(short, (self.heldout_given, self.heldout, self.floor))
        text = f"Where the fit did not look, the distance between robot and model went from {before} to {after}"
        text += f" (two halves of the robot's own log: {floor}; 1 is as much as a signal moves)."
        found = [f"{n} {short(p.value)} ({short(p.low)} to {short(p.high)}) {p.unit}".strip() for n, p in self.shown.items()]
        shown = f"Walking shows {len(found) or 'none'} of {len(self.parameters)} numbers."
        load = next((words for words in found if words.startswith("inertia.payload")), "")
        shown += f" {load}." if load else " It does not show the payload." if "inertia.payload" in self.parameters else ""
        if not self.predicts:
            return Verdict(f"Do not use it: the fitted model walks no more like the robot. {text}", good=False)
        if self.suspicion:
            return Verdict(f"It walks more alike, but do not trust its numbers: {self.suspicion} {text} {shown}", good=False)
        return Verdict(f"{text} {shown} Do not rely on the others.", good=True)

    def sections(self) -> Iterator[Section | None]:
        yield self._table()
        yield Section("What walking does not show", self._hidden())
        yield parameters_section(self)
        for name, distances in (("model as given", self.nominal), ("fitted model", self.fitted)):
            section = distances_section(distances)
            yield section and Section(f"{section.title}, {name}", section.text, section.table)
        more = [("computing time", f"{self.seconds:.1f} s"), ("fitted to", self.used), ("fell", f"{100 * self.fell:.0f} %")]
        yield self.origin.section(*more)

    def glance(self) -> Iterator[RenderableType]:
        yield in_terminal(self._table())
        yield from notes("not known", self._hidden())
        yield from notes("note", self.warnings)
        yield f"Fitted to {self.used}; {100 * self.fell:.0f} % of the simulated robots fell."

    def _hidden(self) -> list[str]:
        return [f"{few(u.parameters)}: {u.meaning}" for u in self.undetermined]

    def _table(self) -> Section:
        rows = [
            [name, short(p.nominal), short(p.value), f"{short(p.low)} to {short(p.high)}", p.unit or "–"]
            for name, p in self.shown.items()
        ]
        head = ("parameter", "as given", "fitted", "90 % interval", "unit")
        return Section("What walking shows", "" if rows else "None of the numbers.", Table(head, rows) if rows else None)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write twin.xml (plain MJCF, values baked in), belief.json, walking.json and report.html."""
        super().save(folder)
        save_twin(self.twin, self.values, self.belief, Path(folder))

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> WalkingFit:
        """What `save` wrote; the twin is that of twin.xml. The folder may come from anywhere."""
        folder = Path(folder)
        twin, belief = Twin.load(folder / "twin.xml"), load_belief(folder / "belief.json")
        return cls._read(folder, belief=belief, twin=twin, values=twin.space.nominal)
