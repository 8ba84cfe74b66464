"""Residual: what no number of the model explains, learned from logs (`gapless.residual`): joint torque, a pull at a base."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import mujoco
import numpy as np

from gapless.arrays import Array
from gapless.errors import BadInput
from gapless.robots import base_joint, drives, is_dc_motor
from gapless.rotations import rotation_matrices
from gapless.twin import learned
from gapless.twin.mechanism import NEVER, Bound, Fields, Mechanism, Quantity, StepState, Values
from gapless.twin.space import Parameter

MEMBER = Quantity("residual.member", cause=None, shown_by=NEVER)
WRENCH = Quantity("residual.wrench", cause=None, shown_by=NEVER)
AXES = ("force_x", "force_y", "force_z", "torque_x", "torque_y", "torque_z")
FARTHEST = 20.0  # of a wrench's weights: 95 % of its bound


@dataclass(frozen=True)
class Net:
    """The network of one joint, with the range of inputs that it was trained in; several members are an ensemble."""

    joint: str
    drive: str
    """What the drive is commanded in, as in `robots.Drive`: "q" or "tau"."""
    timestep: float
    """Of the simulation that it was trained in [s]."""
    bound: float
    """It never gives more than this [N m]; where it shifts what a drive is told, in the unit of that [rad]."""
    waves: float
    """Times the angle, in the sine and the cosine among its inputs."""
    centre: tuple[float, ...]
    """Of each of `learned.INPUTS` in training."""
    spread: tuple[float, ...]
    low: tuple[float, ...]
    """Of each input in training, in units of its spread from its centre; inputs are clipped there."""
    high: tuple[float, ...]
    members: tuple[tuple[float, ...], ...]
    """Weights of each member of the ensemble: the first acts unless another is drawn."""

    def __post_init__(self) -> None:
        widths = {len(part) for part in (self.centre, self.spread, self.low, self.high)}
        sizes = {len(m) for m in self.members}
        units = {(n - learned.COUNT - 1) / (learned.COUNT + 2) for n in sizes}
        if widths != {learned.COUNT} or len(sizes) != 1 or not all(u == int(u) and u >= 1 for u in units):
            raise BadInput(
                f"the network of {self.joint} must have {learned.COUNT} inputs and members of equal size, and this one has "
                f"{sorted(widths)} inputs and {sorted(sizes)} weights: was the file cut or made by another version?"
            )
        numbers = np.concatenate([self.inputs.ravel(), *self.members, [self.bound, self.waves, self.timestep]])
        if not np.isfinite(numbers).all() or not min(self.spread) > 0 or self.bound < 0 or not self.timestep > 0:
            raise BadInput(f"the network of {self.joint} has numbers that are not finite or not positive where they must be")

    @property
    def inputs(self) -> Array:
        """Centre, spread, low and high of each input. Shape: (4, inputs)."""
        return np.array([self.centre, self.spread, self.low, self.high])

    @property
    def numbers(self) -> list[Array]:
        """What the engine is given, by member."""
        return [learned.laid_out(self.bound, self.waves, self.inputs, np.array(m)) for m in self.members]


@dataclass(frozen=True)
class Wrench:
    """A force and a torque at a floating base, along its own axes: along each a constant and a share of the velocity there.

    Neither exceeds its bound, and velocities are clipped to the range of training.
    """

    force: float
    """The most along an axis [N]."""
    torque: float
    """[N m]"""
    low: tuple[float, ...]
    """Least velocity of the base along each of `AXES` in training, in its own frame [m/s and rad/s]."""
    high: tuple[float, ...]
    members: tuple[float, ...] = (0.0,) * 12
    """Of each axis the constant, then of each how it changes over half the range of training; a weight of 1 is half the
    bound."""

    def __post_init__(self) -> None:
        numbers = np.array([*self.low, *self.high, *self.members, self.force, self.torque])
        if (len(self.low), len(self.high), len(self.members)) != (6, 6, 12) or not np.isfinite(numbers).all():
            raise BadInput("a learned pull at the base needs six ranges and twelve weights, all finite: was the file cut?")
        if min(self.force, self.torque) < 0 or np.any(np.array(self.low) >= np.array(self.high)):
            raise BadInput("a learned pull at the base needs bounds that are not negative, and ranges that are not empty")

    def at(self, speed: Array, weights: Array) -> Array:
        """What acts at velocities (n, 6) for weights (n, 12) [N and N m]. Shape: (n, 6)."""
        low, high = np.array(self.low), np.array(self.high)
        u = (np.clip(speed, low, high) - (low + high) / 2) / ((high - low) / 2)
        y = weights[:, :6] + weights[:, 6:] * u
        return np.repeat([self.force, self.torque], 3) * y / (1 + np.abs(y))

    def outside(self, speed: Array) -> Array:
        """Where some velocity (n, 6) is outside of the range of training. Shape: (n,)."""
        return np.asarray(((speed < np.array(self.low)) | (speed > np.array(self.high))).any(axis=1))


@dataclass(frozen=True)
class Residual(Mechanism):
    """A network at each joint that has one: computed within the engine's step, bounded, from clipped inputs; and a pull at a
    floating base, computed between steps."""

    quantities = (MEMBER, WRENCH)
    nets: tuple[Net, ...] = ()
    target: bool = False
    """Whether networks shift what drives are told, within their limits (delta action), instead of adding torque at joints."""
    base: Wrench | None = None

    def install(self, spec: mujoco.MjSpec, home: Mapping[str, float]) -> None:
        if not self.nets:
            return
        model = spec.copy().compile()
        if learned.marked(model):
            raise BadInput("the model has learned torque already: start from the model that it was fitted to")
        if len({net.joint for net in self.nets}) < len(self.nets):
            raise BadInput("learned torque: two networks are for the same joint; was the file changed by hand?")
        by_joint = {d.name: d for d in drives(model)}
        for net in self.nets:
            drive = by_joint.get(net.joint)
            if drive is None:
                raise BadInput(f"the learned torque is of another robot: this one has no driven joint {net.joint!r}")
            if drive.signal != net.drive or is_dc_motor(model, drive.actuator):
                raise BadInput(
                    f"the learned torque of {net.joint} is for a drive commanded in {net.drive!r} by a plain gain, and this "
                    "model's has another law: learn it again with this drive (`gapless fit --residual auto`)"
                )
            _same_step(net, spec.option.timestep)
        nets = [(model.actuator(by_joint[net.joint].actuator).name, net.numbers) for net in self.nets]
        learned.mark(spec, nets, self.target)

    def bind(self, model: mujoco.MjModel) -> Bound:
        count = min((len(net.members) for net in self.nets), default=1)
        acts = [d.actuator for d in drives(model) if any(net.joint == d.name for net in self.nets)]
        for net in self.nets:
            _same_step(net, model.opt.timestep)
        first = model.actuator_user[acts, -2] if acts else np.zeros(0)

        def apply(fields: Fields, values: Values) -> None:
            if count > 1:
                fields["actuator_user"][:, acts, -2] = first + np.floor(values[MEMBER.name])

        members = [MEMBER.amount("", 0.0, 1.0, 0.5, 0.0, count - 1e-6)] if count > 1 else []
        if self.base is None:
            return Bound(members, apply)
        free = base_joint(model)
        if free is None:
            raise BadInput("the learned pull at the base is of a robot that floats, and the base of this one does not move")
        return Bound([*members, *_weights(self.base)], apply, _pull(self.base, model, free))


def _weights(base: Wrench) -> list[Parameter]:
    names = [*AXES, *(f"{axis}_by_speed" for axis in AXES)]
    return [WRENCH.amount(n, w, 1.0, 0.1, -FARTHEST, FARTHEST) for n, w in zip(names, base.members, strict=True)]


def base_speed(pose: Array, qvel: Array) -> Array:
    """Velocity of a floating base along its own axes, from its pose (n, 7) and the engine's velocity (n, 6). Shape: (n, 6)."""
    turned = np.einsum("nji,nj->ni", rotation_matrices(pose[:, 3:]), qvel[:, :3])
    return np.hstack([turned, qvel[:, 3:]])  # the engine has the turning of a base in its own frame


def _pull(base: Wrench, model: mujoco.MjModel, free: int) -> Callable[[StepState, Values], Array]:
    """What a wrench at the free joint does in a step."""
    place, dof = int(model.jnt_qposadr[free]), int(model.jnt_dofadr[free])

    def force(state: StepState, values: Values) -> Array:
        pose, qvel = state.qpos[:, place : place + 7], state.qvel[:, dof : dof + 6]
        wrench = base.at(base_speed(pose, qvel), values[WRENCH.name])
        out = np.zeros_like(state.qvel)
        out[:, dof : dof + 3] = np.einsum("nij,nj->ni", rotation_matrices(pose[:, 3:]), wrench[:, :3])
        out[:, dof + 3 : dof + 6] = wrench[:, 3:]
        return out

    return force


def _same_step(net: Net, step: float) -> None:
    if abs(step / net.timestep - 1) > learned.STEP:
        raise BadInput(
            f"the learned torque of {net.joint} was trained at a time step of {net.timestep:g} s, and the model has {step:g} "
            "s: use that step, or learn it again"
        )
