"""The canonical model: one robot for every engine, as a URDF and a table of what a URDF cannot say, made from a MuJoCo model.

Welded bodies are one link; a link's frame lies at its joint; collision is with the floor only. What gets lost is said.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from xml.etree import ElementTree

import mujoco
import numpy as np

from gapless.arrays import Array
from gapless.check.engines.shapes import Shape, floor_of, shapes_of
from gapless.errors import BadInput
from gapless.robots import ONE_AXIS, base_joint, drives, is_dc_motor
from gapless.rotations import multiply, rotation_matrices
from gapless.twin import network_drives

STEP_SHARE = 0.2
"""Of the time in which a drive's damping stops its joint, or its stiffness turns it by a radian: a step of explicit control."""
SHORTEST_STEP = 2.5e-4  # s
ROOT = "root"
"""Name of the link that stands for the ground where a base is fixed."""


@dataclass(frozen=True)
class Link:
    """A rigid part, in its own frame."""

    name: str
    mass: float
    """[kg]"""
    com: Array
    inertia: Array
    """About the centre of mass. Shape: (3, 3) [kg m2]."""


@dataclass(frozen=True)
class Joint:
    """A hinge or slide between a link and its parent."""

    name: str
    parent: str
    child: str
    slides: bool
    pos: Array
    """Of the child's frame in the parent's, at joint position 0 of the URDF."""
    quat: Array
    axis: Array
    zero: float
    """MuJoCo's position where the URDF's is 0 [rad or m]."""
    low: float
    high: float
    """Limits as MuJoCo counts positions; infinite without."""
    armature: float
    """[kg m2]"""
    damping: float
    friction: float
    """Dry friction [N m]."""
    spring: tuple[float, float]
    """Stiffness [N m/rad] and rest position of a passive spring."""
    inertia: float
    """The least that the joint feels in the home pose, armature included [kg m2]."""


@dataclass(frozen=True)
class Law:
    """The drives' law: `clip(gain * clip(command) + bias0 + bias1 * q + bias2 * dq)`, at the joint. Shapes: (drives,)."""

    joints: tuple[str, ...]
    gain: Array
    bias: Array
    """Shape: (3, drives)."""
    limit: Array
    """Lowest and highest torque. Shape: (2, drives)."""
    command: Array
    """Lowest and highest command. Shape: (2, drives)."""


