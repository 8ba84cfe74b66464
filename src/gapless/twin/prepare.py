"""What is done to anyone's model before mechanisms go in: one form, joint units, a base that does not fight its links."""

from collections.abc import Iterable

import mujoco
import numpy as np

from gapless.errors import BadInput
from gapless.robots import (
    ONE_AXIS,
    Drive,
    base_joint,
    every_drive,
    home_key,
    is_dc_motor,
    is_velocity_servo,
    put_keyframes,
    take_keyframes,
)
from gapless.twin.mechanism import Mechanism
from gapless.twin.save import to_xml


def canonical(spec: mujoco.MjSpec) -> mujoco.MjSpec:
    """A copy as MuJoCo would save and load it: radians, no includes, every joint and actuator named."""
    spec = spec.copy()
    folder, assets = spec.modelfiledir, dict(spec.assets)
    for elements, kind in ((spec.bodies[1:], "body"), (spec.joints, "joint"), (spec.actuators, "actuator")):
        for i, element in enumerate(elements):
            element.name = element.name or f"{kind}_{i}"
    try:
        spec.compile()
        out = mujoco.MjSpec.from_string(to_xml(spec), assets=assets)
    except ValueError as error:
        raise BadInput(f"the model does not compile: {str(error).splitlines()[0]}") from None
    out.modelfiledir = folder
    for body in out.bodies[1:]:
        body.simple = 0  # MuJoCo's short cut for bodies on slides holds only as long as their mass stays where it is
    return out


def in_joint_units(spec: mujoco.MjSpec) -> list[str]:
    """Make every drive's command one of its joint's units, in place: rad, rad/s or N m; return a sentence for each changed.

    A gear scales length and force, so a servo on a gear of 3 takes three times the angle: kp, kd and limits are carried over
    to the joint, and the gear becomes 1. A torque drive's gain becomes 1 likewise, and a servo that takes counts (its gain is
    not its stiffness) takes angles.
    """
    model = spec.copy().compile()
    notes = []
    for d in every_drive(model):
        a, actuator = d.actuator, spec.actuators[d.actuator]
        gear = float(model.actuator_gear[a, 0])
        torque = d.signal == "tau"
        _to_joint(spec, model, d)
        gain = float(model.actuator_gainprm[a, 0]) / (1.0 if torque else _stiffness(model, a))
        if gear == 1.0 and abs(gain - 1.0) < 1e-9:
            continue
        fixed = model.actuator_gaintype[a] == mujoco.mjtGain.mjGAIN_FIXED
        if is_dc_motor(model, a) or not fixed or gear == 0 or gain == 0:
            if gear != 1.0:
                raise BadInput(
                    f"the drive of {d.name} has a gear of {gear:g}, which is not understood for its kind: use gear 1"
                )
            continue
        per_unit = gain * (gear if torque else 1 / gear)  # joint units of one unit of control
        actuator.gear = [1, 0, 0, 0, 0, 0]
        actuator.gainprm = np.r_[1.0 if torque else _stiffness(model, a) * gear**2, model.actuator_gainprm[a, 1:]]
        actuator.biasprm = np.r_[model.actuator_biasprm[a, 0] * gear, model.actuator_biasprm[a, 1:3] * gear**2, np.zeros(7)]
        actuator.ctrlrange = np.sort(model.actuator_ctrlrange[a] * per_unit)
        actuator.forcerange = np.sort(model.actuator_forcerange[a] * gear)
        for key in spec.keys:
            if len(key.ctrl):
                control = np.array(key.ctrl)
                control[model.actuator_ctrladr[a]] *= per_unit
                key.ctrl = control
        turn = "m" if model.jnt_type[d.joint] == mujoco.mjtJoint.mjJNT_SLIDE else "rad"
        unit = ("N" if turn == "m" else "N m") if torque else f"{turn}/s" if is_velocity_servo(model, a) else turn
        what = f"has a gear of {gear:g}" if gear != 1.0 or torque else f"takes counts of {gain:.4g} {unit}"
        notes.append(f"the drive of {d.name} {what}: it is commanded in {unit} of the joint")
    return notes


