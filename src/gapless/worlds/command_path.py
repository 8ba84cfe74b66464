"""The command path of worlds: commands are rounded, limited, shifted by the encoder's zero, and arrive late or never."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import mujoco
import numba
import numpy as np

from gapless.arrays import Array, Ints
from gapless.delay import in_steps, received_from_log, received_live
from gapless.robots import home_key, is_position_servo
from gapless.twin import Twin


@numba.vectorize(["float64(float64, float64)"], cache=True)
def rounded(value: float, quantum: float) -> float:
    """A value to the nearest multiple of a quantum; as it is where that is 0."""
    step = quantum if quantum > 0.0 else 1.0  # vectorised code takes both branches, and would warn of a division by zero
    steps = np.rint(value / step)
    return steps * step if quantum > 0.0 else value


@dataclass(frozen=True)
class Stream:
    """Recorded commands for worlds, each command held until the next."""

    sent: Array
    """When each command was sent [steps] since the start of each window. Shape: (windows, commands)."""
    values: Array
    """Shape: (commands, controls)."""
    window: Ints
    """Of each world. Shape: (n,)."""
    ahead: Array = field(default_factory=lambda: np.zeros((2, 0, 0)))
    """Velocity and torque fed forward with each command. Shape: (2, commands or 0, controls)."""
    gains: Array = field(default_factory=lambda: np.zeros((0, 2, 0)))
    """How far each shifts a command, in each world. Shape: (n, 2, controls)."""


class CommandPath:
    """Commands of n worlds on their way to the actuators, as the `path.` fields of those worlds say."""

    def __init__(self, twin: Twin, n: int, high: Mapping[str, float]):
        """high: quantity to the largest value that it may take."""
        model, nu = twin.model, twin.model.nu
        self._timestep = model.opt.timestep
        self._joint, self._servo = np.zeros(nu, dtype=int), np.zeros(nu)
        self.limits = np.repeat([[-np.inf], [np.inf]], nu, axis=1)
        """Least and greatest command. Shape: (2, controls)."""
        for i, d in enumerate(twin.drives):
            self._joint[d.control], self._servo[d.control] = i, is_position_servo(model, d.actuator)
        for a in np.flatnonzero(model.actuator_ctrllimited):
            self.limits[:, model.actuator_ctrladr[a]] = model.actuator_ctrlrange[a]
        longest = high.get("latency.action", 0.0) + high.get("latency.jitter", 0.0)
        under_way = (n, nu, math.ceil(longest / twin.control_dt) + 2)
        self._acts, self._values = np.zeros(under_way), np.zeros(under_way)
        self.control: Array = np.zeros((n, twin.substeps, nu))
        """What the actuators receive at each step of the last period. Shape: (n, substeps, controls)."""

    def reset(self, ids: Ints, command: Array, path: Mapping[str, Array]) -> Array:
        """Worlds have always been told a command (k, controls); what of it their actuators receive."""
        taken = self._taken(command, path) - self._zero(path)[ids]
        self._acts[ids], self._values[ids] = 0.0, taken[:, :, None]
        return taken

    def send(self, command: Array, path: Mapping[str, Array], rng: np.random.Generator) -> Array:
        """Send a command (n, controls); what the actuators receive in the period that follows, see `control`."""
        chance = rng.random((len(command), 2))
        late = self._by_control(in_steps(path["path.action"] + path["path.jitter"] * chance[:, :1], self._timestep))
        late[chance[:, 1] < path["path.drop"]] = np.inf
        received_live(self._acts, self._values, self._taken(command, path) - self._zero(path), late, self.control)
        return self.control

    def play(self, stream: Stream, path: Mapping[str, Array], first: int, steps: int) -> Array:
        """What the actuators receive from a stream at some steps, (n, steps, controls); nothing is lost on the way."""
        # jitter delays by half of it on average
        late = self._by_control(in_steps(path["path.action"] + path["path.jitter"] / 2, self._timestep))

        def received(values: Array) -> Array:
            out = np.empty((len(late), steps, len(self._joint)))
            received_from_log(stream.sent, values, stream.window, late, first, out)
            return out

        control = received(self._taken(stream.values, path))
        control -= self._zero(path)[:, None]
        for ahead, gain in zip(stream.ahead, stream.gains.swapaxes(0, 1), strict=True) if stream.ahead.size else ():
            control += gain[:, None] * received(ahead)
        return control

    def _taken(self, command: Array, path: Mapping[str, Array]) -> Array:
        """Commands (k, controls) as the firmware takes them: rounded as in any world, and limited."""
        quantum = self._by_control(path["path.quantum_cmd"][:1]) * self._servo
        return np.clip(rounded(command, quantum), *self.limits)

    def _zero(self, path: Mapping[str, Array]) -> Array:
        """What the zero of a servo's encoder takes off its commands. Shape: (n, controls)."""
        return self._by_control(path["path.offset_q"]) * self._servo

    def _by_control(self, values: Array) -> Array:
        """Values by joint (k, joints) as values by control; 0 where there are no joints."""
        return np.ascontiguousarray(values[:, self._joint]) if values.shape[1] else np.zeros((len(values), len(self._joint)))


def settled_activation(twin: Twin, received: Array, qpos: Array) -> Array:
    """The states of actuators of a robot that has always received the same. Shapes: (k, controls), (k, nq) to (k, states)."""
    model, key, kind = twin.model, home_key(twin.model), twin.model.actuator_dyntype
    out = np.tile(np.zeros(model.na) if key is None else model.key_act[key], (len(received), 1))
    for a in np.flatnonzero(np.isin(kind, _FILTERS)):
        out[:, model.actuator_actadr[a]] = received[:, model.actuator_ctrladr[a]]
    for d in twin.drives:
        if kind[d.actuator] == mujoco.mjtDyn.mjDYN_INTEGRATOR:
            out[:, model.actuator_actadr[d.actuator]] = qpos[:, d.qpos]
    return out


_FILTERS = (int(mujoco.mjtDyn.mjDYN_FILTER), int(mujoco.mjtDyn.mjDYN_FILTEREXACT))
