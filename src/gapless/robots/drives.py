"""Drives: which actuator moves which joint, what it is commanded in, and which joint is the floating base."""

import math
from dataclasses import dataclass
from fnmatch import fnmatchcase

import mujoco
import numpy as np

from gapless.errors import BadInput, unknown

# Plain numbers, as numpy integers do not compare equal to MuJoCo's enums.
_JOINT_DRIVES = (int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_JOINTINPARENT))
ONE_AXIS = (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE))


def driven_joints(model: mujoco.MjModel) -> dict[int, int]:
    """Driven joint to its first actuator, in actuator order; one that can be commanded counts before one that cannot."""
    drives: dict[int, int] = {}
    for actuator in sorted(range(model.nactuator), key=lambda a: command_of(model, a) is None):
        joint = int(model.actuator_trnid[actuator, 0])
        if model.actuator_trntype[actuator] in _JOINT_DRIVES and model.jnt_type[joint] in ONE_AXIS:
            drives.setdefault(joint, actuator)
    return drives


@dataclass(frozen=True)
class Drive:
    """An actuator with one control and the hinge or slide joint it moves."""

    name: str
    """The joint's name."""
    actuator: int
    joint: int
    dof: int
    qpos: int
    control: int
    """Place of its command among the controls."""
    signal: str
    """What it is commanded in: "q" [rad], "dq" [rad/s] or "tau" [N m]."""
    low: float
    """Lower end of the joint's range [rad or m], infinite for a joint without limits; so is `high`."""
    high: float
    passive: bool = False
    """Whether no motor acts on the joint: an actuator without gain stands for it, so that it is simulated, compared and fitted
    like the others, and it takes no command."""


CHOSEN = "gapless_joints"
"""Name of the text in a model that lists the joints that are worked on, where those are not all."""


def drives(model: mujoco.MjModel) -> list[Drive]:
    """The driven hinge and slide joints that are worked on, in the order of the actuators."""
    chosen = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_TEXT, CHOSEN)
    names = None if chosen < 0 else _text(model, chosen).split()
    return [d for d in every_drive(model) if names is None or d.name in names]


def _text(model: mujoco.MjModel, text: int) -> str:
    """A text in a model."""
    start = int(model.text_adr[text])
    return bytes(model.text_data[start : start + int(model.text_size[text]) - 1]).decode()


def every_drive(model: mujoco.MjModel) -> list[Drive]:
    """All driven hinge and slide joints, also those that are only held; a joint with two actuators counts once."""
    found = []
    for j, a in driven_joints(model).items():
        if (signal := command_of(model, a)) is not None:
            low, high = model.jnt_range[j].tolist() if model.jnt_limited[j] else (-math.inf, math.inf)
            dof, qpos, control = (int(x) for x in (model.jnt_dofadr[j], model.jnt_qposadr[j], model.actuator_ctrladr[a]))
            passive = signal == "tau" and model.actuator_gainprm[a, 0] == 0
            found.append(Drive(model.joint(j).name, a, j, dof, qpos, control, signal, low, high, bool(passive)))
    return found


def base_joint(model: mujoco.MjModel) -> int | None:
    """The free joint of the robot: at the root of its driven joints, not that of an object beside it; None if it is fixed."""
    found = drives(model)
    free = [j for j in range(model.njnt) if model.jnt_type[j] == mujoco.mjtJoint.mjJNT_FREE]
    if found:
        root = model.body_rootid[model.jnt_bodyid[found[0].joint]]
        free = [j for j in free if model.jnt_bodyid[j] == root]
    return free[0] if free else None


def limb_of(model: mujoco.MjModel, body: int) -> int:
    """The first link of the limb that a link is part of, which hangs on base or ground; itself where it is part of none."""
    base = base_joint(model)
    roots = (0, 0 if base is None else int(model.body_weldid[model.jnt_bodyid[base]]))
    while int(model.body_weldid[body]) not in roots and int(model.body_weldid[model.body_parentid[body]]) not in roots:
        body = int(model.body_parentid[body])
    return body


def limbs_of(model: mujoco.MjModel) -> dict[str, int]:
    """Driven joint to the first link of its limb; different limbs hardly move each other."""
    return {d.name: limb_of(model, int(model.jnt_bodyid[d.joint])) for d in drives(model)}


