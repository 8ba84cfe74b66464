"""Limits: what no command may ask of a robot, from its model and contract; flags can only make them tighter."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import mujoco
import numpy as np

from gapless.arrays import Array
from gapless.deploy.clamp import BRAKES
from gapless.errors import BadInput, must_exist
from gapless.policy import Contract
from gapless.report import few
from gapless.robots import RobotModel

FASTEST = 30.0
"""rad/s (m/s) of a joint for which nobody states a limit: what the hips of a Go1 reach."""
POWER = 0.5
"""Largest mechanical power of a joint, as a share of its torque limit times its speed limit; a DC motor gives a quarter."""
BUILD_UP = 0.005
"""s in which a torque may grow from nothing to its limit."""
UNSEEN = 0.003
"""s for which a spring tightens before a command answers that: with less torque, gains are lowered to what this allows."""
MARGIN = 0.02
"""Share of a joint's range beside its ends where no target may be."""
TILT = math.radians(60.0)
"""Beyond which a robot on legs has fallen."""
HOTTEST, EMPTIEST = 85.0, 0.0
"""degC of a drive, and V of a battery, beyond which a robot sits down; no battery is known until somebody states it."""
PER_JOINT = ("velocity", "torque", "power", "rate", "kp", "kd")


@dataclass(frozen=True)
class Limits:
    """Of each joint, in the order of the robot's joints, shape (joints,); and of the robot as a whole."""

    joints: tuple[str, ...]
    low: Array
    """[rad or m]"""
    high: Array
    velocity: Array
    """[rad/s or m/s]"""
    torque: Array
    """[N m or N]"""
    power: Array
    """[W]"""
    rate: Array
    """Of torque [N m/s]."""
    kp: Array
    """[N m/rad]"""
    kd: Array
    """[N m s/rad]"""
    braking: Array
    """Deceleration that a joint can always count on [rad/s2]."""
    inertia: Array
    """Least inertia that a drive sees: its rotor and what hangs on it with all other joints free [kg m2]."""
    tilt: float = TILT
    """[rad]"""
    temperature: float = HOTTEST
    battery: float = EMPTIEST

    def tighter(self, given: Mapping[str, float]) -> "Limits":
        """The same with some limits lowered: of all joints by name ("torque"), of a robot ("tilt"), or "scale" for
        velocity, torque and power at once. A wider limit is refused: a model is edited, not overruled."""
        out = self
        for name, value in given.items():
            must_exist("limit", [name], (*PER_JOINT, "tilt", "temperature", "battery", "scale"))
            if not (math.isfinite(value) and value > 0):
                raise BadInput(f"the limit {name} must be a positive number, not {value:g}")
            if name == "scale":
                if value > 1:
                    raise BadInput(f"limits can only be made tighter: scale takes at most 1, not {value:g}")
                out = replace(out, **{n: getattr(out, n) * value for n in ("velocity", "torque", "power")})
                continue
            now = np.asarray(getattr(out, name))
            if name == "battery" and value < now:
                raise BadInput(f"limits can only be made tighter: battery is at least {float(now):g} V already")
            if name != "battery" and (value > now).all():
                raise BadInput(f"limits can only be made tighter: {name} is at most {now.max():g} already, not {value:g}")
            changed = np.minimum(now, value) if name != "battery" else np.maximum(now, value)
            of: dict[str, Any] = {name: changed if now.ndim else float(changed)}
            out = replace(out, **of)
        return out._after(self)

    def _after(self, wider: "Limits") -> "Limits":
        """What follows from less torque: weaker brakes, a slower build-up, and gains with which no drive asks for more."""
        less, fastest = self.torque / wider.torque, np.minimum(wider.velocity, FASTEST)
        return replace(
            self,
            braking=wider.braking * less,
            rate=np.minimum(self.rate, wider.rate * less),
            kp=np.minimum(self.kp, np.maximum(wider.kp * less, self.torque / (fastest * UNSEEN))),
            kd=np.minimum(self.kd, most_damping(self.torque, wider.velocity)),
        )

    def json(self) -> dict[str, object]:
        """By name, for a log."""
        return {f.name: np.asarray(getattr(self, f.name)).tolist() for f in fields(self)}


def limits_of(robot: RobotModel, contract: Contract | None = None) -> Limits:
    """The limits of a robot's driven joints: the narrower of what its model and a policy's contract state."""
    table, n = robot.joint_table, len(robot.joints)
    low, high = np.array([j.low for j in table]), np.array([j.high for j in table])
    torque, velocity = np.array([j.torque_limit for j in table]), np.full(n, FASTEST)
    kp, kd = np.array([j.kp for j in table]), np.array([j.kd for j in table])
    if contract is not None:
        for j, name in enumerate(contract.joints.names):
            i, of = robot.joints.index(name), contract.joints
            torque[i] = min(torque[i], _stated(of.effort_limit, j, math.inf))
            velocity[i] = min(velocity[i], _stated(of.velocity_limit, j, math.inf))
            kp[i], kd[i] = _stated(of.kp, j, kp[i]), _stated(of.kd, j, kd[i])
            span = of.limits[j] if of.limits is not None else None
            if span is not None:
                low[i], high[i] = max(low[i], span[0]), min(high[i], span[1])
    endless = [j.name for j, limit in zip(table, torque, strict=True) if not math.isfinite(limit)]
    if endless:
        raise BadInput(f"{robot.name}: nobody states the torque limit of {', '.join(endless[:4])}; give the model a forcerange")
    room = np.where(np.isfinite(high - low), MARGIN * (high - low), 0.0)
    heavy, light = _inertias(robot)
    damping = most_damping(torque, velocity)
    hard = [robot.joints[i] for i in np.flatnonzero(kd > damping)] if contract is not None and contract.joints.kd else []
    if hard:
        i = robot.joints.index(hard[0])
        raise BadInput(
            f"the policy asks for kd = {kd[i]:g} N m s/rad of {few(hard)}: with more than {damping[i]:.3g} "
            "damping alone would exceed the drive's torque limit"
        )
    kd = np.minimum(np.where(kd > 0, kd, 0.02 * torque), damping)
    return Limits(
        robot.joints, low + room, high - room, velocity, torque, POWER * torque * velocity, torque / BUILD_UP, kp, kd,
        BRAKES * torque / heavy, light,
    )  # fmt: skip


def most_damping(torque: Array, velocity: Array) -> Array:
    """Damping with which a drive asks for twice its torque limit at its speed limit [N m s/rad]."""
    return np.asarray(2 * torque / np.minimum(velocity, FASTEST))


def _stated(values: tuple[float | None, ...] | tuple[float, ...] | None, j: int, otherwise: float) -> float:
    """What a contract says of a joint."""
    value = values[j] if values is not None else None
    return otherwise if value is None or value <= 0 else float(value)


def _inertias(robot: RobotModel) -> tuple[Array, Array]:
    """Largest and least inertia that each drive sees in the home pose, others held and others free. Shape: (joints,)."""
    model, data = robot.model, mujoco.MjData(robot.model)
    data.qpos[:] = robot.home
    mujoco.mj_forward(model, data)
    full = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, full)
    dofs = [d.dof for d in robot.drives]
    held = np.diag(full)[dofs]
    free = 1.0 / np.diag(np.linalg.inv(full + 1e-9 * np.eye(model.nv)))[dofs]
    return np.maximum(held, 1e-6), np.maximum(free, 1e-6)
