"""A robot in an engine: what every adapter offers, and the one law of drives, friction and damping for all of them."""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gapless.arrays import Array
from gapless.check.engines.canonical import Canonical, Joint
from gapless.rotations import rotate_back

SLIP = 2.0
"""Dry friction grows linearly up to this many times the speed that it could take away in a step: more would shake."""


@dataclass(frozen=True)
class Base:
    """The floating base: position [m] and velocity [m/s] of its frame in the world, quaternion, turn rate in its own frame."""

    pos: Array
    quat: Array
    velocity: Array
    turn: Array


@dataclass(frozen=True)
class ReadBack:
    """The robot as an engine has it."""

    masses: dict[str, float]
    """By link [kg]."""
    limits: dict[str, tuple[float, float]]
    """By joint, in the URDF's positions [rad or m]."""
    armature: dict[str, float] | None
    """By joint [kg m2]; None where the engine has no armature."""


class Adapter(Protocol):
    """An engine with one robot in it. Joints are in the canonical order, positions as the URDF counts them."""

    lacks: tuple[str, ...]
    """A sentence for each thing of the canonical model that the engine cannot express."""

    def read_back(self) -> ReadBack: ...

    def place(self, q: Array, base: Base) -> None:
        """Put the robot somewhere; joints at rest."""

    def joints(self) -> tuple[Array, Array]:
        """Positions and velocities. Shape of each: (joints,)."""

    def base(self) -> Base: ...

    def step(self, torque: Array) -> None:
        """One step under joint torques (joints,)."""


class EngineWorld(Protocol):
    """A robot that is commanded period by period. Joints in the order of the drives, positions as MuJoCo counts them."""

    lacks: tuple[str, ...]

    def reset(self, q: Array, base: Base) -> None: ...

    def hold(self, command: Array, steps: int) -> None:
        """Let steps of physics pass under a command (drives,)."""

    def joints(self) -> tuple[Array, Array]: ...

    def torque(self) -> Array:
        """Of the drives, in the last step [N m]."""

    def base(self) -> Base: ...


class Stepped:
    """A robot in another engine than MuJoCo, under the canonical model's law, computed here before each step."""

    def __init__(self, adapter: Adapter, model: Canonical, timestep: float):
        self._adapter, self._law, self.lacks = adapter, model.law, adapter.lacks
        names = [j.name for j in model.joints]
        self._driven = [names.index(name) for name in model.law.joints]
        self._zero = np.array([j.zero for j in model.joints])
        self._damping = np.array([j.damping for j in model.joints])
        self._spring, self._rest = np.array([j.spring for j in model.joints]).reshape(-1, 2).T
        self._friction = np.array([j.friction for j in model.joints])
        self._slip = np.array([max(SLIP * timestep * j.friction / j.inertia, 1e-6) for j in model.joints])
        self._torque = np.zeros(len(self._driven))

    def reset(self, q: Array, base: Base) -> None:
        """q: all joints, in the canonical order."""
        self._adapter.place(q - self._zero, base)

    def hold(self, command: Array, steps: int) -> None:
        law, adapter = self._law, self._adapter
        asked = law.gain * np.clip(command, *law.command) + law.bias[0]
        for _ in range(steps):
            q, dq = adapter.joints()
            q = q + self._zero
            torque = self._spring * (self._rest - q) - self._damping * dq
            torque -= self._friction * np.clip(dq / self._slip, -1.0, 1.0)
            own = asked + law.bias[1] * q[self._driven] + law.bias[2] * dq[self._driven]
            self._torque = np.clip(own, *law.limit)
            torque[self._driven] += self._torque
            adapter.step(torque)

    def joints(self) -> tuple[Array, Array]:
        q, dq = self._adapter.joints()
        return (q + self._zero)[self._driven], dq[self._driven]

    def torque(self) -> Array:
        return self._torque

    def base(self) -> Base:
        return self._adapter.base()


def differences(model: Canonical, engine: str, read: ReadBack) -> list[str]:
    """A sentence for each mass, limit or armature that an engine has otherwise than the canonical model."""
    links = model.links[0 if model.floating else 1 :]
    out = []
    for link in links:
        mass = read.masses.get(link.name, math.nan)
        if not abs(mass - link.mass) <= 1e-4 * max(link.mass, 1e-3):
            out.append(f"{engine} gives link {link.name} {mass:.4g} kg, and the model {link.mass:.4g} kg")
    total = sum(read.masses.get(link.name, math.nan) for link in links)
    if out:
        out.append(f"{engine} weighs the robot at {total:.4g} kg, and the model at {model.mass:.4g} kg")
    if missing := [j.name for j in model.joints if j.name not in read.limits]:
        out.append(f"{engine} lacks the joints {', '.join(missing)}")
    for joint in model.joints:
        out += _of_joint(joint, engine, read)
    return out


def _of_joint(joint: Joint, engine: str, read: ReadBack) -> list[str]:
    out = []
    low, high = read.limits.get(joint.name, (math.nan, math.nan))
    ends = (joint.low - joint.zero, joint.high - joint.zero)
    if math.isfinite(sum(ends)) and not np.allclose((low, high), ends, atol=1e-4):
        out.append(
            f"{engine} limits {joint.name} to {low:.4g} and {high:.4g}, and the model to {ends[0]:.4g} and {ends[1]:.4g}"
        )
    if read.armature is not None and not math.isclose(
        read.armature.get(joint.name, math.nan), joint.armature, rel_tol=1e-4, abs_tol=1e-7
    ):
        out.append(
            f"{engine} has {read.armature.get(joint.name)} kg m2 of armature at {joint.name}, the model {joint.armature:.4g}"
        )
    return out


def shifted(velocity: Array, turn: Array, offset: Array) -> Array:
    """Velocity of a point of a rigid body that is `offset` away from one of this velocity; all in the world's frame."""
    return np.asarray(velocity) + np.cross(turn, offset)


def in_body(quat: Array, vector: Array) -> Array:
    """A vector of the world's frame as the body sees it."""
    return np.asarray(rotate_back(np.asarray(quat, float), np.asarray(vector, float)))


def to_world(quat: Array, vector: Array) -> Array:
    """A vector of the body's frame in the world's."""
    return in_body(np.asarray(quat) * [1, -1, -1, -1], vector)
