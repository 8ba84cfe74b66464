"""Limits: what a motion must not exceed: positions, speeds, torques, and links too near to each other or to the ground."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from gapless.arrays import Array, Bools
from gapless.errors import BadInput
from gapless.robots import torque_limit
from gapless.twin import Twin

MARGIN = 0.85  # share of the limits on speed and torque that a design uses, so that robots beyond the belief keep them too
INSET = 0.03  # share of a joint's range that a design leaves free at either end
CLEARANCE = 0.005  # m: between links, and to the ground
LEVER = 0.1  # m that a sliding joint may go where a turning one may turn a radian
LEAST = 0.02  # rad: range of a joint in which there is room to move


@dataclass(frozen=True)
class Limits:
    """What no joint may exceed; metres and newtons for joints that slide. Shape of each: (joints,)."""

    low: Array
    """Position [rad]."""
    high: Array
    speed: Array
    """[rad/s]"""
    torque: Array
    """[N m], infinite where the model states none."""

    def broken(self, q: Array, dq: Array, tau: Array) -> list[str]:
        """What a motion (samples, joints) breaks, of "position", "speed" and "torque"."""
        out = ["position"] if (q < self.low).any() or (q > self.high).any() else []
        out += ["speed"] if (np.abs(dq) > self.speed).any() else []
        return out + (["torque"] if (np.abs(tau) > self.torque).any() else [])

    def inside(self, start: Array) -> Limits:
        """The tighter limits that a design keeps; where it starts (joints,) is within them."""
        inset = INSET * (self.high - self.low)
        low = self.low + np.minimum(inset, (start - self.low) / 2)
        high = self.high - np.minimum(inset, (self.high - start) / 2)
        return Limits(low, high, MARGIN * self.speed, MARGIN * self.torque)


def limits_of(twin: Twin, speed: float = 3.0, torque: float = 1.0, reach: float = np.pi) -> Limits:
    """The limits of a twin's driven joints.

    Args:
        twin: its joint ranges and torque limits hold.
        speed: the fastest that any joint may turn [rad/s]; models do not say. A joint that slides: a tenth of it in m/s.
        torque: the share of each drive's torque limit that may be used.
        reach: how far a joint may go from home [rad], within its range. A joint that slides: a tenth of it in m.
    """
    for name, value in (("speed", speed), ("torque", torque), ("reach", reach)):
        if not 0 < value < np.inf:
            raise BadInput(f"the limit on {name} must be a positive number, not {value:g}")
    model, home, lever = twin.model, home_pose(twin), levers(twin)
    joint = [d.joint for d in twin.drives]
    ranges = np.where(model.jnt_limited[joint][:, None].astype(bool), model.jnt_range[joint], [-np.inf, np.inf])
    middle = np.clip(home, *ranges.T)
    low, high = np.maximum(ranges[:, 0], middle - reach * lever), np.minimum(ranges[:, 1], middle + reach * lever)
    return Limits(low, high, speed * lever, torque * torque_limits(twin))


def levers(twin: Twin) -> Array:
    """By what limits in rad are multiplied: 1, and the lever [m] for joints that slide. Shape: (joints,)."""
    slides = twin.model.jnt_type[[d.joint for d in twin.drives]] == int(mujoco.mjtJoint.mjJNT_SLIDE)
    return np.where(slides, LEVER, 1.0)


def home_pose(twin: Twin) -> Array:
    """Where the driven joints are at home [rad]. Shape: (joints,)."""
    return twin.home[[d.qpos for d in twin.drives]]


def moving(twin: Twin, bounds: Limits) -> Bools:
    """Which joints a motion moves: position servos with room. Others are told to do what they do at home. Shape: (joints,)."""
    servo = np.array([d.signal == "q" and not d.passive for d in twin.drives], dtype=bool)
    return servo & (bounds.high - bounds.low >= LEAST * levers(twin))


def start_of(twin: Twin, bounds: Limits) -> Array:
    """The command from which a motion starts: home, or a little inside the limits where home is at or beyond one.

    Shape: (joints,).
    """
    inset = INSET * (bounds.high - bounds.low)
    start = np.clip(home_pose(twin), bounds.low + inset, bounds.high - inset)
    return np.where(moving(twin, bounds), start, twin.home_command[[d.control for d in twin.drives]])


def torque_limits(twin: Twin) -> Array:
    """Torque limits of the drives [N m]; infinite where there is none. Shape: (joints,)."""
    return np.array([torque_limit(twin.model, d.actuator) for d in twin.drives])


class Guard:
    """Tells whether links come too near to each other or to the ground, also where the model lets them pass through.

    A link is all of its shapes but meshes that are only to be looked at. Neighbours, and what is as near where a motion starts,
    may touch.
    """

    def __init__(self, twin: Twin, clearance: float = CLEARANCE, start: Array | None = None, moves: Bools | None = None):
        """start: pose of the driven joints (joints,) in place of home; moves: which of them move, all unless given."""
        spec = twin.spec.copy()
        spec.memory = 2**24
        for body in spec.bodies:
            solid = [g for g in body.geoms if g.type != mujoco.mjtGeom.mjGEOM_MESH or g.contype or g.conaffinity]
            for g in solid or body.geoms:
                g.contype, g.conaffinity, g.margin = 1, 1, clearance
        self._model = spec.compile()
        self._data = mujoco.MjData(self._model)
        self._data.qpos[:] = twin.home
        self._moves = np.ones(len(twin.drives), dtype=bool) if moves is None else moves
        self._places = np.array([d.qpos for d in twin.drives])[self._moves]
        if start is not None:
            self._data.qpos[self._places] = start[self._moves]
        moving = self._model.body_weldid[self._model.geom_bodyid] != 0
        self.blind = not moving.any()
        """Whether the moving links have no shapes, so that nothing can be seen to touch."""
        self._allowed = _neighbours(self._model)
        near = self._near()
        self._allowed[near[:, 0], near[:, 1]] = True

    def _near(self) -> NDArray[np.int32]:
        """Pairs of shapes that are too near. Shape: (pairs, 2)."""
        mujoco.mj_kinematics(self._model, self._data)
        mujoco.mj_comPos(self._model, self._data)
        mujoco.mj_collision(self._model, self._data)
        return np.asarray(self._data.contact.geom).reshape(-1, 2)

    def touches(self, q: Array) -> bool:
        """Whether a motion of the driven joints (samples, joints) has links too near."""
        for row in q:
            self._data.qpos[self._places] = row[self._moves]
            near = self._near()
            if not self._allowed[near[:, 0], near[:, 1]].all():
                return True
        return False


def _neighbours(model: mujoco.MjModel) -> NDArray[np.bool_]:
    """Which shapes (shapes, shapes) are on the same link or on links joined to each other; the world's own are on none."""
    link = model.body_weldid[model.geom_bodyid]
    parent = model.body_weldid[model.body_parentid[link]]
    joined = (link[:, None] == link) | (parent[:, None] == link) | (link[:, None] == parent)
    ground = model.geom_bodyid == 0
    return np.asarray(joined & ~ground[:, None] & ~ground)
