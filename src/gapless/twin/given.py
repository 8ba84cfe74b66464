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
from gapless.robots import RobotModel, choose_joints, every_drive, fits, is_dc_motor, load_robot
from gapless.twin.belief import load as load_belief
from gapless.twin.mechanism import Mechanism
from gapless.twin.mechanisms.friction import Friction
from gapless.twin.mechanisms.gains import Gains, kept_gains
from gapless.twin.mechanisms.motor import DC, Motor
from gapless.twin.twin import Twin

NO_LOAD_SPEED = 10.0  # rad/s: of a hobby servo, to start from where only the supply voltage is known


def as_given(
    source: str | os.PathLike[str] | RobotModel,
    log: Log | None = None,
    kp: float | Mapping[str, float] | None = None,
    kd: float | Mapping[str, float] | None = None,
    in_air: bool = False,
) -> Twin:
    """The twin of a model before anything is fitted: its own numbers, and dry friction that truly sticks.

    Args:
        source: name or path, or what `load_robot` gave.
        log: whose stated gains and supply voltage are used where the two below are not given.
        kp: proportional gain of all drives, or by joint pattern [N m/rad].
        kd: derivative gain likewise [N m s/rad].
        in_air: hold the floating base fixed.
    """
    robot = source if isinstance(source, RobotModel) else load_robot(source)
    robot = robot if log is None else _recorded(robot, log)
    return Twin.load(robot, add=[Friction(full=True), *_drive(robot, log, kp, kd)], in_air=in_air)


def _recorded(robot: RobotModel, log: Log) -> RobotModel:
    """The robot with the joints that a log knows; the others are held. A log with joints of other names is left as it is:
    there a name is wrong, and is to be said so."""
    known = {joint for signal in ("q", "q_cmd", "dq_cmd", "tau_cmd") if signal in log for joint in log[signal].columns}
    recorded = [joint for joint in robot.joints if joint in known]
    if not recorded or len(recorded) == len(robot.joints) or known - set(robot.ranges):
        return robot
    return choose_joints(robot, recorded, "not in the log")


def _commanded(robot: RobotModel, log: Log | None, gains: Sequence[Gains]) -> dict[str, str]:
    """Joints that a log commands in another way than the model drives them, and how: by torque or by velocity.

    Positions for a drive that takes torque need gains, which only the user can state.
    """
    if log is None:
        return {}
    servos = {d.name: d.signal for d in robot.drives if not any(fits(d.name, p) for g in gains for p in g.kp)}
    told = {signal: set(log[f"{signal}_cmd"].columns) for signal in ("q", "dq", "tau") if f"{signal}_cmd" in log}
    out = {}
    for name, signal in servos.items():
        others = [s for s in ("tau", "dq") if s != signal and name in told.get(s, ())]
        if signal == "q" and name not in told.get("q", ()) and others:
            out[name] = others[0]
    return out


def _drive(
    robot: RobotModel,
    log: Log | None,
    kp: float | Mapping[str, float] | None,
    kd: float | Mapping[str, float] | None,
) -> list[Mechanism]:
    """Gains as stated, and a DC motor where the log says that the firmware's gain sets a share of the supply voltage."""
    meta = log.meta if log is not None else {}
    voltage, gain = meta.get("vin"), meta.get("kp")
    known = any(is_dc_motor(robot.model, d.actuator) for d in robot.drives)
    if known or "duty_per_P" not in meta or not isinstance(voltage, int | float) or not isinstance(gain, int | float):
        gains = stated_gains(kp, kd, log, robot)
        passive, commanded = _passive(robot, log), _commanded(robot, log, gains)
        special = passive or commanded
        return [replace(gains[0] if gains else Gains(), passive=passive, commanded=commanded)] if special else list(gains)
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


def stated_gains(
    kp: float | Mapping[str, float] | None,
    kd: float | Mapping[str, float] | None,
    log: Log | None = None,
    robot: RobotModel | None = None,
) -> list[Gains]:
    """The Gains mechanism for stated gains, and for the constants that a log states of other joints; none if neither does.

    Args:
        kp: proportional gain of all drives, or by joint pattern [N m/rad].
        kd: derivative gain likewise [N m s/rad].
        log: whose constants count where none are stated.
        robot: of which joints that are held are left out of what the log says.
    """
    ours = [by_joint(value) for value in (kp, kd)]
    for gain in ours[0].values():
        if not 0 < gain < math.inf:  # a drive without damping is one, a drive without stiffness is not
            raise BadInput(f"the gain kp must be a positive number of N m/rad, not {gain:g}")
    for gain in ours[1].values():
        if not 0 <= gain < math.inf:
            raise BadInput(f"the gain kd must be at least 0 N m s/rad, not {gain:g}")
    held = {d.name for d in every_drive(robot.model)} - set(robot.joints) if robot else set()
    fitted = (
        kept_gains(robot.model) if robot else {}
    )  # to which a log's gains are compared, as those of its drives are not these
    both = []
    for name, stated in zip(("kp", "kd"), ours, strict=True):
        logged = {} if log is None or fitted else by_joint(log.meta.get(name))
        both.append({**stated, **{joint: gain for joint, gain in logged.items() if joint not in {*stated, *held}}})
    return [Gains(kp=both[0], kd=both[1])] if any(both) else []


def known_values(
    twin: Twin,
    stated: Sequence[tuple[str, float]],
    kp: float | Mapping[str, float] | None = None,
    kd: float | Mapping[str, float] | None = None,
) -> dict[str, float]:
    """Stated values by the full names of parameters; BadInput where one is given two.

    Args:
        twin: whose parameters they are.
        stated: pairs of a name or pattern and a value.
        kp: proportional gain that was stated too, of all drives or by joint pattern [N m/rad].
        kd: derivative gain that was stated too [N m s/rad].
    """
    gains = {"gains.kp": by_joint(kp), "gains.kd": by_joint(kd)}
    out: dict[str, tuple[float, str]] = {}
    for pattern, value in stated:
        for name in twin.space.fix({pattern: value}).fixed:
            before, by = out.setdefault(name, (value, pattern))
            if before != value:
                raise BadInput(f"{name} is given two values, {before:g} ({by}) and {value:g} ({pattern}): state one")
            quantity, _, joint = name.partition("/")
            gain = next((g for p, g in gains.get(quantity, {}).items() if fits(joint, p)), None)
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


def by_joint(gain: object) -> dict[str, float]:
    """Joint pattern to gain, from one number for all or from a table; empty where nothing is stated."""
    if isinstance(gain, Mapping):
        return {str(joint): float(value) for joint, value in gain.items()}
    return {"*": float(gain)} if isinstance(gain, int | float) else {}
