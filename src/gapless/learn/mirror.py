"""Mirror: what observations and actions become when left and right change places."""

from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import numpy as np

from gapless.arrays import Array, Ints
from gapless.policy import Context, Contract, Term
from gapless.robots import home_data, imu_of
from gapless.twin import Space, Twin, quantities

CLOSE = 0.01
"""Largest distance of a mirrored joint from its partner [m]."""
ENCODER, STRAIGHT = "offset.encoder", ("inertia.com_x", "inertia.com_z")
"""What turns with its joint, and what may be negative and is its own mirror image."""
RANGES = 0.05
"""By how much the ranges of partners may differ, as they are drawn, as a share of their larger end."""
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


def observation(contract: Contract, twin: Twin, space: Space | None = None) -> Mirror | None:
    """The mirror of a policy's observation; None where a term's mirror is not known.

    space: what worlds are drawn over, which says what parameters of a context are tied.
    """
    by_joint = joints(twin)
    if by_joint is None or not _level(twin):
        return None
    index: list[int] = []
    sign: list[float] = []
    if contract.observation.major != "term" and any(t.history > 1 for t in contract.observation.terms):
        return None
    for term in contract.observation.terms:
        told = contract.context if term.kind == "context" else None
        one = _term(term, by_joint, tuple(contract.commands)) if told is None else context(told, twin, by_joint, space)
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


def context(told: Context, twin: Twin, by_joint: Mirror, space: Space | None) -> Mirror | None:
    """The mirror of parameters that a teacher is told, each in its range; None where one's partner or range is not known."""
    if told.low is None or told.high is None:
        return None
    tied = {name: p.members[0] for p in (space.parameters if space else ()) for name in p.members}
    swapped = {twin.joints[j]: twin.joints[i] for j, i in enumerate(by_joint.index)} | _links(twin)
    turned = dict(zip(twin.joints, by_joint.sign, strict=True))
    index, sign = [], []
    for i, name in enumerate(told.names):
        quantity, _, of = name.partition("/")
        if of and of not in swapped:
            return None
        partner = f"{quantity}/{swapped[of]}" if of else name
        partner = tied.get(partner, partner)
        if partner not in told.names:
            return None
        s = turned[of] if quantity == ENCODER else -1.0 if quantities.of(name).mirrored else 1.0
        j = told.names.index(partner)
        if of and s > 0 and told.low[i] < 0 and quantity not in (ENCODER, *STRAIGHT):
            return None  # it has a direction, and which way its mirror image points is not known
        ends = (told.low[j], told.high[j]) if s > 0 else (-told.high[j], -told.low[j])
        scale = max(abs(told.low[i]), abs(told.high[i]), 1e-9)
        if not np.allclose(ends, (told.low[i], told.high[i]), atol=RANGES * scale, rtol=0):
            return None
        index.append(j)
        sign.append(s)
    return Mirror(np.array(index), np.array(sign))


def _links(twin: Twin) -> dict[str, str]:
    """Which link changes places with which, by where their origins are at home."""
    model, data = twin.model, home_data(twin.model)
    mujoco.mj_forward(model, data)
    names = [model.body(b).name for b in range(1, model.nbody)]
    at = data.xpos[1:] - data.xpos[model.body(twin.base).id]
    pairs: dict[str, str] = {}
    kind = [(_depth(model, b), round(float(model.body_mass[b]), 6)) for b in range(1, model.nbody)]
    for i, name in enumerate(names):
        away = np.linalg.norm(at - at[i] * VECTOR, axis=1)
        # links whose origins coincide are told apart by their place in the tree and their mass
        partners = [k for k in np.flatnonzero(away < CLOSE) if kind[k] == kind[i]]
        if len(partners) == 1:
            pairs[name] = names[partners[0]]
    return pairs


def _depth(model: mujoco.MjModel, body: int) -> int:
    return 0 if body == 0 else 1 + _depth(model, int(model.body_parentid[body]))


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
