"""The remainder: what no cause explains, located by joint and by what the robot was doing."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from gapless.arrays import Array
from gapless.measure import Trace, phase_map

STRUCTURE = {
    "reversals": ("at reversals", "play or stiction in the gear"),
    "high speed": ("at high speed", "a torque-speed limit or drag that the model lacks"),
    "high load": ("under high load", "flexibility, or friction that grows with load"),
    "late": ("late in the log", "heating, or a part that works loose"),
    "early": ("early in the log", "a robot that warms up, or a wrong initial state"),
    "range ends": ("near the ends of its range", "eccentric gears, cogging or a cable that pulls"),
    "contact": ("at contact", "contact with something that the model does not have"),
    "single moments": ("at single moments", "commands or drive power lost now and then, or blows from outside"),
}
"""Phase to when that is, and what errors that gather there suggest."""
TIMES = 2.0  # the mean square in a phase over that elsewhere, from which on it is named
MAIN = 0.2  # share of the remainder that a joint must have to be named
STRETCH = 25  # samples: as long as a single moment
MOTION = 4.0  # times as much in the loudest tenth of stretches as in the others: motion alone gives as much


@dataclass(frozen=True)
class Remainder:
    """What is left when every cause is switched on."""

    share: float
    """Of the squared error above the sensors' noise."""
    times: float
    """What is left, in units of what twins within their tolerances leave (mean square)."""
    where: list[str] = field(default_factory=list)
    """Sentences: which joint, in which phase, and what structure that suggests; largest first."""
    joints: dict[str, float] = field(default_factory=dict)
    """Share of the remainder by joint."""
    phases: dict[str, float] = field(default_factory=dict)
    """Phase to the mean square error in it over that elsewhere, for the joints named."""


def located(traced: Sequence[Trace], share: float, times: float) -> Remainder:
    """Locate what the `twin` of each trace leaves."""
    joints = traced[0].joints
    square = np.concatenate([t.error("twin") for t in traced]) ** 2
    part = square.sum(axis=0) / max(float(square.sum()), 1e-30)
    where: list[str] = []
    every: dict[str, float] = {}
    by_joint = phase_map(traced)
    for j in [int(j) for j in np.argsort(-part) if part[j] > MAIN] or [int(np.argmax(part))]:
        ratios = {name: ratio or 0.0 for name, ratio in by_joint[joints[j]].items()}
        ratios["single moments"] = _bursts(square[:, j])
        every |= {name: max(ratio, every.get(name, 0.0)) for name, ratio in ratios.items()}
        loud = sorted((name for name, ratio in ratios.items() if ratio > TIMES), key=lambda name: -ratios[name])
        size = f"{joints[j]} ({1e3 * np.sqrt(square[:, j].mean()):.1f} mrad)"
        for name in loud[:2]:
            when, structure = STRUCTURE[name]
            where.append(f"{size} {when}, by a factor of {ratios[name]:.1f} more than elsewhere: suggests {structure}")
        if not loud:
            where.append(f"{size} in every phase: suggests a missing degree of freedom, or a structure that the model lacks")
    return Remainder(share, times, where, {joints[j]: float(part[j]) for j in np.argsort(-part)}, every)


def _bursts(square: Array) -> float:
    """How much more the loudest tenth of stretches has than the others, over what motion alone gives."""
    parts = np.array([p.mean() for p in np.array_split(square, max(4, len(square) // STRETCH))])
    loud = parts > np.quantile(parts, 0.9)
    return float(parts[loud].mean() / max(float(parts[~loud].mean()), 1e-30)) / MOTION
