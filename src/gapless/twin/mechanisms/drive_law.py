"""DriveLaw: networks that were learned from measured torque (`gapless actuator`) in the place of drives' own laws."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import mujoco
import numpy as np

from gapless.arrays import Array
from gapless.errors import BadInput
from gapless.robots import drives, is_dc_motor, torque_limit
from gapless.twin import drive_law, learned
from gapless.twin.mechanism import Bound, Mechanism


@dataclass(frozen=True)
class DriveNet:
    """The network of one drive: two hidden layers of softsign, from the history of command and velocity to torque."""

    joint: str
    drive: str
    """What the drive is commanded in, as in `robots.Drive`: "q" or "tau"."""
    centre: tuple[float, ...]
    """Of each input in training; inputs are error of position (or torque) and velocity at each of `drive_law.LAGS`."""
    spread: tuple[float, ...]
    low: tuple[float, ...]
    """Of each input in training, in units of its spread from its centre; inputs are clipped there."""
    high: tuple[float, ...]
    scale: tuple[float, ...]
    """Mean and spread of the torque [N m]."""
    most: float
    """Largest torque in training [N m]: the limit of a drive whose model states none."""
    inward: tuple[tuple[float, ...], ...]
    """Weights of each unit of the first hidden layer: of the inputs, and a constant."""
    across: tuple[tuple[float, ...], ...]
    """The same of the second one."""
    outward: tuple[float, ...]

    def __post_init__(self) -> None:
        parts = (self.centre, self.spread, self.low, self.high)
        wide = {*map(len, parts), *(len(u) - 1 for u in self.inward)}
        deep = {len(self.inward), len(self.across), len(self.outward) - 1, *(len(u) - 1 for u in self.across)}
        if wide != {drive_law.INPUTS} or deep != {drive_law.HIDDEN} or len(self.scale) != 2:
            raise BadInput(
                f"the drive network of {self.joint} must have {drive_law.INPUTS} inputs and two hidden layers of "
                f"{drive_law.HIDDEN}: was the file cut or made by another version?"
            )
        numbers = np.concatenate([*parts, self.scale, [self.most], *self.inward, *self.across, self.outward])
        if not np.isfinite(numbers).all() or not min(*self.spread, self.scale[1], self.most) > 0:
            raise BadInput(f"the drive network of {self.joint} has numbers that are not finite, or not positive")

    @cached_property
    def layers(self) -> list[Array]:
        """Inward, its constants, across, its constants, outward, its constant, as matrices take inputs from the left."""
        matrices = [np.array(m) for m in (self.inward, self.across, [self.outward])]
        return list(itertools.chain.from_iterable((m[:, :-1].T, m[:, -1]) for m in matrices))

    def scaled(self, inputs: Array) -> Array:
        """Inputs (samples, inputs) in units of their spread, not yet clipped."""
        return np.asarray((inputs - np.array(self.centre)) / np.array(self.spread))

    def outside(self, inputs: Array) -> float:
        """The share of samples (samples, inputs) in which some input is outside of what was seen in training."""
        u = self.scaled(inputs)
        return float(((u < np.array(self.low) - 1e-6) | (u > np.array(self.high) + 1e-6)).any(axis=1).mean())

    def __call__(self, inputs: Array) -> Array:
        """Torque [N m] of inputs (samples, inputs)."""
        u = np.clip(self.scaled(inputs), self.low, self.high)
        return np.asarray(self.scale[0] + self.scale[1] * forward(self.layers, u)[-1][:, 0])


def forward(layers: list[Array], u: Array) -> list[Array]:
    """Sums of both hidden layers, and the output."""
    first = u @ layers[0] + layers[1]
    second = first / (1 + np.abs(first)) @ layers[2] + layers[3]
    return [first, second, second / (1 + np.abs(second)) @ layers[4] + layers[5]]


@dataclass(frozen=True)
class DriveLaw(Mechanism):
    """A network in the place of the law of each drive that has one, computed within the engine's step.

    Inputs are clipped to the range of training, and torque to the drive's limit. Strength and gains of the drive scale what it
    gives, as they are factors of the law that it replaces.
    """

    nets: tuple[DriveNet, ...] = ()

    def install(self, spec: mujoco.MjSpec, home: Mapping[str, float]) -> None:
        model = spec.copy().compile()
        if self.nets and learned.marked(model):
            raise BadInput("the model has learned torque or drives already: start from the model that they were learned for")
        if len({net.joint for net in self.nets}) < len(self.nets):
            raise BadInput("drive networks: two are for the same joint; was the file changed by hand?")
        by_joint, numbers = {d.name: d for d in drives(model) if not d.passive}, {}
        for net in self.nets:
            d = by_joint.get(net.joint)
            if d is None:
                known = ", ".join(by_joint) or "none"
                raise BadInput(f"the drive network of {net.joint!r} is of another robot: joints with a drive here: {known}")
            a = d.actuator
            if d.signal != net.drive or is_dc_motor(model, a) or model.actuator_dyntype[a] != mujoco.mjtDyn.mjDYN_NONE:
                raise BadInput(
                    f"the drive network of {net.joint} is for a drive commanded in {net.drive!r} by a plain gain, and this "
                    "model's has another law: state its gains, or learn the network from logs of this drive"
                )
            if not np.isfinite(torque_limit(model, a, commanded=False)):
                limit = min(net.most, torque_limit(model, a))
                spec.actuators[a].forcerange, spec.actuators[a].forcelimited = [-limit, limit], mujoco.mjtLimited.mjLIMITED_TRUE
            law = np.r_[model.actuator_gainprm[a, 0], model.actuator_biasprm[a, :3]]
            inputs = np.array([net.centre, net.spread, net.low, net.high])
            steps = drive_law.slots(spec.option.timestep / drive_law.FINER)
            numbers[model.actuator(a).name] = drive_law.laid_out(steps, law, np.array(net.scale), inputs, net.layers)
        if numbers:
            drive_law.mark(spec, numbers)

    def bind(self, model: mujoco.MjModel) -> Bound:
        drive_law.must_fit(model)
        return Bound([], lambda fields, values: None)