def fits(name: str, pattern: str) -> bool:
    """Whether a name is the one that is meant, which may have brackets in it, or one of those that a pattern means."""
    return name == pattern or fnmatchcase(name, pattern)


def driven(model: mujoco.MjModel, pattern: str) -> list[Drive]:
    """The driven joints that a pattern matches; naming a joint without an actuator is bad input."""
    found = drives(model)
    hits = [d for d in found if fits(d.name, pattern)]
    if hits or (pattern == "*" and not found):
        return hits
    every = [model.joint(j).name for j in range(model.njnt)]
    if any(fits(n, pattern) for n in every):
        raise BadInput(
            f"joint {pattern!r} has no actuator, so this mechanism cannot act on it; joints with an actuator: "
            + (", ".join(d.name for d in found) or "none")
        )
    raise unknown("joint", pattern, [d.name for d in found])


def command_of(model: mujoco.MjModel, actuator: int) -> str | None:
    """What an actuator is commanded in, "q", "dq" or "tau"; None for another command: of a muscle, or a motor's volts."""
    if model.actuator_ctrlnum[actuator] != 1 or model.actuator_plugin[actuator] >= 0:
        return None
    kinds = {"q": is_position_servo, "dq": is_velocity_servo, "tau": is_torque_drive}
    return next((signal for signal, is_one in kinds.items() if is_one(model, actuator)), None)


def is_torque_drive(model: mujoco.MjModel, actuator: int) -> bool:
    """Whether the control is a torque, but for a gain and a gear: what the joint does has no part in it."""
    fixed = model.actuator_gaintype[actuator] == mujoco.mjtGain.mjGAIN_FIXED and not _integrates(model, actuator)
    plain = model.actuator_biastype[actuator] == mujoco.mjtBias.mjBIAS_NONE
    return bool(fixed and (plain or (_is_affine(model, actuator) and not model.actuator_biasprm[actuator, 1:3].any())))


def is_position_servo(model: mujoco.MjModel, actuator: int) -> bool:
    """Whether the control is a position target: an affine servo or a DC motor with a position input."""
    if is_dc_motor(model, actuator):
        return bool(model.actuator_ctrlspec[actuator] & int(mujoco.mjtCtrlInput.mjINPUT_POS))
    return _is_affine(model, actuator) and bool(model.actuator_biasprm[actuator, 1] < 0) and not _integrates(model, actuator)


def is_velocity_servo(model: mujoco.MjModel, actuator: int) -> bool:
    """Whether the control is a velocity target: a velocity servo, or a position servo that integrates its command."""
    if not _is_affine(model, actuator):
        return False
    position, speed = model.actuator_biasprm[actuator, 1:3]
    return bool(position < 0 if _integrates(model, actuator) else position == 0 and speed < 0)


def _is_affine(model: mujoco.MjModel, actuator: int) -> bool:
    return bool(
        model.actuator_gaintype[actuator] == mujoco.mjtGain.mjGAIN_FIXED
        and model.actuator_biastype[actuator] == mujoco.mjtBias.mjBIAS_AFFINE
    )


def _integrates(model: mujoco.MjModel, actuator: int) -> bool:
    return bool(model.actuator_dyntype[actuator] == mujoco.mjtDyn.mjDYN_INTEGRATOR)


def torque_limit(model: mujoco.MjModel, actuator: int, commanded: bool = True) -> float:
    """Largest torque of a drive at its joint [N m], by the limits of actuator and joint; infinite where there is none.

    commanded: whether the range of a torque command counts too.
    """
    joint, gear = int(model.actuator_trnid[actuator, 0]), abs(model.actuator_gear[actuator, 0])
    limits = [np.inf]
    if model.actuator_forcelimited[actuator]:
        limits.append(gear * np.abs(model.actuator_forcerange[actuator]).max())
    if model.jnt_actfrclimited[joint]:
        limits.append(np.abs(model.jnt_actfrcrange[joint]).max())
    if commanded and is_torque_drive(model, actuator) and model.actuator_ctrllimited[actuator]:
        limits.append(gear * model.actuator_gainprm[actuator, 0] * np.abs(model.actuator_ctrlrange[actuator]).max())
    return float(min(limits))


def is_dc_motor(model: mujoco.MjModel, actuator: int) -> bool:
    """Whether the drive is MuJoCo's model of a DC motor."""
    return bool(model.actuator_gaintype[actuator] == mujoco.mjtGain.mjGAIN_DCMOTOR)
