"""Mismatches: what is wrong with a robot that remedies are compared on, one cause at a time, beyond the ranges of `wide`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gapless.errors import must_exist
from gapless.worlds import StandInSpec

SINCE = 4.0
"""Seconds of a run after which a robot that changes has changed."""


@dataclass(frozen=True)
class Mismatch:
    """One thing that the model has wrong, as a stand-in's file states it."""

    name: str
    change: Mapping[str, float | str] = field(default_factory=dict)
    add: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    later: Mapping[str, float | str] = field(default_factory=dict)
    """What changes besides in mid-run, `SINCE` seconds after its start: no log shows it."""

    def standin(self, robot: str, seed: int) -> StandInSpec:
        """The robot with this mismatch; all else is within its tolerances, and other with each seed."""
        return StandInSpec(robot, seed, change=self.change, add=self.add, sensors=SENSORS)

    def changed(self, standin: StandInSpec) -> StandInSpec | None:
        """What that robot has become in mid-run, where it changes."""
        return dataclasses.replace(standin, change={**standin.change, **self.later}) if self.later else None


SENSORS = {"noise_q": 0.0005, "noise_dq": 0.02}
NONE = Mismatch("none")
"""The control: a robot within its tolerances."""
MISMATCHES = {
    "pendulum": (
        NONE,
        Mismatch("latency", {"latency.action": 0.07}),
        Mismatch("strength", {"motor.strength/*": "x0.6"}),
        Mismatch("payload", {"inertia.mass/lower": "+0.4"}),
        Mismatch("friction", {"friction.coulomb/*": "x7"}),
        Mismatch("play", add={"backlash": {"joints": "*", "width": 0.25}}),
        Mismatch("lopsided", {"inertia.com_x/*": "+0.15"}),
        Mismatch("drag", {"disturbance.cable/*": 0.5}),
        Mismatch("change", later={"latency.action": 0.05}),
    ),
    "quadruped": (
        NONE,
        Mismatch("latency", {"latency.action": 0.05}),
        Mismatch("strength", {"motor.strength/*": "x0.6"}),
        Mismatch("payload", {"inertia.payload": "+4"}),
        Mismatch("friction", {"friction.coulomb/*": "x4"}),
        Mismatch("play", add={"backlash": {"joints": "*_calf", "width": 0.06}}),
        Mismatch("grip", {"contact.friction": "x0.35"}),
        Mismatch("lopsided", {"inertia.com_y/base": "+0.05"}),
        Mismatch("drag", {"disturbance.cable/*_calf": 5.0}),
        Mismatch("change", later={"latency.action": 0.05}),
    ),
}
"""By robot. A pendulum touches nothing, so it has no grip to lose."""


def mismatches_of(robot: str, names: tuple[str, ...] = ()) -> tuple[Mismatch, ...]:
    """Those of a built-in robot, all unless named."""
    must_exist("robot with mismatches to compare on", [robot], MISMATCHES)
    of = {m.name: m for m in MISMATCHES[robot]}
    must_exist(f"mismatch of the {robot}", list(names), of)
    return tuple(of[name] for name in names) or MISMATCHES[robot]
