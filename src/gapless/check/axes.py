"""What a stress test turns: each axis is one thing that can be worse than modelled, from as modelled to far beyond."""

from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np

from gapless.arrays import Array
from gapless.twin import Twin

PUSHES, WEAK = "pushes", "one weak joint"


@dataclass(frozen=True)
class Axis:
    """One thing that is made worse, level by level."""

    name: str
    unit: str
    start: float
    """The level as modelled."""
    end: float
    """The worst that is tried."""
    patterns: tuple[str, ...]
    """Parameters that it turns."""
    factor: bool = False
    """Whether a level multiplies the modelled values; else it is the value."""
    weights: tuple[float, ...] = ()
    """Of each pattern, for parameters that grow together in their own units."""

    def levels(self, count: int) -> Array:
        """From the first one beyond what is modelled to the worst. Shape: (count,)."""
        return np.linspace(self.start, self.end, count + 1)[1:]

    def write(self, twin: Twin, values: Array, level: float, joint: int | None = None) -> None:
        """Put a level into a vector of parameters, in place. joint: the only one that is turned, by its number."""
        for pattern, weight in zip(self.patterns, self.weights or (1.0,) * len(self.patterns), strict=True):
            names = twin.space.names if joint is None else (f"{pattern[:-1]}{twin.joints[joint]}",)
            for i, p in enumerate(twin.space.parameters):
                if p.name in names and fnmatchcase(p.name, pattern):
                    wanted = p.nominal * level if self.factor else level * weight
                    values[i] = np.clip(wanted, p.low, p.high)

    def read(self, twin: Twin, values: Array) -> Array:
        """The level that vectors of parameters (n, parameters) have, mean over what the axis turns. Shape: (n,)."""
        columns = [(i, p) for i, p in enumerate(twin.space.parameters) if any(fnmatchcase(p.name, x) for x in self.patterns)]
        if self.name == WEAK:  # the weakest counts
            return np.min([values[:, i] / p.nominal for i, p in columns], axis=0)
        if self.factor:
            return np.mean([values[:, i] / p.nominal for i, p in columns], axis=0)
        first = np.mean([values[:, i] for i, p in columns if fnmatchcase(p.name, self.patterns[0])], axis=0)
        return first / (self.weights[0] if self.weights else 1.0)


def axes_of(twin: Twin) -> tuple[Axis, ...]:
    """The axes that a robot has."""
    nominal = {p.name: p.nominal for p in twin.space.parameters}
    high = {p.name: p.high for p in twin.space.parameters}
    grip = nominal.get("contact.friction", 1.0)
    late = nominal.get("latency.action", 0.0)
    # noise of all sensors together, in units of the largest of the preset `wide`
    noise = {"sensors.noise_q": 0.01, "sensors.noise_dq": 0.5, "sensors.noise_gyro": 0.1, "sensors.noise_tilt": 0.03}
    every = (
        Axis("delay", "s", late, high.get("latency.action", 0.1), ("latency.action",)),
        Axis("ground friction", "", grip, 0.1 * grip, ("contact.friction",)),
        Axis("joint friction", "x", 1.0, 10.0, ("friction.coulomb/*", "friction.viscous/*"), factor=True),
        Axis("payload", "kg", 0.0, twin.mass, ("inertia.payload",)),
        Axis("strength", "x", 1.0, 0.25, ("motor.strength/*",), factor=True),
        Axis("battery", "x torque limit", 1.0, 0.25, ("motor.limit/*",), factor=True),
        Axis("noise", "x wide", 0.0, 5.0, tuple(noise), weights=tuple(noise.values())),
        Axis("slope", "rad", 0.0, 0.5, ("contact.slope_pitch",)),
        Axis("lost frames", "", 0.0, 0.8, ("latency.drop", "sensors.drop")),
        Axis(WEAK, "x", 1.0, 0.2, ("motor.strength/*",), factor=True),
        Axis(PUSHES, "m/s", 0.0, 2.5, ()),
    )
    return tuple(axis for axis in every if _exists(twin, axis, nominal))


def _exists(twin: Twin, axis: Axis, nominal: dict[str, float]) -> bool:
    if axis.name == PUSHES:
        return twin.floating
    return all(any(fnmatchcase(name, pattern) for name in nominal) for pattern in axis.patterns)
