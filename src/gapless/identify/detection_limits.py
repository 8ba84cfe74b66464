"""What logs cannot show: of each cause the smallest mismatch that they would have revealed, and the motion that shows less."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from gapless.identify.sensitivity import Sensitivity
from gapless.report import Section, Table, few
from gapless.twin import Parameter, quantities

CERTAIN = 3.0  # standard deviations of a mismatch that is seen
FARTHEST = 6.0  # scaled units: a mismatch that only shows beyond is not shown at all


@dataclass(frozen=True)
class DetectionLimit:
    """The smallest mismatch of a cause, on all joints or links that have it, that the logs would have revealed."""

    cause: str
    smallest: float | None
    """In `unit`; None where they would not show any."""
    unit: str
    """"times" for a factor."""
    shown_by: str
    """The motion or signal that shows less."""

    @property
    def size(self) -> str:
        """The smallest mismatch in words."""
        if self.smallest is None:
            return "not at all"
        return f"a factor of {self.smallest:.2f}" if self.unit == "times" else f"{self.smallest:.2g} {self.unit}".strip()


def detection_limit(parameter: Parameter, scaled: float) -> DetectionLimit:
    """A mismatch of so many scaled units in words."""
    quantity = quantities.of(parameter.name)
    richer = (
        "motion with and without load, slow and fast, shows less" if quantity.in_any_motion else "a robot on its feet shows it"
    )
    cause, shown_by = quantities.cause(parameter.name) or quantity.name, quantity.shows or richer
    if not scaled < FARTHEST:
        return DetectionLimit(cause, None, parameter.unit, shown_by)
    if parameter.log:
        return DetectionLimit(cause, math.exp(scaled * parameter.scale), "times", shown_by)
    return DetectionLimit(cause, scaled * parameter.scale, parameter.unit, shown_by)


def detection_limits(every: Sensitivity, fitted: Collection[str]) -> list[DetectionLimit]:
    """Of every cause that was not fitted, while all fitted numbers may move and all others within their tolerances.

    fitted: names of the parameters that were.
    """
    names, parameters = every.space.names, every.space.parameters
    chosen = {name.partition("/")[0] for name in fitted}
    stood_for = {other for name in fitted for other in quantities.stood_for(name)}
    room = np.diff(every.space.tolerated, axis=0)[0] ** 2 / 12
    room = np.where([n in fitted for n in names], 1.0, room)
    information = every.says()[0]
    out = []
    asked = [p for p in parameters if p.quantity not in chosen and p.name not in stood_for]
    for cause in dict.fromkeys(c for p in asked if (c := quantities.cause(p.name))):
        own = [i for i, p in enumerate(parameters) if quantities.cause(p.name) == cause]
        main = [i for i in own if parameters[i].quantity == parameters[own[0]].quantity]
        rest = [i for i in range(len(names)) if i not in own and room[i] > 0]
        across = information[np.ix_(rest, main)].sum(axis=1)
        explained = across @ np.linalg.solve(information[np.ix_(rest, rest)] + np.diag(1 / room[rest]), across)
        seen = float(information[np.ix_(main, main)].sum() - explained)
        out.append(detection_limit(parameters[main[0]], CERTAIN / math.sqrt(seen) if seen > 0 else math.inf))
    return out


def hidden(found: Sequence[DetectionLimit]) -> str:
    """What logs would not show at any size, in a sentence."""
    names = [each.cause for each in found if each.smallest is None]
    if not names:
        return "The report says how small a mismatch these logs would have shown."
    return f"These logs would not show {few(names)} at any size; the report says how small they show the others."


def hidden_section(found: Sequence[DetectionLimit]) -> Section | None:
    """The same as a table of all causes, what is hidden best first."""
    order = sorted(found, key=lambda each: each.smallest is not None)
    rows = [[each.cause, each.size, each.shown_by] for each in order]
    text = "Of each cause the smallest mismatch, on all joints at once, that these logs would have shown, and what shows less."
    return (
        Section("What these logs cannot show", text, Table(("cause", "only above", "what shows less"), rows)) if rows else None
    )
