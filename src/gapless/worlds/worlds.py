"""Worlds: N copies of a twin drawn from a belief and stepped together at the control rate."""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from gapless.arrays import Array, Bools, Ints
from gapless.errors import BadInput, unknown
from gapless.files import available_memory
from gapless.robots import base_joint, imu_of
from gapless.twin import Belief, Fields, Point, Twin, callback
from gapless.worlds.command_path import CommandPath, Stream, settled_activation
from gapless.worlds.engine import BatchEngine, MakeEngine
from gapless.worlds.rollout import Chunk, Failure, roll
from gapless.worlds.sense import Sense, age_of

CHUNK = 4e6  # numbers: how much of a long run is recorded at a time


class Worlds:
    """N worlds of one twin, each with its own parameters.

        worlds = Worlds(Twin.load("quadruped"), 512, belief, np.random.default_rng(0))
        readings = worlds.reset()
        for _ in range(500):
            readings = worlds.step(policy(readings))       # {"q": (n, joints), "dq": ..., "quat": ..., "gyro": ...}
            worlds.reset(worlds.failed)

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
        engine: MakeEngine = BatchEngine,
    ):
        """Build the worlds and reset them all.

        Args:
            twin: the model and its mechanisms.
            n: number of worlds.
            belief: what parameters are drawn from; the nominal point unless given.
            rng: source of all randomness.
            signals: what is read each period: "q", "dq", "tau", "quat", "gyro", "acc"; joints and IMU unless given.
            threads: 0 for one per core.
            engine: what steps the worlds.
        """
        if n < 1:
            raise BadInput(f"at least one world is needed, not {n}")
        belief = Point(twin.space, twin.space.nominal) if belief is None else belief
        twin.accepts(belief.space)
        self.twin, self.n, self.belief = twin, n, belief
        rng = np.random.default_rng(0) if rng is None else rng
        self._root = int(rng.integers(2**63))
        self._noise, self._chance = rng.spawn(2)
        model = copy.copy(twin.model)
        # the command path limits commands (before the encoder offset is taken off) and delays them
        model.actuator_ctrllimited[:] = 0
        model.actuator_delay[:] = 0
        self._check_memory(model)
        callback.install_for(model)
        self.engine = engine(model, n, threads)
        self.qpos, self.qvel = self.state("qpos"), self.state("qvel")
        self.path: dict[str, Array] = {k: np.repeat(v[None], n, axis=0) for k, v in twin.path.items()}
        self.values: Array = np.tile(belief.mean(), (n, 1))
        """Each world's parameters, over `belief.space`. Shape: (n, parameters)."""
        self._episode, self._drawn = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=bool)
        self._next_values, self._next_fields = np.empty_like(self.values), dict[str, Array]()
        self.time: Array = np.zeros(n)
        """Since each world's last reset [s]. Shape: (n,)."""
        self.failures: list[Failure] = []
        """Worlds whose physics broke in the last step."""
        high = {p.quantity: p.high for p in twin.space.parameters}
        self.commands = CommandPath(twin, n, high)
        self.sense = Sense(twin, n, signals or (("q", "dq", "quat", "gyro") if imu_of(twin.model) else ("q", "dq")), high)
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
        """The latest readings by signal; yours to keep. Shape of each: (n, columns)."""
        return dict(self.sense.readings)

    @property
    def failed(self) -> Bools:
        """Which worlds broke in the last step. Shape: (n,)."""
        out = np.zeros(self.n, dtype=bool)
        out[[f.world for f in self.failures]] = True
        return out

    @property
    def age(self) -> Array:
        """How old the reading of each joint is when it is taken [s]. Shape: (n, joints)."""
        return age_of(self.path)

    def state(self, field: str) -> Array:
        """A live view of a field of the engine's state (MjData), (n, ...): a write is the state at the next step."""
        return self.engine.state(field)

    def step(self, command: ArrayLike) -> dict[str, Array]:
        """Advance every world by one control period under a command (n, controls); return the readings at its end.

        A world whose physics breaks (or whose command is not finite) is listed in `failures` and put back home with the
        parameters that it has: `reset` it to draw new ones.
        """
        command, shape = np.asarray(command, float), (self.n, self.engine.model.nu)
        if command.shape not in (shape, shape[1:]):
            raise BadInput(f"expected commands of shape {shape}, got {command.shape}")
        command = np.broadcast_to(command, shape)
        finite = np.isfinite(command).all(axis=1)
        if not finite.all():
            command = np.where(finite[:, None], command, self.home_command)
        self.failures = []
        control = self.commands.send(command, self.path, self._chance)
        broken = roll(self.engine, control, self.sense.next_period(), self.twin.force(self.values, self.belief.space))
        broken |= dict.fromkeys(np.flatnonzero(~finite).tolist(), (0, "the command was not finite"))
        self._report(broken, 0)
        self.time += self.twin.control_dt
        if broken:
            self.reset(sorted(broken), redraw=False)
        self.sense.update(self.path, self._noise)
        return self.readings

    def play(
        self, stream: Stream, steps: int, fields: Sequence[str], changes: Mapping[int, Callable[[], None]] | None = None
    ) -> Iterator[Chunk]:
        """Run worlds under recorded commands, without resets, and give what happened a chunk at a time.

        Args:
            stream: what the worlds are told.
            steps: number of physics steps.
            fields: of the engine's state to record.
            changes: step to what is to be done before it, such as writing other gains.
        """
        model, changes = self.engine.model, changes or {}
        self.failures = []
        before = {f: self.state(f).copy() if f in ("qpos", "qvel") else np.zeros((self.n, model.nv)) for f in fields}
        width = model.nu + sum(v.shape[1] for v in before.values())
        longest, first = max(1, int(CHUNK / (self.n * width))), 0
        while first < steps:
            changes.get(first, lambda: None)()
            end = min([first + longest, steps, *(s for s in changes if s > first)])
            control = self.commands.play(stream, self.path, first, end - first)
            record = {f: np.empty((self.n, end - first, v.shape[1])) for f, v in before.items()}
            self._report(roll(self.engine, control, record, self.twin.force(self.values, self.belief.space)), first)
            yield Chunk(first, before, record)
            before = {f: v[:, -1] for f, v in record.items()}
            first = end

    def _report(self, broken: Mapping[int, tuple[int, str]], first: int) -> None:
        """List the worlds that broke, each in a step after the `first` ones since its reset, and why."""
        step = self.engine.model.opt.timestep
        self.failures += [Failure(w, float(self.time[w] + (first + k) * step), why) for w, (k, why) in sorted(broken.items())]

    def reset(
        self,
        ids: ArrayLike | None = None,
        qpos: ArrayLike | None = None,
        qvel: ArrayLike | None = None,
        command: ArrayLike | None = None,
        redraw: bool = True,
    ) -> dict[str, Array]:
        """Start worlds anew: home pose at rest unless given. Delay buffers are filled as if this state had always held.

        Args:
            ids: world numbers or a mask; all unless given.
            qpos: shape (k, nq) or (nq,).
            qvel: shape (k, nv) or (nv,).
            command: what the robot was told so far, shape (k, controls); holding home unless given.
            redraw: draw new parameters from the belief.
        """
        ids = self._ids(ids)
        if not len(ids):
            return self.readings
        if redraw:
            self.redraw(ids)
        self.engine.reset(ids)
        self.time[ids] = 0.0
        self.qpos[ids] = self.home if qpos is None else qpos
        self.qvel[ids] = 0.0 if qvel is None else qvel
        held = np.broadcast_to(self.home_command if command is None else command, (len(ids), self.engine.model.nu))
        received = self.commands.reset(ids, held, self.path)
        if self.engine.model.na:
            self.state("act")[ids] = settled_activation(self.twin, received, self.qpos[ids])
        self.sense.reset(ids, self.qpos[ids], self.qvel[ids], self.path)
        return self.readings

    def redraw(self, ids: ArrayLike | None = None) -> None:
        """Draw new parameters from the belief: the only place where worlds do. Each draws from a random stream of its own.

        What the belief is, a training's preset says (`learn.presets`); a stand-in is one world of a point.
        """
        ids = self._ids(ids)
        if isinstance(self.belief, Point):
            self.write(self.belief.values, ids)
            return
        if not self._drawn[ids].all():  # for all that have used theirs: many worlds take little longer than one
            self._draw(np.flatnonzero(~self._drawn))
        self._drawn[ids] = False
        self._put(self._next_values[ids], {name: array[ids] for name, array in self._next_fields.items()}, ids)

    def _draw(self, ids: Ints) -> None:
        """Draw the parameters of worlds for when they start anew, and work out what they mean for the model."""
        for i in ids:
            key = np.array([self._root, i], dtype=np.uint64)
            stream = np.random.Philox(key=key, counter=np.array([0, 0, 0, self._episode[i]], dtype=np.uint64))
            self._next_values[i] = self.belief.sample(1, np.random.Generator(stream))[0]
        self._episode[ids] += 1
        self._drawn[ids] = True
        for name, array in self.twin.fields(self._next_values[ids], self.belief.space).items():
            if name not in self._next_fields:
                self._next_fields[name] = np.empty((self.n, *array.shape[1:]))
            self._next_fields[name][ids] = array

    def write(self, values: ArrayLike, ids: ArrayLike | None = None, edit: Callable[[Fields], None] | None = None) -> None:
        """Set parameters (k, parameters) over `belief.space`; takes effect at the next step.

        edit: changes the fields that the parameters give, in place, before they are written.
        """
        ids = self._ids(ids)
        values = np.broadcast_to(np.asarray(values, float), (len(ids), len(self.belief.space)))
        if not len(ids):
            return
        fields = self.twin.fields(values, self.belief.space)
        if edit is not None:
            edit(fields)
        self._put(values, fields, ids)

    def _put(self, values: Array, fields: Mapping[str, Array], ids: Ints) -> None:
        """Write parameters of worlds and the fields that they give."""
        self.values[ids] = values
        for name in self.path.keys() & fields.keys():
            self.path[name][ids] = fields[name]
        self.engine.put({name: array for name, array in fields.items() if name not in self.path}, ids)
        self.sense.wire(self.path, ids)

    def push(self, velocity: ArrayLike, ids: ArrayLike | None = None) -> None:
        """Kick the floating base: add a velocity (k, 3) or (3,) in the world's frame [m/s]."""
        base = base_joint(self.twin.model)
        if base is None:
            raise BadInput(f"{self.twin.name} has a fixed base, which a push does not move")
        first = int(self.twin.model.jnt_dofadr[base])
        self.qvel[self._ids(ids), first : first + 3] += np.asarray(velocity, float)

    def pull(self, body: str, force: ArrayLike, ids: ArrayLike | None = None) -> None:
        """Pull at a body's centre of mass with a force (k, 3) or (3,) [N] until the next pull or reset."""
        model = self.twin.model
        names = [model.body(b).name for b in range(1, model.nbody)]
        if body not in names:
            raise unknown("link", body, names)
        self.state("xfrc_applied")[self._ids(ids), model.body(body).id, :3] = force

    def _ids(self, ids: ArrayLike | None) -> Ints:
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

    def _check_memory(self, model: mujoco.MjModel) -> None:
        """Refuse more worlds than memory holds."""
        fields = self.twin.fields(self.twin.space.nominal)
        numbers = 4 * sum(v.size for v in fields.values()) + 40 * (model.nq + 2 * model.nv) + 3 * 16 * model.nu
        each = 8 * (numbers + mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_INTEGRATION.value))
        free = 0.9 * available_memory()
        if each * self.n > free:
            raise BadInput(
                f"{self.n} worlds of {self.twin.name} need about {each * self.n / 2**30:.1f} GB and {free / 2**30:.1f} GB are "
                f"free: use at most {int(free / each)}"
            )