@dataclass(frozen=True)
class Canonical:
    """What every engine gets."""

    name: str
    floating: bool
    links: tuple[Link, ...]
    """The first is the root."""
    joints: tuple[Joint, ...]
    shapes: tuple[Shape, ...]
    floor: float
    """Height of the floor [m]."""
    gravity: Array
    law: Law
    lost: tuple[str, ...]
    """A sentence for each thing of the model that other engines do not get."""

    @cached_property
    def mass(self) -> float:
        """Of all links that move [kg]."""
        return sum(link.mass for link in self.links[0 if self.floating else 1 :])

    @cached_property
    def stiffest(self) -> float:
        """The longest step with which drives computed from the last state are stable and near the truth [s]."""
        times = [math.inf]
        columns = {name: i for i, name in enumerate(self.law.joints)}
        for joint in self.joints:
            kp, kd = (-self.law.bias[1:, columns[joint.name]]).tolist() if joint.name in columns else (0.0, 0.0)
            kp, kd = kp + joint.spring[0], kd + joint.damping
            times += [joint.inertia / kd] if kd > 0 else []
            times += [math.sqrt(joint.inertia / kp)] if kp > 0 else []
        return max(STEP_SHARE * min(times), SHORTEST_STEP)

    def with_rotors(self) -> dict[str, tuple[Array, Array]]:
        """Principal moments and axes (a quaternion) of links that carry the armature of their joint, for want of any."""
        extra = {j.child: j.armature * np.outer(j.axis, j.axis) for j in self.joints if not j.slides}
        return {link.name: principal(link.inertia + extra.get(link.name, 0.0)) for link in self.links}

    def urdf(self, rotors: bool = False) -> str:
        """The robot as URDF; meshes are given by the file names of `Shape.file`.

        rotors: whether inertias lie along the axes of `with_rotors`, whose moments are to be set, as no URDF can hold them.
        """
        robot = ElementTree.Element("robot", name=self.name)
        turned = self.with_rotors()
        for link in self.links:
            node = ElementTree.SubElement(robot, "link", name=link.name)
            moments, axes = principal(link.inertia)
            if rotors:  # more than a body can have about one axis: a reader would refuse it
                moments, axes = np.full(3, moments.mean()), turned[link.name][1]
            _inertial(node, link, moments, axes)
            for shape in (s for s in self.shapes if s.link == link.name):
                collision = ElementTree.SubElement(node, "collision", name=shape.name)
                _origin(collision, shape.pos, shape.quat)
                ElementTree.SubElement(ElementTree.SubElement(collision, "geometry"), shape.kind, shape.attributes)
        for joint in self.joints:
            limited = math.isfinite(joint.low + joint.high)
            kind = "prismatic" if joint.slides else "revolute" if limited else "continuous"
            node = ElementTree.SubElement(robot, "joint", name=joint.name, type=kind)
            _origin(node, joint.pos, joint.quat)
            ElementTree.SubElement(node, "parent", link=joint.parent)
            ElementTree.SubElement(node, "child", link=joint.child)
            ElementTree.SubElement(node, "axis", xyz=_text(joint.axis))
            ends = {"lower": _text([joint.low - joint.zero]), "upper": _text([joint.high - joint.zero])} if limited else {}
            ElementTree.SubElement(node, "limit", {"effort": "1e6", "velocity": "1e3", **ends})
        for joint in self.joints:  # Drake reads which joints can be driven from here
            node = ElementTree.SubElement(robot, "transmission", name=joint.name)
            ElementTree.SubElement(node, "type").text = "transmission_interface/SimpleTransmission"
            ElementTree.SubElement(node, "joint", name=joint.name)
            ElementTree.SubElement(node, "actuator", name=joint.name)
        ElementTree.indent(robot)
        return ElementTree.tostring(robot, encoding="unicode")


def canonical(model: mujoco.MjModel, home: Array, name: str = "robot") -> Canonical:
    """The canonical model of a compiled MuJoCo model; bad input for joints and drives that no URDF can express."""
    base = base_joint(model)
    tops, lost = _moving(model, base)
    data = mujoco.MjData(model)
    data.qpos[:] = model.qpos0
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    root = int(model.jnt_bodyid[base]) if base is not None else 0
    names = {0: ROOT} | {b: model.body(b).name or f"body_{b}" for b in tops}
    frames = {b: _frame(model, data, b) for b in [root, *tops]}
    merged = {top: [b for b in range(1, model.nbody) if model.body_weldid[b] == top] for top in [root, *tops]}
    order = [root, *(b for b in tops if b != root)]
    links = tuple(_link(model, data, names[b], merged[b], frames[b]) for b in order)
    if base is None:  # the ground has no mass of its own, but engines ask for one
        links = (Link(ROOT, 1.0, np.zeros(3), np.eye(3)), *links[1:])
    felt = _felt(model, home)
    joints = tuple(_joint(model, b, names, frames, felt, root) for b in order if b != root)
    floor, missing = floor_of(model)
    shapes, unlike = shapes_of(model, data, {b: (names[top], frames[top]) for top in order for b in merged[top]})
    for count, what in ((model.neq, "closed loops and welds (equality)"), (model.ntendon, "tendons")):
        if count:
            lost.append(f"{what} are left out, which changes the robot")
    law = _law(model)
    return Canonical(
        name, base is not None, links, joints, shapes, floor, model.opt.gravity.copy(), law, (*lost, *missing, *unlike)
    )


