"""Worlds: N copies of a twin drawn from a belief and stepped together at the control rate."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import mujoco
import mujoco.batch
import numpy as np
from numpy.typing import ArrayLike, NDArray

from gapless.arrays import Array
from gapless.errors import BadInput, unknown
from gapless.robots import base_joint, home_key, imu_of, is_position_servo
from gapless.twin import Belief, Point, Twin, callback
from gapless.worlds import path as _path
from gapless.worlds.quiet import quiet
from gapless.worlds.sense import Sense

Ids = NDArray[np.int64]
_SET_CONST = frozenset(mujoco.MjModel._setconst_inputs)


@dataclass(frozen=True)
class Failure:
    """A world that diverged and was reset."""

    world: int
    time: float
    """Since the world's last reset [s]."""
    reason: str


class Worlds:
    """N worlds of one twin, each with its own parameters.

        worlds = Worlds(Twin.load("quadruped"), 512, belief, np.random.default_rng(0))
        readings = worlds.reset()
        for _ in range(500):
            readings = worlds.step(policy(readings))       # {"q": (n, joints), "dq": ..., "quat": ..., "gyro": ...}

    The same seed gives the same bits at any number of threads, and what happens to one world never changes another.
    """

    def __init__(
        self,
        twin: Twin,
        n: int,
        belief: Belief | None = None,
        rng: np.random.Generator | None = None,
        signals: Sequence[str] = (),
        threads: int = 0,
    ):
        """Build the worlds and reset them all.

        Args:
            twin: the model and its mechanisms.
            n: number of worlds.
            belief: what parameters are drawn from; the nominal point unless given.
            rng: source of all randomness.
            signals: what is read each period: "q", "dq", "tau", "quat", "gyro", "acc"; joints and IMU unless given.
            threads: 0 for one per core.
        """
        if n < 1:
            raise BadInput(f"at least one world is needed, not {n}")
        belief = Point(twin.space, twin.space.nominal) if belief is None else belief
        twin.check_belief(belief)
        self.twin, self.n, self.belief = twin, n, belief
        rng = np.random.default_rng(0) if rng is None else rng
        self._root = int(rng.integers(2**63))
        self._noise, self._commands = rng.spawn(2)
        self._signals = tuple(signals) or (("q", "dq", "quat", "gyro") if imu_of(twin.model) else ("q", "dq"))

        model = copy.copy(twin.model)
        # the command path limits commands (before the encoder offset is taken off) and delays them
        model.actuator_ctrllimited[:] = 0
        model.actuator_delay[:] = 0
        self._fit(model)
        if callback.needed(model):
            callback.install()
        self.batch = mujoco.batch.Batch(model, n, threads)
        self.qpos: Array = self.batch.bind("qpos")
        """Live state: a write is the world's state at its next step. Shape: (n, nq)."""
        self.qvel: Array = self.batch.bind("qvel")
        self._expanded: dict[str, Array] = {}
        self.path: dict[str, Array] = {k: np.repeat(v[None], n, axis=0) for k, v in twin.path.items()}
        self.values: Array = np.tile(belief.mean(), (n, 1))
        """Each world's parameters, over `belief.space`. Shape: (n, parameters)."""
        self._episode = np.zeros(n, dtype=np.int64)
        self._drawn = np.zeros(n, dtype=bool)
        self._next_values, self._next = np.empty_like(self.values), dict[str, Array]()
        self.failures: list[Failure] = []
        """Worlds that diverged in the last step; they have been reset with new parameters."""
        self.failed = np.zeros(n, dtype=bool)

        high = {p.name.split("/")[0]: p.high for p in twin.space.parameters}
        late = high.get("latency.action", 0.0) + high.get("latency.jitter", 0.0)
        self._ring = math.ceil(late / twin.control_dt) + 2
        self._sent = np.zeros((n, self._ring, model.nu))
        self._late = np.zeros((n, self._ring, model.nu))
        self._held = np.zeros((n, model.nu))
        self._newest = 0
        self._control = np.zeros((n, twin.substeps, model.nu))
        self.sense = Sense(twin, n, self._signals, high)
        self.drive_of = np.zeros(model.nu, dtype=int)
        """Column of the path fields for each control. Shape: (controls,)."""
        self.servo = np.zeros(model.nu)
        """1 where a control is a position target, else 0."""
        for i, d in enumerate(twin.drives):
            self.drive_of[twin.model.actuator_ctrladr[d.actuator]] = i
            self.servo[twin.model.actuator_ctrladr[d.actuator]] = is_position_servo(twin.model, d.actuator)
        self.limits = _control_limits(twin.model)
        self._act = _Activation(twin)
        self.home, self.home_command = twin.home, twin.home_command
        self.reset()

    def __len__(self) -> int:
        return self.n

    @property
    def joints(self) -> tuple[str, ...]:
        """The columns of joint signals."""
        return self.twin.joints

    @property
    def readings(self) -> dict[str, Array]:
        """The latest readings by signal. Shape of each: (n, columns)."""
        return self.sense.readings

    def step(self, command: ArrayLike) -> dict[str, Array]:
        """Advance every world by one control period under a command (n, controls); return the readings at its end.

        A world whose physics fails (or whose command is not finite) is reset with new parameters and listed in `failures`.
        """
        command = np.asarray(command, float)
        if command.shape not in ((self.n, self.batch.model.nu), (self.batch.model.nu,)):
            raise BadInput(f"expected commands of shape ({self.n}, {self.batch.model.nu}), got {command.shape}")
        command = np.broadcast_to(command, (self.n, self.batch.model.nu))
        self.failures = []
        self.failed[:] = ~np.isfinite(command).all(axis=1)
        reasons = dict.fromkeys(np.flatnonzero(self.failed).tolist(), "the command was not finite")
        if reasons:
            command = np.where(self.failed[:, None], self.home_command, command)
        self._send(command)
        try:
            self._roll()
        except mujoco.batch.SimulationError as error:
            self.failed[error.ids] = True
            reasons |= {int(i): self.batch.error(int(i)) for i in error.ids}
        warned = self.batch.warning[:, :, 1].any(axis=1)
        self.failed |= warned
        if self.failed.any():
            self._recover(reasons)
        self.sense.update(self.path, self._noise)
        return self.sense.readings

    def reset(
        self,
        ids: ArrayLike | None = None,
        qpos: ArrayLike | None = None,
        qvel: ArrayLike | None = None,
        command: ArrayLike | None = None,
        redraw: bool = True,
    ) -> dict[str, Array]:
        """Start worlds anew: home pose at rest unless given, with the path's history as if it had always been so.

        Args:
            ids: world numbers or a mask; all unless given.
            qpos: shape (k, nq) or (nq,).
            qvel: shape (k, nv) or (nv,).
            command: what the robot was told so far, shape (k, controls); holding home unless given.
            redraw: draw new parameters from the belief.
        """
        ids = self._ids(ids)
        if not len(ids):
            return self.sense.readings
        if redraw:
            self.redraw(ids)
        self.batch.reset(ids, stage=mujoco.mjtStage.mjSTAGE_NONE.value)
        self.qpos[ids] = self.home if qpos is None else qpos
        self.qvel[ids] = 0.0 if qvel is None else qvel
        held = self._shape(
            np.broadcast_to(self.home_command if command is None else command, (len(ids), self._sent.shape[2])), ids
        )
        self._sent[ids] = held[:, None]
        self._held[ids] = held
        if self.batch.model.na:
            self.batch.bind("act")[ids] = self._act.at(held, self.qpos[ids])
        self._late[ids] = 0.0
        self.sense.reset(ids, self.qpos[ids], self.qvel[ids], self.path)
        return self.sense.readings

    def redraw(self, ids: ArrayLike | None = None) -> None:
        """Draw new parameters from the belief; each world draws from a stream of its own."""
        ids = self._ids(ids)
        if isinstance(self.belief, Point):
            self.write(self.belief.values, ids)
            return
        if not self._drawn[ids].all():  # for all that have used theirs: many worlds take little longer than one
            self._draw(np.flatnonzero(~self._drawn))
        self._drawn[ids] = False
        self.values[ids] = self._next_values[ids]
        self.put({name: array[ids] for name, array in self._next.items()}, ids)

    def _draw(self, ids: Ids) -> None:
        """Draw the parameters of worlds for when they start anew, and work out what they mean for the model."""
        for i in ids:
            key = np.array([self._root, i], dtype=np.uint64)
            stream = np.random.Philox(key=key, counter=np.array([0, 0, 0, self._episode[i]], dtype=np.uint64))
            self._next_values[i] = self.belief.sample(1, np.random.Generator(stream))[0]
        self._episode[ids] += 1
        self._drawn[ids] = True
        for name, array in self.twin.fields(self._next_values[ids], self.belief.space).items():
            if name not in self._next:
                self._next[name] = np.empty((self.n, *array.shape[1:]))
            self._next[name][ids] = array

    def write(self, values: ArrayLike, ids: ArrayLike | None = None) -> None:
        """Set parameters (k, parameters) over `belief.space`; takes effect at the next step."""
        ids = self._ids(ids)
        values = np.broadcast_to(np.asarray(values, float), (len(ids), len(self.belief.space)))
        if not len(ids):
            return
        fields = self.twin.fields(values, self.belief.space)
        self.values[ids] = values
        self.put(fields, ids)

    def push(self, velocity: ArrayLike, ids: ArrayLike | None = None) -> None:
        """Kick the floating base: add a velocity (k, 3) or (3,) in the world's frame [m/s]."""
        base = base_joint(self.twin.model)
        if base is None:
            raise BadInput(f"{self.twin.name} has a fixed base, which a push does not move")
        at = int(self.twin.model.jnt_dofadr[base])
        self.qvel[self._ids(ids), at : at + 3] += np.asarray(velocity, float)

    def pull(self, body: str, force: ArrayLike, ids: ArrayLike | None = None) -> None:
        """Pull at a body's centre of mass with a force (k, 3) or (3,) [N] until the next pull or reset."""
        model = self.twin.model
        names = [model.body(b).name for b in range(1, model.nbody)]
        if body not in names:
            raise unknown("link", body, names)
        self.batch.bind("xfrc_applied")[self._ids(ids), model.body(body).id, :3] = force

    def _send(self, command: Array) -> None:
        """Put a command into the path."""
        self._newest = (self._newest + 1) % self._ring
        arrived = np.isfinite(self._late[:, self._newest])
        self._held = np.where(arrived, self._sent[:, self._newest], self._held)
        self._sent[:, self._newest] = self._shape(command, slice(None))
        path, column = self.path, self.drive_of
        chance = self._commands.random((self.n, 2))
        if self.twin.drives:
            late = path["path.action"] + path["path.jitter"] * chance[:, :1]
            self._late[:, self._newest] = _path.in_steps(late, self.twin.model.opt.timestep)[:, column]
        self._late[chance[:, 1] < path["path.drop"], self._newest] = np.inf
        _path.deliver(self._sent, self._late, self._held, self._newest, self.twin.substeps, self._control)

    def _shape(self, command: Array, ids: Ids | slice) -> Array:
        """A command as the firmware takes it: rounded, limited, and off by the encoder's zero."""
        if not self.twin.drives:
            return np.clip(command, *self.limits)
        quantum = self.path["path.quantum_cmd"][ids][:, self.drive_of] * self.servo
        offset = self.path["path.offset_q"][ids][:, self.drive_of] * self.servo
        return _path.firmware(command, quantum, self.limits) - offset

    def _roll(self) -> None:
        """Step one period; what the engine warns of is counted in `batch.warning` and reported as failures, not printed."""
        record = self.sense.next_period()
        with quiet():
            self.batch.rollout(self.twin.substeps, self._control, record=tuple(record), out=record)

    def _recover(self, reasons: dict[int, str]) -> None:
        """Report and restart the worlds that failed."""
        ids = np.flatnonzero(self.failed)
        times = self.batch.bind("time")
        for i in ids:
            kinds = [mujoco.mjtWarning(k).name for k in np.flatnonzero(self.batch.warning[i, :, 1])]
            reason = reasons.get(int(i)) or ", ".join(_WARNINGS.get(k, k) for k in kinds)
            self.failures.append(Failure(int(i), float(times[i]), reason))
        self.batch.warning[ids] = 0
        self.reset(ids)

    def put(self, fields: Mapping[str, Array], ids: Ids) -> None:
        """Write fields of worlds; a field becomes per-world only once a world differs from the model."""
        changed = set()
        for name, array in fields.items():
            if name in self.path:
                self.path[name][ids] = array
                continue
            if name not in self._expanded:
                if (array == self.twin.base(name)).all():
                    continue
                self._expanded[name] = self.batch.expand(name)
            self._expanded[name][ids] = array
            changed.add(name)
        if changed & _SET_CONST:
            self.batch.set_const(ids)
        self.sense.wire(self.path, ids)

    def _ids(self, ids: ArrayLike | None) -> Ids:
        if ids is None:
            return np.arange(self.n)
        ids = np.asarray(ids)
        if ids.dtype == bool:
            if ids.shape != (self.n,):
                raise BadInput(f"a mask of worlds must have shape ({self.n},), not {ids.shape}")
            return np.flatnonzero(ids)
        ids = np.unique(ids.astype(np.int64))
        if len(ids) and (ids[0] < 0 or ids[-1] >= self.n):
            raise BadInput(f"there are worlds 0 to {self.n - 1}, and no {ids[0] if ids[0] < 0 else ids[-1]}")
        return ids

    def _fit(self, model: mujoco.MjModel) -> None:
        """Refuse more worlds than memory holds."""
        one = self.twin.fields(self.twin.space.nominal)
        numbers = sum(v.size for v in one.values()) * 4 + mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_INTEGRATION.value)
        numbers += 40 * (model.nq + 2 * model.nv) + 3 * 16 * model.nu
        needed = 8 * numbers * self.n
        free = _free_memory()
        if needed > 0.9 * free:
            most = int(0.9 * free / (8 * numbers))
            raise BadInput(
                f"{self.n} worlds of {self.twin.name} need about {needed / 2**30:.1f} GB and {free / 2**30:.1f} GB are free: "
                f"use at most {most}"
            )


