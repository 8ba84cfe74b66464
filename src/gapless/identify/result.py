"""Fit: what a fit found, as an object that prints itself, makes its page, saves itself to a folder and loads again.

fit = Fit.load("fitted")
fit.parameters["gains.kp/*"].value, fit.heldout.fit
fit.twin.save("twin.xml", fit.values)
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from gapless.arrays import Array
from gapless.identify import page
from gapless.identify.detection_limits import DetectionLimit
from gapless.identify.per_joint.ladder import Rung
from gapless.identify.score import Scores
from gapless.identify.uncertainty import LOOSE, Unknown, at_bound
from gapless.measure import Trace
from gapless.plain import NOT_SAVED
from gapless.report import Result
from gapless.twin import Gaussian, Origin, Plain, Twin, load_belief, recipe_of, save_belief

NINETY = 1.645  # standard deviations to either side of the mean hold 90 %


@dataclass(frozen=True)
class Estimate:
    """What a parameter was found to be."""

    value: float
    low: float
    """90 % interval."""
    high: float
    nominal: float
    """As the model has it."""
    unit: str
    shared_by: tuple[str, ...]
    """Parameters that have this one value; empty where it is one's own."""
    identified: bool
    """Whether the logs determine it."""
    at_bound: bool

    @property
    def sure(self) -> bool:
        """Whether the value can be relied on."""
        return self.identified and not self.at_bound


def estimates(belief: Gaussian) -> dict[str, Estimate]:
    """The parameters of a belief, by name."""
    space = belief.space
    spread = np.sqrt(np.diag(belief.covariance))
    value, low, high = (space.clip(space.from_scaled(belief.centre + k * NINETY * spread)) for k in (0, -1, 1))
    stuck, out = at_bound(belief), {}
    for i, p in enumerate(space.parameters):
        interval = float(value[i]), float(low[i]), float(high[i])
        out[p.name] = Estimate(*interval, p.nominal, p.unit, p.members, bool(spread[i] < LOOSE), bool(stuck[i]))
    return out


def save_twin(twin: Twin, values: Array, belief: Plain, folder: Path) -> None:
    """Write what was fitted, as plain MJCF with values baked in, and the belief about it."""
    twin.save(folder / "twin.xml", values)
    save_belief(belief, folder / "belief.json", recipe_of(twin))


@dataclass(frozen=True, repr=False)
class Fit(Result):
    """What a fit found."""

    NAME = "fit"
    PAGE = page

    robot: str
    parameters: dict[str, Estimate]
    """Those that were fitted, by name."""
    fixed: dict[str, float]
    """Those that were stated."""
    ladder: list[Rung]
    train: Scores
    heldout: Scores
    """Each half of the logs predicted in the full model by the fit to the other."""
    undetermined: list[Unknown]
    limits: list[DetectionLimit]
    """What the logs cannot show: of each cause that was not fitted the smallest mismatch that they would have revealed."""
    against: list[str]
    """Why it must not be used: it does not predict."""
    suspicions: list[str]
    """Why its numbers must not be trusted though it predicts, and what may be behind it."""
    warnings: list[str]
    """What else is odd, and which logs were left out."""
    zeros: dict[int, Array]
    """Encoder zeros of single logs, by their number in `origin.logs`, joints in the order of `pose` [rad]."""
    pose: dict[str, float]
    """Median measured position of each joint: where friction's angle is counted from [rad]."""
    seconds: float
    """Computing time."""
    seconds_used: float
    """Of the logs that parameters were fitted to [s]; errors are those of more of them, where that is affordable."""
    seconds_given: float
    """That the logs last [s]."""
    origin: Origin
    twin: Twin = field(metadata=NOT_SAVED)
    """As given, with a table where there is one; a loaded one has the fitted values as its nominal ones."""
    values: Array = field(metadata=NOT_SAVED)
    """Over `twin.space`, from all of the logs."""
    halves: Array = field(metadata=NOT_SAVED)
    """The same from either half of the logs. Shape: (2, parameters)."""
    belief: Plain = field(metadata=NOT_SAVED)
    """Over the parameters that were fitted: a Gaussian, unless particles were asked for."""
    traces: list[Trace] = field(metadata=NOT_SAVED)
    """Each log beside what was predicted, for plots; a loaded fit has none."""
    finer: Array = field(default_factory=lambda: np.empty((0, 0)), metadata=NOT_SAVED)
    """`values` and `halves` as they would be in a simulation of half the time step that moves the same. Shape: (3, numbers)."""

    @property
    def predicts(self) -> bool:
        """Whether it can be used to predict this robot."""
        return not self.against

    @property
    def trusted(self) -> bool:
        """Whether its numbers can be relied on as well."""
        return not self.against and not self.suspicions

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write twin.xml (plain MJCF, values baked in), belief.json, fit.json and report.html."""
        super().save(folder)
        save_twin(self.twin, self.values, self.belief, Path(folder))

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Fit:
        """What `save` wrote, less traces and halves; the twin is that of twin.xml. The folder may come from anywhere."""
        folder = Path(folder)
        twin = Twin.load(folder / "twin.xml")
        given = {"twin": twin, "values": twin.space.nominal, "halves": np.empty((0, len(twin.space))), "traces": []}
        fit = cls._read(folder, belief=load_belief(folder / "belief.json"), **given)
        # twin.xml has what predicted best, which a belief need not have in its middle; only delays below a step it has not
        late = {name: p.value for name, p in fit.parameters.items() if name in twin.space.names and name.startswith("latency.")}
        return replace(fit, values=twin.space.values(late))
