"""A robot's model: the MuJoCo model, and what the rest of Gapless needs to know of it by name."""

from dataclasses import dataclass
from functools import cached_property

import mujoco
import numpy as np

DEFAULT_CONTROL_DT = 0.02
"""Control period where a model does not name one: 50 Hz, what legged policies run at [s]."""

# Plain numbers, as numpy integers do not compare equal to MuJoCo's enums.
_JOINT_DRIVES = (int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_JOINTINPARENT))
ONE_AXIS = (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE))
_FLOORS = (int(mujoco.mjtGeom.mjGEOM_PLANE), int(mujoco.mjtGeom.mjGEOM_HFIELD))


@dataclass(frozen=True)
class Joint:
    """One driven joint as modelled; a limit that is not there is infinite."""

    name: str
    low: float
    """Lower end of the range [rad or m]."""
    high: float
    """Upper end of the range [rad or m]."""
    kp: float
    """Position gain, 0 for torque and velocity drives [N m/rad]."""
    kd: float
    """Velocity gain [N m s/rad]."""
    torque_limit: float
    """Largest torque of the drive at the joint [N m]."""
    armature: float
    """Reflected rotor inertia [kg m2]."""
    friction: float
    """Dry friction [N m]."""
    damping: float
    """Viscous friction [N m s/rad]."""


@dataclass(frozen=True)
class RobotModel:
    """A loaded robot. `spec` is for copying and editing, `model` is compiled from it; treat both as read-only."""

    name: str
    source: str
    spec: mujoco.MjSpec
    model: mujoco.MjModel
    warnings: tuple[str, ...]
    """A sentence for each thing that the file left open and that had to be assumed."""

    @cached_property
    def joints(self) -> tuple[str, ...]:
        """Names of the driven hinge and slide joints, in the order of their actuators."""
        return tuple(self.model.joint(j).name for j in driven_joints(self.model))

    @cached_property
    def joint_table(self) -> tuple[Joint, ...]:
        """The driven joints with their ranges, gains, limits and friction, in the order of `joints`."""
        return tuple(_describe(self.model, joint, actuator) for joint, actuator in driven_joints(self.model).items())

    @cached_property
    def floating(self) -> bool:
        """Whether the base moves freely."""
        base = self.model.body(_base(self.model))
        return bool(base.jntnum[0]) and self.model.jnt_type[base.jntadr[0]] == mujoco.mjtJoint.mjJNT_FREE

    @cached_property
    def base(self) -> str:
        """The body at the root of the driven joints."""
        return self.model.body(_base(self.model)).name

    @cached_property
    def feet(self) -> tuple[str, ...]:
        """Geoms a free robot stands on: they can touch the floor, end a chain, and are lowest in the home pose."""
        return tuple(self.model.geom(geom).name for geom in _feet(self.model)) if self.floating else ()

    @property
    def mass(self) -> float:
        """Mass of everything below the base, the base included [kg]."""
        return float(self.model.body_subtreemass[_base(self.model)])

    @property
    def control_dt(self) -> float:
        """Time between two commands, a whole number of physics steps [s]."""
        return self.substeps * self.model.opt.timestep

    @property
    def substeps(self) -> int:
        """Physics steps between two commands."""
        period = self.model.numeric("control_dt").data[0] if has_control_dt(self.model) else DEFAULT_CONTROL_DT
        return max(1, round(period / self.model.opt.timestep))


def home(model: mujoco.MjModel) -> mujoco.MjData:
    """The state at the keyframe "home", else at the first one, else at qpos0; positions are computed."""
    data = mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, max(0, mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_KEY, "home")))
    mujoco.mj_kinematics(model, data)
    return data


def has_control_dt(model: mujoco.MjModel) -> bool:
    """Whether the model names its control period, as the numeric control_dt."""
    return mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_NUMERIC, "control_dt") >= 0


def driven_joints(model: mujoco.MjModel) -> dict[int, int]:
    """Driven joint to its first actuator, in actuator order."""
    drives: dict[int, int] = {}
    for actuator in range(model.nactuator):
        joint = int(model.actuator_trnid[actuator, 0])
        if model.actuator_trntype[actuator] in _JOINT_DRIVES and model.jnt_type[joint] in ONE_AXIS:
            drives.setdefault(joint, actuator)
    return drives


def _describe(model: mujoco.MjModel, joint: int, actuator: int) -> Joint:
    """A joint with the gains of its drive, both seen at the joint."""
    gear, dof = abs(model.actuator_gear[actuator, 0]), model.jnt_dofadr[joint]
    limits = [np.inf]
    if model.actuator_forcelimited[actuator]:
        limits.append(gear * abs(model.actuator_forcerange[actuator]).max())
    if model.jnt_actfrclimited[joint]:
        limits.append(abs(model.jnt_actfrcrange[joint]).max())
    kp = kd = 0.0
    if model.actuator_biastype[actuator] == mujoco.mjtBias.mjBIAS_AFFINE:
        kp, kd = 0.0 - model.actuator_biasprm[actuator, 1:3] * gear**2
    elif model.actuator_biastype[actuator] == mujoco.mjtBias.mjBIAS_NONE and model.actuator_ctrllimited[actuator]:
        limits.append(gear * model.actuator_gainprm[actuator, 0] * abs(model.actuator_ctrlrange[actuator]).max())
    low, high = model.jnt_range[joint] if model.jnt_limited[joint] else (-np.inf, np.inf)
    return Joint(
        name=model.joint(joint).name,
        low=float(low),
        high=float(high),
        kp=float(kp),
        kd=float(kd),
        torque_limit=float(min(limits)),
        armature=float(model.dof_armature[dof]),
        friction=float(model.dof_frictionloss[dof]),
        damping=float(model.dof_damping[dof]),
    )


def _base(model: mujoco.MjModel) -> int:
    """The root of the tree that holds the first driven joint, else of the heaviest tree."""
    for joint in driven_joints(model):
        return int(model.body_rootid[model.jnt_bodyid[joint]])
    return max(set(model.body_rootid[1:].tolist()), key=lambda root: model.body_subtreemass[root], default=0)


def _feet(model: mujoco.MjModel) -> list[int]:
    """Geoms that can touch the floor, on the last moving body of a chain, within 1 cm of the lowest at home."""
    data, body = home(model), model.geom_bodyid
    floors = np.flatnonzero((model.body_weldid[body] == 0) & np.isin(model.geom_type, _FLOORS))
    touches = (model.geom_contype | model.geom_conaffinity) > 0
    if floors.size:  # else a robot without its scene: any geom that can touch something
        floor_type, floor_affinity = model.geom_contype[floors], model.geom_conaffinity[floors]
        meets = (model.geom_contype[:, None] & floor_affinity) | (model.geom_conaffinity[:, None] & floor_type)
        touches = meets.any(axis=1)
    inner = model.body_weldid[model.body_parentid[model.body_jntnum > 0]]
    ends = (model.body_rootid[body] == _base(model)) & ~np.isin(model.body_weldid[body], inner) & touches
    upward = data.geom_xmat.reshape(-1, 3, 3)[:, 2]
    centre, half = model.geom_aabb.reshape(-1, 2, 3).swapaxes(0, 1)
    bottom = data.geom_xpos[:, 2] + (upward * centre).sum(axis=1) - (abs(upward) * half).sum(axis=1)
    lowest = bottom.min(where=ends, initial=np.inf)
    return np.flatnonzero(ends & (bottom < lowest + 0.01)).tolist()
