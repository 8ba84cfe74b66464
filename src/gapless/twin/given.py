"""The model as given: the twin that `replay`, `gap` and `fit` alike start from, with the gains that a log or a user states."""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

import mujoco
import numpy as np

from gapless.arrays import Array
from gapless.errors import BadInput
from gapless.logs import Log
from gapless.robots import RobotModel, every_drive, load_robot
from gapless.twin.belief import load as load_belief
from gapless.twin.mechanism import Mechanism
from gapless.twin.mechanisms.friction import Friction
from gapless.twin.mechanisms.gains import Gains
from gapless.twin.mechanisms.motor import DC, Motor
from gapless.twin.twin import Twin

NO_LOAD_SPEED = 10.0  # rad/s: of a hobby servo, to start from where only the supply voltage is known


def as_given(
    source: str | os.PathLike[str] | RobotModel,
    log: Log | None = None,
    kp: float | None = None,
    kd: float | None = None,
    in_air: bool = False,
) -> Twin:
    """The twin of a model before anything is fitted: its own numbers, and dry friction that truly sticks.

    Args:
        source: name or path, or what `load_robot` gave.
        log: whose stated gains and supply voltage are used where the two below are not given.
        kp: proportional gain of all drives [N m/rad].
        kd: derivative gain of all drives [N m s/rad].
        in_air: hold the floating base fixed.
    """
    robot = source if isinstance(source, RobotModel) else load_robot(source)
    return Twin.load(robot, add=[Friction(full=True), *_drive(robot, log, kp, kd)], in_air=in_air)


def _drive(robot: RobotModel, log: Log | None, kp: float | None, kd: float | None) -> list[Mechanism]:
    """Gains as stated, and a DC motor where the log says that the firmware's gain sets a share of the supply voltage."""
    meta = log.meta if log is not None else {}
    voltage, gain = meta.get("vin"), meta.get("kp")
    if "duty_per_P" not in meta or not isinstance(voltage, int | float) or not isinstance(gain, int | float):
        gains = stated_gains(kp, kd, log)
        passive = _passive(robot, log)
        return [replace(gains[0] if gains else Gains(), passive=passive)] if passive else list(gains)
    limits = [j.torque_limit for j in robot.joint_table if np.isfinite(j.torque_limit)]
    stall = max(limits, default=1.0)  # N m, to start from
    kt = float(voltage) / NO_LOAD_SPEED
    motor = Motor(dc=DC(kt, kt * float(voltage) / stall, float(voltage), voltage_control=True))
    return [Gains(kp={"*": float(gain)}, kd={"*": 0.0}), motor]


def _passive(robot: RobotModel, log: Log | None) -> tuple[str, ...]:
    """Joints of a robot with motors that a log measured and nothing drives: no motor, tendon, other joint or command."""
    if log is None or "q" not in log or not robot.drives:
        return ()
    model = robot.model
    coupled = [*model.wrap_objid[model.wrap_type == mujoco.mjtWrap.mjWRAP_JOINT]]
    coupled += [*model.eq_obj1id[model.eq_type == mujoco.mjtEq.mjEQ_JOINT]]
    moved = {model.joint(int(j)).name for j in coupled} | {d.name for d in every_drive(model)}
    told = {joint for signal in ("q_cmd", "dq_cmd", "tau_cmd") if signal in log for joint in log[signal].columns}
    return tuple(j for j in robot.ranges if j in log["q"].columns and j not in {*robot.joints, *told, *moved})


def stated_gains(kp: float | None, kd: float | None, log: Log | None = None) -> list[Gains]:
    """The Gains mechanism for stated gains, else for the constants that a log states; none if neither does."""
    if kp is not None and not 0 < kp < math.inf:  # a drive without damping is one, a drive without stiffness is not
        raise BadInput(f"the gain kp must be a positive number of N m/rad, not {kp:g}")
    if kd is not None and not 0 <= kd < math.inf:
        raise BadInput(f"the gain kd must be at least 0 N m s/rad, not {kd:g}")
    by_joint = [_by_joint(value, None if log is None else log.meta.get(name)) for name, value in (("kp", kp), ("kd", kd))]
    return [Gains(kp=by_joint[0], kd=by_joint[1])] if any(by_joint) else []


def known_values(
    twin: Twin, stated: Sequence[tuple[str, float]], kp: float | None = None, kd: float | None = None
) -> dict[str, float]:
    """Stated values by the full names of parameters; BadInput where one is given two.

    Args:
        twin: whose parameters they are.
        stated: pairs of a name or pattern and a value.
        kp: proportional gain of all drives that was stated too [N m/rad].
        kd: derivative gain of all drives that was stated too [N m s/rad].
    """
    gains = {"gains.kp": kp, "gains.kd": kd}
    out: dict[str, tuple[float, str]] = {}
    for pattern, value in stated:
        for name in twin.space.fix({pattern: value}).fixed:
            before, by = out.setdefault(name, (value, pattern))
            if before != value:
                raise BadInput(f"{name} is given two values, {before:g} ({by}) and {value:g} ({pattern}): state one")
            gain = gains.get(name.partition("/")[0])
            if gain is not None and gain != value:
                raise BadInput(f"{name} is given two values, {gain:g} (--{name[6:8]}) and {value:g} ({pattern}): state one")
    return {name: value for name, (value, _) in out.items()}


def mean_values(twin: Twin, belief: str | os.PathLike[str] | None, stated: Mapping[str, float]) -> Array:
    """One vector of parameters over the twin's space: nominal, or the mean of the belief in a file, then what is stated."""
    values = twin.space.nominal.copy()
    if belief is not None:
        known = load_belief(belief)
        values = twin.expand(known.mean()[None], known.space)[0]
    for name, value in stated.items():
        values[twin.space.names.index(name)] = value
    twin.space.check(values)
    return values


def _by_joint(stated: float | None, logged: object) -> dict[str, float]:
    """Joint pattern to gain: what the user states, else what the log does."""
    if stated is not None:
        return {"*": stated}
    if isinstance(logged, Mapping):
        return {joint: float(value) for joint, value in logged.items()}
    return {"*": float(logged)} if isinstance(logged, int | float) else {}