_WARNINGS = {
    "mjWARN_INERTIA": "the mass matrix became singular",
    "mjWARN_CONTACTFULL": "more contacts than the model has room for",
    "mjWARN_CNSTRFULL": "more constraints than the model has room for",
    "mjWARN_BADQPOS": "positions became infinite or undefined",
    "mjWARN_BADQVEL": "velocities became infinite or undefined",
    "mjWARN_BADQACC": "accelerations became infinite or undefined",
    "mjWARN_BADCTRL": "an actuator was given an infinite or undefined command",
}


def _control_limits(model: mujoco.MjModel) -> tuple[Array, Array]:
    low, high = np.full(model.nu, -np.inf), np.full(model.nu, np.inf)
    for a in range(model.nactuator):
        if model.actuator_ctrllimited[a]:
            at = int(model.actuator_ctrladr[a])
            low[at], high[at] = model.actuator_ctrlrange[a]
    return low, high


class _Activation:
    """Where actuators with a state of their own stand when a robot has always been told the same."""

    def __init__(self, twin: Twin):
        model = twin.model
        key = home_key(model)
        self._home = np.zeros(model.na) if key is None else model.key_act[key].copy()
        self._filters: list[tuple[int, int]] = []  # place of the state, of the control
        self._integrators: list[tuple[int, int]] = []  # place of the state, of the position
        drive_of = {d.actuator: d for d in twin.drives}
        for a in range(model.nactuator):
            at, kind = int(model.actuator_actadr[a]), int(model.actuator_dyntype[a])
            if kind in _FILTERS:
                self._filters.append((at, int(model.actuator_ctrladr[a])))
            elif kind == int(mujoco.mjtDyn.mjDYN_INTEGRATOR) and a in drive_of:
                self._integrators.append((at, drive_of[a].qpos))

    def at(self, held: Array, qpos: Array) -> Array:
        """Shape: (k, states)."""
        out = np.tile(self._home, (len(held), 1))
        for at, control in self._filters:
            out[:, at] = held[:, control]
        for at, place in self._integrators:
            out[:, at] = qpos[:, place]
        return out


_FILTERS = (int(mujoco.mjtDyn.mjDYN_FILTER), int(mujoco.mjtDyn.mjDYN_FILTEREXACT))


def _free_memory() -> float:
    """Bytes of memory that can still be used."""
    import os

    try:
        with open("/proc/meminfo") as f:
            return next(int(line.split()[1]) * 1024 for line in f if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
