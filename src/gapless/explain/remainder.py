"""The remainder: what no cause explains, located by joint and by what the robot was doing."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gapless.arrays import Array
from gapless.explain.physics import Physics

STRUCTURE = {
    "reversals": "play or stiction in the gear",
    "high speed": "a torque-speed limit or drag that the model lacks",
    "high load": "flexibility, or friction that grows with load",
    "late in the log": "heating, or a part that works loose",
    "early in the log": "a robot that warms up, or a wrong initial state",
    "a place in its range": "eccentric gears, cogging or a cable that pulls",
    "contact": "contact with something that the model does not have",
    "single moments": "commands or drive power lost now and then, or blows from outside",
}
TIMES = 2.0  # the mean square in a phase over that elsewhere, from which on it is named
MAIN = 0.2  # share of the remainder that a joint must have to be named


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


def located(physics: Physics, errors: Array, share: float, times: float) -> Remainder:
    """Locate errors (samples, columns) [rad]."""
    square = errors[:, : len(physics.twin.joints)] ** 2
    part = square.sum(axis=0) / max(float(square.sum()), 1e-30)
    named = [int(j) for j in np.argsort(-part) if part[j] > MAIN] or [int(np.argmax(part))]
    where: list[str] = []
    every: dict[str, float] = {}
    for j in named:
        found = {name: _times(square[:, j], rows) for name, rows in phases(physics, j).items()}
        found["single moments"] = _bursts(square[:, j])
        loud = sorted((name for name, v in found.items() if v > TIMES), key=lambda n: -found[n])
        every |= {n: max(found[n], every.get(n, 0.0)) for n in found}
        size = f"{1e3 * np.sqrt(square[:, j].mean()):.1f} mrad"
        joint = physics.twin.joints[j]
        if loud:
            where += [
                f"{joint} ({size}) at {n}, {found[n]:.1f} times as much as elsewhere: suggests {STRUCTURE[n]}" for n in loud[:2]
            ]
        else:
            where.append(
                f"{joint} ({size}) in every phase: suggests a missing degree of freedom, or a structure that the model lacks"
            )
    joints = {physics.twin.joints[j]: float(part[j]) for j in np.argsort(-part)}
    return Remainder(share, times, where, joints, every)


def phases(physics: Physics, j: int) -> dict[str, NDArray[np.bool_]]:
    """Which samples are in which phase of a joint's motion. Shape of each: (samples,)."""
    q = physics.measured("q")
    assert q is not None
    time, command = physics.time, physics.command[:, j]
    speed = np.gradient(q[:, j]) / np.maximum(np.gradient(time), 1e-6)
    smooth = np.convolve(speed, np.ones(5) / 5, "same")
    turned = np.flatnonzero(np.diff(np.sign(np.where(np.abs(smooth) < 0.02 * np.abs(smooth).max(), 0, smooth))) != 0)
    near = np.zeros(len(q), dtype=bool)
    for t in turned:
        near[max(0, t - 2) : t + 6] = True
    load = np.abs(command - q[:, j])
    end = float(time.max())
    middle = np.median(q[:, j])
    place = np.abs(q[:, j] - middle)
    return {
        "reversals": near,
        "high speed": np.abs(smooth) > np.quantile(np.abs(smooth), 0.85),
        "high load": load > np.quantile(load, 0.85),
        "late in the log": time > 0.7 * end,
        "early in the log": time < 0.3 * end,
        "a place in its range": place > np.quantile(place, 0.85),
    }


def _times(square: Array, rows: NDArray[np.bool_]) -> float:
    """Mean square in a phase over that elsewhere; 0 where the phase is all or nothing."""
    if rows.sum() < 10 or (~rows).sum() < 10:
        return 0.0
    return float(square[rows].mean() / max(float(square[~rows].mean()), 1e-30))


def _bursts(square: Array) -> float:
    """How much more the loudest tenth of stretches has than the others, over what motion alone gives (about 4)."""
    parts = np.array([p.mean() for p in np.array_split(square, max(4, len(square) // 25))])
    loud = parts > np.quantile(parts, 0.9)
    return float(parts[loud].mean() / max(float(parts[~loud].mean()), 1e-30)) / 4
