"""Scene: what a task may look at, the true state of every world and what was asked of it."""

import mujoco
import numpy as np

from gapless.arrays import Array, Bools, Ints
from gapless.learn.ground import ground_of
from gapless.policy import Gait
from gapless.robots import Legs, base_joint, find_legs, soles_of
from gapless.rotations import cross, rotate_back, up_of
from gapless.twin import Twin
from gapless.worlds import Worlds

TOUCH = 0.004
"""A foot whose lowest point is nearer to the ground than this touches it; contacts are soft by about 1 mm [m]."""


class Scene:
    """The true state of n worlds after the last step, with the names that rewards use; shapes are (n, ...).

    What a floating base and feet are comes only with a robot that has them.
    """

    q: Array
    dq: Array
    torque: Array
    """Of the drives, one physics step old [N m]."""
    position: Array
    quat: Array
    up: Array
    """The vertical as seen from the base; the ground's on a slope. Shape: (n, 3)."""
    gravity: Array
    """Down, as seen from the base."""
    turn: Array
    """Turn rate in the base's frame [rad/s]."""
    yaw_rate: Array
    """About the vertical [rad/s]."""
    heading: Array
    """Along the ground, of length 1. Shape: (n, 2)."""
    velocity: Array
    """Of the base, forward, left and up, as seen along its heading [m/s]."""
    height: Array
    """Of the base above the ground below it [m]."""
    feet: Array
    """In the base's frame. Shape: (n, feet, 3)."""
    foot_height: Array
    """Of the lowest point of each foot above the ground [m]. Shape: (n, feet)."""
    contact: Bools
    foot_speed: Array
    """Along the ground [m/s]. Shape: (n, feet)."""

    def __init__(self, twin: Twin, worlds: Worlds, gait: Gait, columns: int, actions: int):
        self.twin, self.n, self.dt = twin, worlds.n, twin.control_dt
        self.command: Array = np.zeros((self.n, columns))
        self.gait = gait
        """Which robots step, and how far they are into their gait."""
        self.failed: Bools = np.zeros(self.n, bool)
        """Where the task has just failed, as its `done` says; a reward may punish it."""
        self.action: Array = np.zeros((self.n, actions))
        """What the policy put out last."""
        self.last_action: Array = np.zeros((self.n, actions))
        """And before that."""
        self.time: Array = np.zeros(self.n)
        """Since the start of the episode [s]."""
        self.share = 1.0
        """Of the commands' ranges that a task is to ask for, 0 to 1: a curriculum raises it."""
        self._places = [d.qpos for d in twin.drives]
        self._dofs = np.array([d.dof for d in twin.drives], dtype=int)
        self._base = base_joint(twin.model)
        self._legs = find_legs(twin)
        self.ground = ground_of(twin)
        """What the robot is on where that is not flat."""
        self.mass = twin.mass
        """As modelled [kg]."""
        self.torque_limit: Array = np.array([j.torque_limit for j in twin.joint_table])
        self.home: Array = worlds.home[self._places]
        """Joint positions at home. Shape: (joints,)."""
        self._stance = np.zeros((1, 3)) if self._legs is None else self._legs.home
        self._soles = None if self._legs is None or self.ground is None else soles_of(self._legs, self.home)
        if self._base is not None:
            self.base_qpos, self.base_dof = int(twin.model.jnt_qposadr[self._base]), int(twin.model.jnt_dofadr[self._base])
            self.home_height = float(worlds.home[self.base_qpos + 2])
            if self._legs is not None:  # where the feet touch the ground, whatever the file says
                self.home_height = -float(self._legs.standing(self.home)[1].min())
        self._worlds, self._torque = worlds, worlds.state("qfrc_actuator")
        self._fields: dict[str, Array] = {}
        self._computed: dict[str, Array] = {}
        self.update()

    @property
    def floating(self) -> bool:
        return self._base is not None

    @property
    def has_legs(self) -> bool:
        return self._legs is not None

    @property
    def legs(self) -> Legs:
        assert self._legs is not None, "this robot has no legs"
        return self._legs

    def advance(self) -> None:
        """The worlds have gone on by a period."""
        self.time += self.dt
        self._computed.clear()
        self.update()

    def update(self, ids: Ints | None = None) -> None:
        """Take up the state that the worlds are in, or only those given."""
        for name, rows in self._state(slice(None) if ids is None else ids).items():
            if ids is None:
                setattr(self, name, rows)
            else:
                getattr(self, name)[ids] = rows

    def _state(self, ids: Ints | slice) -> dict[str, Array | Bools]:
        """The state of some worlds, by the names of the attributes above."""
        qpos, qvel = self._worlds.qpos[ids], self._worlds.qvel[ids]
        q, dq, torque = qpos[:, self._places], qvel[:, self._dofs], self._torque[ids][:, self._dofs]
        state: dict[str, Array | Bools] = {"q": q, "dq": dq, "torque": torque}
        if self._base is None:
            return state
        position, quat = qpos[:, self.base_qpos :][:, :3].copy(), qpos[:, self.base_qpos + 3 :][:, :4].copy()
        linear, turn = qvel[:, self.base_dof :][:, :3], qvel[:, self.base_dof + 3 :][:, :3].copy()
        w, x, y, z = quat.T
        up = up_of(quat)
        yaw = np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
        heading = np.stack([np.cos(yaw), np.sin(yaw)], axis=-1)
        (vx, vy, vz), (cos, sin) = linear.T, heading.T
        velocity = np.stack([cos * vx + sin * vy, cos * vy - sin * vx, vz], axis=-1)
        height = position[:, 2]
        if self.ground is not None:
            height = height - self.ground.below(position, heading, self._stance)
        state |= {"position": position, "quat": quat, "up": up, "gravity": -up, "turn": turn, "heading": heading}
        state |= {"yaw_rate": (up * turn).sum(axis=1), "velocity": velocity, "height": height}
        if self._legs is None:
            return state
        feet, moved, above = self.feet_at(q, dq, quat, position)
        moved = moved + cross(turn[:, None], feet) + np.asarray(rotate_back(quat, linear))[:, None]
        along = (moved * up[:, None]).sum(axis=2)
        speed = np.sqrt(np.maximum((moved**2).sum(axis=2) - along**2, 0.0))
        return state | {"feet": feet, "foot_height": above, "contact": above < TOUCH, "foot_speed": speed}

    def feet_at(self, q: Array, dq: Array, quat: Array, position: Array) -> tuple[Array, Array, Array]:
        """Feet of robots in the base's frame, their velocity in it, and how high their lowest points are above the ground.

        Shapes: (k, feet, 3), (k, feet, 3), (k, feet).
        """
        feet, velocity, low = self.legs.feet(q, dq, quat)
        if self.ground is None:
            return feet, velocity, low + position[:, 2:]
        points, radius = feet[:, :, None], self.legs.points[:, :, 3]
        if self._soles is not None:
            soles, radius = self._soles
            points = soles.feet(q, dq, quat)[0].reshape(len(q), len(self.legs), -1, 3)
        return feet, velocity, self.ground.clearance(points, radius, quat, position)

    def point(self, name: str) -> Array:
        """Where `site:NAME`, `body:NAME` (its origin) or `com:NAME` (its centre of mass as modelled) is. Shape: (n, 3).

        One physics step old, as the engine computes it.
        """
        model, (kind, _, of) = self.twin.model, name.partition(":")
        if kind == "site":
            return np.asarray(self._bound("site_xpos")[:, model.site(of).id])
        body = model.body(of).id
        origin = np.asarray(self._bound("xpos")[:, body])
        if kind == "body":
            return origin
        return origin + self._bound("xmat")[:, body].reshape(-1, 3, 3) @ model.body_ipos[body]

    def _bound(self, field: str) -> Array:
        """A field of all worlds. The engine fills it at each step from now on; until the next one it is computed here."""
        if field not in self._fields:
            self._fields[field] = self._worlds.state(field)
            data, rows = mujoco.MjData(self.twin.model), []
            for qpos in self._worlds.qpos:
                data.qpos[:] = qpos
                mujoco.mj_kinematics(self.twin.model, data)
                rows.append(getattr(data, field).copy())
            self._computed[field] = np.array(rows)
        return self._computed.get(field, self._fields[field])
