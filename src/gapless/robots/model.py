"""A robot's model: the MuJoCo model and what the rest of Gapless needs to know about it, by name."""

from dataclasses import dataclass
from functools import cached_property

import mujoco
import numpy as np

from gapless.arrays import Array
from gapless.report import Printed, Section, Table
from gapless.robots.drives import ONE_AXIS, Drive, base_joint, driven_joints, drives, every_drive, torque_limit

_FLOORS = (int(mujoco.mjtGeom.mjGEOM_PLANE), int(mujoco.mjtGeom.mjGEOM_HFIELD))


@dataclass(frozen=True)
class Joint:
    """One driven joint as modelled; a missing limit is infinite."""

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


@dataclass(frozen=True, repr=False)
class RobotModel(Printed):
    """A loaded robot. `spec` is for copying and editing, `model` is compiled from it; treat both as read-only."""

    name: str
    source: str
    spec: mujoco.MjSpec
    model: mujoco.MjModel
    warnings: tuple[str, ...]
    """A sentence for each thing that the file leaves open and that had to be assumed."""
    control_dt: float
    """Time between two commands, a whole number of physics steps [s]."""

    def described(self) -> Section:
        rows = []
        for j in self.joint_table:
            numbers = (j.kp, j.kd, j.torque_limit, j.armature, j.friction)
            rows.append([j.name, f"{j.low:.2f} .. {j.high:.2f}", *(f"{number:.4g}" for number in numbers)])
        base = "free base" if self.floating else "fixed base"
        title = f"{self.name}: {len(self.joints)} joints, {self.mass:.2f} kg, {base}; units: rad, N m, kg m2"
        return Section(title, table=Table(("joint", "range", "kp", "kd", "torque limit", "armature", "friction"), rows))

    @cached_property
    def joints(self) -> tuple[str, ...]:
        """Names of the driven hinge and slide joints, in the order of their actuators."""
        return tuple(d.name for d in self.drives)

    @cached_property
    def joint_table(self) -> tuple[Joint, ...]:
        """The driven joints with their ranges, gains, limits and friction, in the order of `joints`."""
        return tuple(_describe(self.model, drive) for drive in self.drives)

    @cached_property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """Of every hinge and slide joint, infinite where it has no limits [rad or m]."""
        out = {}
        for j in (j for j in range(self.model.njnt) if int(self.model.jnt_type[j]) in ONE_AXIS):
            low, high = self.model.jnt_range[j].tolist() if self.model.jnt_limited[j] else (-np.inf, np.inf)
            out[self.model.joint(j).name] = (low, high)
        return out

    @cached_property
    def floating(self) -> bool:
        """Whether the base moves freely."""
        return base_joint(self.model) is not None

    @cached_property
    def base(self) -> str:
        """The body at the root of the driven joints."""
        return self.model.body(base_body(self.model)).name

    @cached_property
    def feet(self) -> tuple[str, ...]:
        """Geoms that a floating robot stands on: they can touch the floor, end a chain, and are lowest in the home pose."""
        return tuple(self.model.geom(geom).name for geom in _feet(self.model)) if self.floating else ()

    @cached_property
    def drives(self) -> tuple[Drive, ...]:
        """The driven joints in the order of their actuators: the columns of every joint signal."""
        return tuple(drives(self.model))

    @cached_property
    def all_servos(self) -> bool:
        """Whether every drive takes a position target."""
        return all(d.signal == "q" for d in self.drives)

    @cached_property
    def home(self) -> Array:
        """The home pose: keyframe "home", else the first one, else qpos0. Shape: (nq,)."""
        key = home_key(self.model)
        return (self.model.qpos0 if key is None else self.model.key_qpos[key]).copy()

    @cached_property
    def home_command(self) -> Array:
        """The command that holds the home pose: the keyframe's own, else the pose itself for servos. Shape: (controls,)."""
        key = home_key(self.model)
        command = np.zeros(self.model.nu) if key is None else self.model.key_ctrl[key].copy()
        if not command.any():
            for d in every_drive(self.model):
                if d.signal == "q":
                    command[d.control] = self.home[d.qpos] * self.model.actuator_gear[d.actuator, 0]
        return command

    @cached_property
    def mass(self) -> float:
        """Mass of everything below the base, the base included [kg]."""
        return float(self.model.body_subtreemass[base_body(self.model)])

    @property
    def substeps(self) -> int:
        """Physics steps between two commands."""
        return round(self.control_dt / self.model.opt.timestep)