def _stiffness(model: mujoco.MjModel, actuator: int) -> float:
    """What a servo's error is multiplied by, kp of a position and kd of a velocity servo; 1 where it is no affine servo."""
    if model.actuator_biastype[actuator] != mujoco.mjtBias.mjBIAS_AFFINE:
        return float(model.actuator_gainprm[actuator, 0]) or 1.0
    position, speed = -model.actuator_biasprm[actuator, 1:3]
    return float(position or speed) or float(model.actuator_gainprm[actuator, 0])


def _to_joint(spec: mujoco.MjSpec, model: mujoco.MjModel, d: Drive) -> None:
    """Rotor inertia and damping that a model gives to the actuator belong to the joint: there they have one name."""
    a, joint, actuator = d.actuator, spec.joint(d.name), spec.actuators[d.actuator]
    gear = abs(float(model.actuator_gear[a, 0]))
    damping = np.r_[model.actuator_damping[a], model.actuator_dampingpoly[a] * [gear, gear**2]] * gear**2
    if model.actuator_armature[a]:
        joint.armature = float(model.dof_armature[d.dof] + model.actuator_armature[a] * gear**2)
        actuator.armature = 0.0
    if damping.any():
        joint.damping = np.r_[model.dof_damping[d.dof], model.dof_dampingpoly[d.dof]] + damping
        actuator.damping = [0.0, 0.0, 0.0]


def hang(spec: mujoco.MjSpec) -> mujoco.MjSpec:
    """A copy whose floating base is held fixed, a metre above where it was; objects that float by themselves still do."""
    spec = canonical(spec)
    model = spec.copy().compile()
    base = base_joint(model)
    if base is None:
        raise BadInput("only a robot with a floating base can be hung up, and this one has a fixed base")
    before = take_keyframes(spec)
    joint = spec.joint(model.joint(base).name)
    joint.parent.pos = np.asarray(joint.parent.pos) + [0.0, 0.0, 1.0]
    spec.delete(joint)
    put_keyframes(spec, before)
    return spec


def part_from_base(spec: mujoco.MjSpec) -> list[str]:
    """Keep a fixed base and the links on it from colliding, in place; return a sentence for each base.

    MuJoCo lets no link collide with its parent, unless that parent is fixed to the world. So a robot that is hung up, or
    whose free joint was taken away, blows its hips off the trunk that they overlap.
    """
    model = spec.copy().compile()
    solid = {int(model.geom_bodyid[g]) for g in np.flatnonzero(model.geom_contype | model.geom_conaffinity)}
    parted: dict[str, list[str]] = {}
    for b in sorted(solid):
        p = int(model.body_parentid[b])
        if p and p in solid and model.body_weldid[b] and not model.body_weldid[p]:
            pair = model.body(p).name, model.body(b).name
            parted.setdefault(pair[0], []).append(pair[1])
            spec.add_exclude(bodyname1=pair[0], bodyname2=pair[1])
    return [
        f"{base} is fixed and overlaps its links in MuJoCo's eyes, so it does not collide with {', '.join(links)}"
        for base, links in parted.items()
    ]


def install(spec: mujoco.MjSpec, mechanisms: Iterable[Mechanism]) -> None:
    """Install mechanisms, in place; keyframes are put away meanwhile, as they must match the joints."""
    before = take_keyframes(spec)
    key = home_key(before)
    pose = before.qpos0 if key is None else before.key_qpos[key]
    single = [j for j in range(before.njnt) if int(before.jnt_type[j]) in ONE_AXIS]
    home = {before.joint(j).name: float(pose[before.jnt_qposadr[j]]) for j in single}
    for mechanism in mechanisms:
        mechanism.install(spec, home)
    put_keyframes(spec, before)
