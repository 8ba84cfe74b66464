"""Residual: torque that no number of the model explains, learned from logs by a small network a joint (`gapless.residual`)."""

from collections.abc import Mapping
from dataclasses import dataclass

import mujoco
import numpy as np

from gapless.arrays import Array
from gapless.errors import BadInput
from gapless.robots import drives, is_dc_motor
from gapless.twin import learned
from gapless.twin.mechanism import NEVER, Bound, Fields, Mechanism, Quantity, Values

MEMBER = Quantity("residual.member", cause=None, shown_by=NEVER)
STEP = 0.01  # share by which a time step may differ from that of training


@dataclass(frozen=True)
class Net:
    """The network of one joint, with the range of inputs that it was trained in; several members are an ensemble."""

    joint: str
    drive: str
    """What the drive is commanded in, as in `robots.Drive`: "q" or "tau"."""
    timestep: float
    """Of the simulation that it was trained in [s]."""
    bound: float
    """It never gives more torque than this [N m]."""
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
class Residual(Mechanism):
    """Torque of a network at each joint that has one: computed within the engine's step, bounded, from clipped inputs."""

    quantities = (MEMBER,)
    nets: tuple[Net, ...] = ()

    def install(self, spec: mujoco.MjSpec, home: Mapping[str, float]) -> None:
        if not self.nets:
            return
        model = spec.copy().compile()
        if learned.marked(model):
            raise BadInput("the model has learned torque already: start from the model that it was fitted to")
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
        learned.mark(spec, nets)

    def bind(self, model: mujoco.MjModel) -> Bound:
        count = min((len(net.members) for net in self.nets), default=1)
        acts = [d.actuator for d in drives(model) if any(net.joint == d.name for net in self.nets)]
        for net in self.nets:
            _same_step(net, model.opt.timestep)
        first = model.actuator_user[acts, -2] if acts else np.zeros(0)

        def apply(fields: Fields, values: Values) -> None:
            fields["actuator_user"][:, acts, -2] = first + np.floor(values[MEMBER.name])

        if count < 2:
            return Bound([], lambda fields, values: None)
        return Bound([MEMBER.amount("", 0.0, 1.0, 0.5, 0.0, count - 1e-6)], apply)


def _same_step(net: Net, step: float) -> None:
    if abs(step / net.timestep - 1) > STEP:
        raise BadInput(
            f"the learned torque of {net.joint} was trained at a time step of {net.timestep:g} s, and the model has {step:g} "
            "s: use that step, or learn it again"
        )
