"""The command path of worlds: commands are rounded, limited, shifted by the encoder's zero, and arrive late or never."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import mujoco
import numpy as np

from gapless.arrays import Array, Ints
from gapless.robots import home_key, is_position_servo
from gapless.twin import Twin
from gapless.worlds import path as _path


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
        self._timestep, self._substeps = model.opt.timestep, twin.substeps
        self._joint, self._servo = np.zeros(nu, dtype=int), np.zeros(nu)
        self.limits = np.repeat([[-np.inf], [np.inf]], nu, axis=1)
        """Least and greatest command. Shape: (2, controls)."""
        for i, d in enumerate(twin.drives):
            self._joint[d.control], self._servo[d.control] = i, is_position_servo(model, d.actuator)
        for a in np.flatnonzero(model.actuator_ctrllimited):
            self.limits[:, model.actuator_ctrladr[a]] = model.actuator_ctrlrange[a]
        longest = high.get("latency.action", 0.0) + high.get("latency.jitter", 0.0)
        self._ring = math.ceil(longest / twin.control_dt) + 2
        self._sent, self._late = np.zeros((n, self._ring, nu)), np.zeros((n, self._ring, nu))
        self._held = np.zeros((n, nu))
        self._newest = 0
        self.control: Array = np.zeros((n, twin.substeps, nu))
        """What the actuators receive at each step of the last period. Shape: (n, substeps, controls)."""

    def reset(self, ids: Ints, command: Array, path: Mapping[str, Array]) -> Array:
        """Worlds have always been told a command (k, controls); what of it their actuators receive."""
        self._held[ids] = self._firmware(command, path, ids)
        self._sent[ids] = self._held[ids][:, None]
        self._late[ids] = 0.0
        return self._held[ids]

    def send(self, command: Array, path: Mapping[str, Array], rng: np.random.Generator) -> Array:
        """Send a command (n, controls); what the actuators receive in the period that follows, see `control`."""
        self._newest = new = (self._newest + 1) % self._ring
        arrived = np.isfinite(self._late[:, new])
        self._held = np.where(arrived, self._sent[:, new], self._held)
        self._sent[:, new] = self._firmware(command, path, slice(None))
        chance = rng.random((len(command), 2))
        late = path["path.action"] + path["path.jitter"] * chance[:, :1]
        self._late[:, new] = self._by_control(_path.in_steps(late, self._timestep))
        self._late[chance[:, 1] < path["path.drop"], new] = np.inf
        _path.deliver(self._sent, self._late, self._held, new, self._substeps, self.control)
        return self.control

    def play(self, stream: Stream, path: Mapping[str, Array], first: int, steps: int) -> Array:
        """What the actuators receive from a stream at some steps, (n, steps, controls); nothing is lost on the way."""
        # jitter delays by half of it on average
        late = self._by_control(_path.in_steps(path["path.action"] + path["path.jitter"] / 2, self._timestep))
        quantum, offset = (self._by_control(path[f"path.{f}"]) * self._servo for f in ("quantum_cmd", "offset_q"))
        out = np.empty((len(offset), steps, len(self._joint)))
        of, shaped = (stream.sent, stream.values, stream.ahead, stream.window), (quantum, self.limits, offset, stream.gains)
        _path.hold(*of, late, *shaped, first, out)
        return out

    def _firmware(self, command: Array, path: Mapping[str, Array], ids: Ints | slice) -> Array:
        """Commands of worlds as the firmware takes them, against the joint's true zero."""
        quantum, offset = (self._by_control(path[f"path.{f}"][ids]) * self._servo for f in ("quantum_cmd", "offset_q"))
        return np.asarray(_path.firmware(command, quantum, *self.limits) - offset)

    def _by_control(self, values: Array) -> Array:
        """Values by joint (k, joints) as values by control; 0 where there are no joints."""
        return np.ascontiguousarray(values[:, self._joint]) if values.shape[1] else np.zeros((len(values), len(self._joint)))


class Activation:
    """The states of actuators that have one, for a robot that has always been told the same."""

    def __init__(self, twin: Twin):
        model, key = twin.model, home_key(twin.model)
        self._home = np.zeros(model.na) if key is None else model.key_act[key].copy()
        kind = {a: int(model.actuator_dyntype[a]) for a in range(model.nactuator)}
        place = {a: int(model.actuator_actadr[a]) for a in range(model.nactuator)}
        self._filters = [(place[a], int(model.actuator_ctrladr[a])) for a in kind if kind[a] in _FILTERS]
        self._integrators = [(place[d.actuator], d.qpos) for d in twin.drives if kind[d.actuator] == _INTEGRATOR]

    def __call__(self, received: Array, qpos: Array) -> Array:
        """Shapes: (k, controls) and (k, nq) to (k, states)."""
        out = np.tile(self._home, (len(received), 1))
        for state, control in self._filters:
            out[:, state] = received[:, control]
        for state, joint in self._integrators:
            out[:, state] = qpos[:, joint]
        return out


_INTEGRATOR = int(mujoco.mjtDyn.mjDYN_INTEGRATOR)
_FILTERS = (int(mujoco.mjtDyn.mjDYN_FILTER), int(mujoco.mjtDyn.mjDYN_FILTEREXACT))
