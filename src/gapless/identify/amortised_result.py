"""What a network that was learnt once says of a log, as a result; where there is no network yet, it is learnt first."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from rich.console import RenderableType

from gapless.errors import BadInput
from gapless.identify.amortised import Amortised, learn_amortised
from gapless.identify.per_joint.ladder import Tick, quiet
from gapless.logs import Log
from gapless.plain import NOT_SAVED
from gapless.report import Result, Section, Table, Verdict, in_terminal, short
from gapless.twin import Particles, Twin, belief_interval, load_belief, recipe_of, save_belief
from gapless.worlds import common_signal

LONGEST = 30.0
"""Of a motion that a network is learnt for [s]."""
STRANGE = 6.0
"""Standard deviations of what was simulated: a log farther out is like none of it."""


@dataclass(frozen=True)
class Drawn:
    """A number of the robot, by draws."""

    nominal: float
    value: float
    """Mean."""
    low: float
    high: float
    """90 % interval."""
    unit: str


@dataclass(frozen=True, repr=False)
class AmortisedFit(Result):
    """What a log leaves possible, by a network."""

    NAME = "amortised"

    robot: str
    log: str
    parameters: dict[str, Drawn]
    widened: float
    """Times that the network's draws are spread, so that regions hold the truth of simulated robots."""
    out: float
    """How far the log is from what was simulated, in standard deviations of it."""
    learnt: bool
    """Whether the network was learnt now."""
    seconds: float
    """From the log to the belief, without learning."""
    belief: Particles = field(metadata=NOT_SAVED)
    recipe: dict[str, object] = field(metadata=NOT_SAVED)

    @property
    def title(self) -> str:
        return f"Amortised posterior of {self.robot}"

    def verdict(self) -> Verdict:
        text = f"{len(self.parameters)} numbers within {self.seconds:.2f} s of the log."
        if self.out > STRANGE:
            text += f" Do not trust them: the log is {self.out:.0f} standard deviations from all that was simulated."
        return Verdict(text, good=self.out <= STRANGE)

    def sections(self) -> Iterator[Section]:
        rows = [
            [name, short(p.nominal), short(p.value), f"{short(p.low)} to {short(p.high)}", p.unit or "–"]
            for name, p in self.parameters.items()
        ]
        head = ("parameter", "as given", "mean", "90 % interval", "unit")
        yield Section("What the log leaves possible", table=Table(head, rows))

    def glance(self) -> Iterator[RenderableType]:
        yield from map(in_terminal, self.sections())

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write belief.json, amortised.json and report.html."""
        super().save(folder)
        save_belief(self.belief, Path(folder) / "belief.json", self.recipe)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> AmortisedFit:
        """What `save` wrote. The folder may come from anywhere."""
        belief = load_belief(Path(folder) / "belief.json")
        if not isinstance(belief, Particles):
            raise BadInput(f"{folder}: its belief is not one of a network")
        return cls._read(Path(folder), belief=belief, recipe={})


def ask_network(twin: Twin, log: Log, path: str | os.PathLike[str], tick: Tick = quiet) -> AmortisedFit:
    """What a log leaves possible, by the network in a file; where there is none, it is learnt for the log's motion."""
    learnt = not Path(path).exists()
    if learnt:
        motion = _motion(twin, log)
        learn_amortised(twin, motion, np.random.default_rng(0), tick=tick).save(path)
    known = Amortised.load(path, twin)
    began = time.perf_counter()
    belief = known.belief(twin, log, np.random.default_rng(0))
    took = time.perf_counter() - began
    out = float(np.abs(known.summary(known.measured(twin, log)[None])).max())
    columns = zip(belief.space.parameters, belief.mean().tolist(), *(e.tolist() for e in belief_interval(belief)), strict=True)
    numbers = {p.name: Drawn(p.nominal, mean, low, high, p.unit) for p, mean, low, high in columns}
    return AmortisedFit(twin.name, log.name, numbers, known.widened, out, learnt, took, belief, recipe_of(twin))


def _motion(twin: Twin, log: Log) -> np.ndarray:
    """What a log's joints were told at the control rate. Shape: (periods, joints)."""
    told = f"{common_signal(twin)}_cmd"
    if told not in log:
        raise BadInput(f"{log.name}: a network is learnt for a motion, and the log has no {told}")
    begin, end = log["q"].time[0], log["q"].time[-1]
    if end - begin > LONGEST:
        raise BadInput(f"{log.name}: lasts {end - begin:.0f} s; a network is learnt for at most {LONGEST:g} s (LOG@0:20)")
    time_ = begin + twin.control_dt * np.arange(int((end - begin) / twin.control_dt + 1e-6))
    return log.at(told, time_)[:, [log[told].columns.index(j) for j in twin.joints]]