def _moving(model: mujoco.MjModel, base: int | None) -> tuple[list[int], list[str]]:
    """Bodies that begin a link, parents first, and what is left out."""
    root = model.jnt_bodyid[base] if base is not None else 0
    tops, lost = [], []
    for b in range(1, model.nbody):
        if model.body_weldid[b] != b:
            continue
        kinds = [int(model.jnt_type[j]) for j in range(model.body_jntadr[b], model.body_jntadr[b] + model.body_jntnum[b])]
        free = int(mujoco.mjtJoint.mjJNT_FREE)
        if (base is not None and model.body_rootid[b] != model.body_rootid[root]) or (free in kinds and b != root):
            lost.append(f"{model.body(b).name} is not part of the robot and is left out")
        elif b != root and (len(kinds) != 1 or kinds[0] not in ONE_AXIS):
            raise BadInput(f"link {model.body(b).name}: a URDF has one hinge or slide a link, so no other engine can be used")
        else:
            tops.append(b)
    return tops, lost


def _frame(model: mujoco.MjModel, data: mujoco.MjData, body: int) -> tuple[Array, Array]:
    """Position and orientation of a link's frame at qpos0: the body's, moved to its joint."""
    pos, quat = data.xpos[body].copy(), data.xquat[body].copy()
    if body and model.jnt_type[joint := model.body_jntadr[body]] in ONE_AXIS:
        pos = pos + _matrix(quat) @ model.jnt_pos[joint]
    return pos, quat


def _link(model: mujoco.MjModel, data: mujoco.MjData, name: str, bodies: list[int], frame: tuple[Array, Array]) -> Link:
    """Bodies that are welded together, as one."""
    pos, axes = frame[0], _matrix(frame[1])
    mass = float(model.body_mass[bodies].sum())
    com = (model.body_mass[bodies, None] * data.xipos[bodies]).sum(axis=0) / max(mass, 1e-12)
    inertia = np.zeros((3, 3))
    for b in bodies:
        turned, off = data.ximat[b].reshape(3, 3), data.xipos[b] - com
        inertia += turned @ np.diag(model.body_inertia[b]) @ turned.T
        inertia += model.body_mass[b] * (off @ off * np.eye(3) - np.outer(off, off))
    return Link(name, mass, axes.T @ (com - pos), axes.T @ inertia @ axes)


def _joint(
    model: mujoco.MjModel,
    body: int,
    names: dict[int, str],
    frames: dict[int, tuple[Array, Array]],
    felt: Array,
    root: int,
) -> Joint:
    parent = int(model.body_weldid[model.body_parentid[body]])
    parent = parent if parent in frames else root
    j = int(model.body_jntadr[body])
    dof = int(model.jnt_dofadr[j])
    (pos, quat), (at, turned) = frames[parent], frames[body]
    low, high = model.jnt_range[j].tolist() if model.jnt_limited[j] else (-math.inf, math.inf)
    place = int(model.jnt_qposadr[j])
    return Joint(
        model.joint(j).name,
        names[parent],
        names[body],
        bool(model.jnt_type[j] == mujoco.mjtJoint.mjJNT_SLIDE),
        _matrix(quat).T @ (at - pos),
        np.asarray(multiply(quat * [1, -1, -1, -1], turned)),
        model.jnt_axis[j].copy(),
        float(model.qpos0[place]),
        low,
        high,
        float(model.dof_armature[dof]),
        float(model.dof_damping[dof]),
        float(model.dof_frictionloss[dof]),
        (float(model.jnt_stiffness[j]), float(model.qpos_spring[place])),
        float(felt[dof]),
    )


def _felt(model: mujoco.MjModel, home: Array) -> Array:
    """The inertia that each degree of freedom feels when it alone is pushed, in the home pose. Shape: (nv,)."""
    data = mujoco.MjData(model)
    data.qpos[:] = home
    mujoco.mj_forward(model, data)
    inverse = np.zeros((model.nv, model.nv))
    mujoco.mj_solveM(model, data, inverse, np.eye(model.nv))
    return 1 / np.maximum(np.diag(inverse), 1e-12)


