"""Mirror: what observations and actions become when left and right change places."""

from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import numpy as np

from gapless.arrays import Array, Ints
from gapless.policy import Contract, Term
from gapless.robots import home_data, imu_of
from gapless.twin import Twin, quantities

CLOSE = 0.01
"""Largest distance of a mirrored joint from its partner [m]."""
# signs of vectors (x, y, z) and of turn rates under y -> -y
VECTOR, TURN = (1.0, -1.0, 1.0), (-1.0, 1.0, -1.0)
COMMANDS = {"vx": 1.0, "vy": -1.0, "yaw_rate": -1.0}


@dataclass(frozen=True)
class Mirror:
    """A signed permutation: `mirrored = sign * values[..., index]`."""

    index: Ints
    sign: Array

    def __call__(self, values: Array) -> Array:
        return np.asarray(values[..., self.index] * self.sign)


def joints(twin: Twin) -> Mirror | None:
    """Which joint is mirrored to which, and which turn the other way; None for a robot that is not symmetric.

    A hinge's axis is a pseudovector: under y -> -y it becomes (-x, y, -z).
    """
    model, data = twin.model, home_data(twin.model)
    mujoco.mj_forward(model, data)
    root = data.xpos[model.body_rootid[model.jnt_bodyid[twin.drives[0].joint]]] if twin.drives else np.zeros(3)
    anchor = np.array([data.xanchor[d.joint] - root for d in twin.drives])
    axis = np.array([data.xaxis[d.joint] for d in twin.drives])
    hinge = np.array([model.jnt_type[d.joint] == mujoco.mjtJoint.mjJNT_HINGE for d in twin.drives])
    index, sign = [], []
    for j in range(len(twin.drives)):
        away = np.linalg.norm(anchor - anchor[j] * VECTOR, axis=1)
        along = axis @ (axis[j] * (TURN if hinge[j] else VECTOR))
        # joints that share an anchor (an ankle's pitch and roll) differ in their axes
        partners = np.flatnonzero((away < CLOSE) & (np.abs(along) > 0.99))
        if len(partners) != 1:
            return None
        index.append(int(partners[0]))
        sign.append(float(np.sign(along[partners[0]])))
    if sorted(index) != list(range(len(index))):
        return None
    return Mirror(np.array(index), np.array(sign)[index])


def observation(contract: Contract, twin: Twin) -> Mirror | None:
    """The mirror of a policy's observation; None where a term's mirror is not known."""
    by_joint = joints(twin)
    if by_joint is None or not _level(twin):
        return None
    index: list[int] = []
    sign: list[float] = []
    if contract.observation.major != "term" and any(t.history > 1 for t in contract.observation.terms):
        return None
    for term in contract.observation.terms:
        one = _term(term, by_joint, tuple(contract.commands))
        if one is None:
            return None
        for _ in range(term.history):
            index += (len(index) + one.index).tolist()
            sign += one.sign.tolist()
    return Mirror(np.array(index, dtype=np.int64), np.array(sign))


def _level(twin: Twin) -> bool:
    """Whether a mirror image flips the IMU's axes as it flips those of the base."""
    imu = imu_of(twin.model)
    if imu is None:
        return True
    flat = np.empty(9)
    mujoco.mju_quat2Mat(flat, imu.quat)
    seat = flat.reshape(3, 3)
    return np.allclose(seat @ np.diag(VECTOR) @ seat.T, np.diag(VECTOR), atol=1e-3)


def _term(term: Term, by_joint: Mirror, commands: Sequence[str]) -> Mirror | None:
    straight = np.arange(term.dim)
    if term.kind in ("gravity", "velocity", "acc"):
        return Mirror(straight, np.array(VECTOR))
    if term.kind == "gyro":
        return Mirror(straight, np.array(TURN))
    if term.kind in ("q", "dq", "last_action") and not term.joints:
        return by_joint
    if term.kind == "command" and set(commands) <= set(COMMANDS) and not term.commands:
        return Mirror(straight, np.array([COMMANDS[c] for c in commands]))
    if term.kind == "clock" and len(term.phases) == 1:  # the other group of legs leads: half a cycle later
        return Mirror(straight, -np.ones(term.dim))
    return None


def parameters(names: Sequence[str]) -> Mirror:
    """The mirror of a world's parameters, averaged over joints and links: what points sideways changes its sign."""
    return straight([-1.0 if quantities.of(name).mirrored else 1.0 for name in names])


def straight(sign: Sequence[float]) -> Mirror:
    """Values that keep their places."""
    return Mirror(np.arange(len(sign)), np.array(sign))


def feet(position: Array) -> Mirror | None:
    """Feet that change places, from where they are at home (feet, 3)."""
    away = np.linalg.norm(position[:, None] - position * VECTOR, axis=2)
    index = away.argmin(axis=1)
    if (away.min(axis=1) > CLOSE).any() or sorted(index) != list(range(len(index))):
        return None
    return Mirror(index, np.ones(len(index)))


def joined(parts: Sequence[Mirror]) -> Mirror:
    """Mirrors of values one after the other."""
    starts = np.cumsum([0, *(len(p.index) for p in parts)])
    index = np.concatenate([s + p.index for s, p in zip(starts, parts, strict=False)])
    return Mirror(index, np.concatenate([p.sign for p in parts]))