def home_key(model: mujoco.MjModel) -> int | None:
    """Number of the keyframe "home", else of the first one; None for a model without keyframes."""
    return max(0, mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_KEY, "home")) if model.nkey else None


def home_data(model: mujoco.MjModel) -> mujoco.MjData:
    """The state at the keyframe "home", else at the first one, else at qpos0; positions are computed."""
    data, key = mujoco.MjData(model), home_key(model)
    if key is not None:
        mujoco.mj_resetDataKeyframe(model, data, key)
    mujoco.mj_kinematics(model, data)
    return data


def _describe(model: mujoco.MjModel, drive: Drive) -> Joint:
    """A joint with the gains of its drive, both seen at the joint."""
    actuator, dof, gear = drive.actuator, drive.dof, model.actuator_gear[drive.actuator, 0]
    kp = kd = 0.0
    if model.actuator_biastype[actuator] == mujoco.mjtBias.mjBIAS_AFFINE:
        kp, kd = 0.0 - model.actuator_biasprm[actuator, 1:3] * gear**2
    rest = (kp, kd, torque_limit(model, actuator), model.dof_armature[dof], model.dof_frictionloss[dof], model.dof_damping[dof])
    return Joint(drive.name, drive.low, drive.high, *map(float, rest))


def base_body(model: mujoco.MjModel) -> int:
    """The root of the tree that holds the first driven joint, else of the heaviest tree."""
    for joint in driven_joints(model):
        return int(model.body_rootid[model.jnt_bodyid[joint]])
    return max(set(model.body_rootid[1:].tolist()), key=lambda root: model.body_subtreemass[root], default=0)


def _feet(model: mujoco.MjModel) -> list[int]:
    """Geoms that can touch the floor, on the last moving body of a chain, within 1 cm of the lowest at home."""
    data, body = home_data(model), model.geom_bodyid
    floors = np.flatnonzero((model.body_weldid[body] == 0) & np.isin(model.geom_type, _FLOORS))
    touches = (model.geom_contype | model.geom_conaffinity) > 0
    if floors.size:  # else a robot without its scene: any geom that can touch something
        floor_type, floor_affinity = model.geom_contype[floors], model.geom_conaffinity[floors]
        meets = (model.geom_contype[:, None] & floor_affinity) | (model.geom_conaffinity[:, None] & floor_type)
        touches = meets.any(axis=1)
    inner = model.body_weldid[model.body_parentid[model.body_jntnum > 0]]
    ends = (model.body_rootid[body] == base_body(model)) & ~np.isin(model.body_weldid[body], inner) & touches
    bottom = geom_bottoms(model, data)
    lowest = bottom.min(where=ends, initial=np.inf)
    return np.flatnonzero(ends & (bottom < lowest + 0.01)).tolist()


def geom_bottoms(model: mujoco.MjModel, data: mujoco.MjData) -> Array:
    """Height of the lowest point of the box around each geom [m]. Shape: (geoms,)."""
    upward = data.geom_xmat.reshape(-1, 3, 3)[:, 2]
    centre, half = model.geom_aabb.reshape(-1, 2, 3).swapaxes(0, 1)
    return np.asarray(data.geom_xpos[:, 2] + (upward * centre).sum(axis=1) - (abs(upward) * half).sum(axis=1))


def missing_ground(model: mujoco.MjModel) -> float | None:
    """The height at which a robot with a free base, whose model has nothing to stand on, needs a floor [m]; None: it has one.

    That is the lowest point in its home pose.
    """
    solid = (model.geom_contype | model.geom_conaffinity) > 0
    still = model.body_weldid[model.geom_bodyid] == 0
    if base_joint(model) is None or (solid & still).any():
        return None
    return float(geom_bottoms(model, home_data(model)).min(where=solid, initial=np.inf))