def _law(model: mujoco.MjModel) -> Law:
    """The drives of a model; bad input where one is more than gain and bias."""
    found, networks = drives(model), network_drives(model)
    for d in found:
        plain = model.actuator_dyntype[d.actuator] == mujoco.mjtDyn.mjDYN_NONE and not is_dc_motor(model, d.actuator)
        kinds = model.actuator_gaintype[d.actuator], model.actuator_biastype[d.actuator]
        plain = plain and d.name not in networks
        if not plain or kinds[0] != mujoco.mjtGain.mjGAIN_FIXED or kinds[1] > int(mujoco.mjtBias.mjBIAS_AFFINE):
            raise BadInput(
                f"the drive of {d.name} has dynamics or a network of its own, which other engines do not have: use mujoco only"
            )
    at = [d.actuator for d in found]
    gear = model.actuator_gear[at, 0]
    affine = model.actuator_biastype[at] == int(mujoco.mjtBias.mjBIAS_AFFINE)
    bias = model.actuator_biasprm[at, :3].T * affine * np.stack([gear, gear**2, gear**2])
    force = np.where(model.actuator_forcelimited[at] > 0, model.actuator_forcerange[at].T * np.abs(gear), [[-np.inf], [np.inf]])
    joint = [d.joint for d in found]
    ends = np.where(model.jnt_actfrclimited[joint] > 0, model.jnt_actfrcrange[joint].T, [[-np.inf], [np.inf]])
    limit = np.stack([np.maximum(force[0], ends[0]), np.minimum(force[1], ends[1])])
    command = np.where(model.actuator_ctrllimited[at] > 0, model.actuator_ctrlrange[at].T, [[-np.inf], [np.inf]])
    return Law(tuple(d.name for d in found), model.actuator_gainprm[at, 0] * gear, bias, limit, command)


def principal(inertia: Array) -> tuple[Array, Array]:
    """Principal moments of inertia, and their axes as a quaternion."""
    moments, axes = np.linalg.eigh(inertia)
    axes[:, 2] *= np.linalg.det(axes)
    quat = np.empty(4)
    mujoco.mju_mat2Quat(quat, axes.ravel())
    return np.maximum(moments, 1e-9), quat


def _inertial(node: ElementTree.Element, link: Link, moments: Array, axes: Array) -> None:
    """Along the principal axes, as not every engine reads products of inertia."""
    inertial = ElementTree.SubElement(node, "inertial")
    _origin(inertial, link.com, axes)
    ElementTree.SubElement(inertial, "mass", value=_text([link.mass]))
    ixx, iyy, izz = (_text([m]) for m in moments)
    ElementTree.SubElement(inertial, "inertia", ixx=ixx, iyy=iyy, izz=izz, ixy="0", ixz="0", iyz="0")


def _origin(node: ElementTree.Element, pos: Array, quat: Array) -> None:
    r = _matrix(quat)
    pitch = math.atan2(-r[2, 0], math.hypot(r[0, 0], r[1, 0]))
    if math.hypot(r[0, 0], r[1, 0]) > 1e-9:
        roll, yaw = math.atan2(r[2, 1], r[2, 2]), math.atan2(r[1, 0], r[0, 0])
    else:  # straight up or down, where roll and yaw turn about the same axis
        roll, yaw = math.atan2(-r[1, 2], r[1, 1]), 0.0
    ElementTree.SubElement(node, "origin", xyz=_text(pos), rpy=_text([roll, pitch, yaw]))


def _matrix(quat: Array) -> Array:
    return rotation_matrices(quat[None])[0]


def _text(numbers: Array | list[float]) -> str:
    return " ".join(f"{x:.12g}" for x in numbers)
