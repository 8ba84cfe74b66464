"""The engine: n copies of one model stepped together. Nothing outside this file knows which engine it is."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

import mujoco
import mujoco.batch
import numpy as np

from gapless.arrays import Array, Ints
from gapless.twin import field_of


class Engine(Protocol):
    """What `Worlds` needs of an engine. Made from a compiled model, a number of worlds and a number of threads (0: all)."""

    model: mujoco.MjModel

    def state(self, field: str) -> Array:
        """A live view of a field of MjData, (n, ...): a write to `qpos`, `qvel` ... is the state at the next step."""

    def field(self, name: str) -> Array:
        """A field of MjModel (or `opt.NAME`) as each world has it. Shape: (n, ...)."""

    def put(self, fields: Mapping[str, Array], ids: Ints) -> None:
        """Write model fields (k, ...) of worlds, given in ascending order."""

    def reset(self, ids: Ints) -> None:
        """Put worlds into the model's default state."""

    def roll(self, control: Array, record: Mapping[str, Array]) -> dict[int, str]:
        """Take a step of every world for each control (n, steps, nu); record fields of MjData after each, (n, steps, width).

        Returns:
            World to what broke in its physics. Its record repeats from there on, and its state is not to be used.
        """


MakeEngine = Callable[[mujoco.MjModel, int, int], Engine]


class BatchEngine:
    """`mujoco.batch`: a thread pool on the CPU, with the same bits at any number of threads."""

    def __init__(self, model: mujoco.MjModel, n: int, threads: int = 0):
        self.model = model
        self._batch = mujoco.batch.Batch(model, n, threads)
        self._expanded: dict[str, Array] = {}

    def state(self, field: str) -> Array:
        return np.asarray(self._batch.bind(field))

    def field(self, name: str) -> Array:
        each, shared = self._batch.expanded(name), field_of(self.model, name)
        return np.broadcast_to(shared, (self._batch.nsim, *shared.shape)) if each is None else each

    def put(self, fields: Mapping[str, Array], ids: Ints) -> None:
        # a field that is the same in all worlds stays shared, which is faster
        changed = [name for name in fields if name in self._expanded or (fields[name] != field_of(self.model, name)).any()]
        for name in changed:
            if name not in self._expanded:
                self._expanded[name] = self._batch.expand(name)
            self._expanded[name][ids] = fields[name]
        if _SET_CONST.intersection(changed):
            self._batch.set_const(ids)

    def reset(self, ids: Ints) -> None:
        self._batch.reset(ids, stage=mujoco.mjtStage.mjSTAGE_NONE.value)

    def roll(self, control: Array, record: Mapping[str, Array]) -> dict[int, str]:
        broken: dict[int, str] = {}
        with quiet():
            try:
                self._batch.rollout(control.shape[1], control, record=tuple(record), out=dict(record))
            except mujoco.batch.SimulationError as error:
                broken = {int(i): self._batch.error(int(i)) for i in error.ids}
        counts = self._batch.warning[:, :, 1]
        if counts.any():
            for world in np.flatnonzero(counts.any(axis=1)).tolist():
                kinds = [mujoco.mjtWarning(k).name for k in np.flatnonzero(counts[world])]
                broken.setdefault(world, ", ".join(_WARNINGS.get(k, k) for k in kinds))
            self._batch.warning[:] = 0
        return broken


_SET_CONST = frozenset(mujoco.MjModel._setconst_inputs)
_WARNINGS = {
    "mjWARN_INERTIA": "the mass matrix became singular",
    "mjWARN_CONTACTFULL": "more contacts arose than the model has room for",
    "mjWARN_CNSTRFULL": "more constraints arose than the model has room for",
    "mjWARN_BADQPOS": "positions became infinite or undefined",
    "mjWARN_BADQVEL": "velocities became infinite or undefined",
    "mjWARN_BADQACC": "accelerations became infinite or undefined",
    "mjWARN_BADCTRL": "an actuator was given an infinite or undefined command",
}


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep MuJoCo from printing warnings and from writing MUJOCO_LOG.TXT: what it would say is reported in words."""
    log, silent = mujoco.MjLogConfig.get(), mujoco.MjLogConfig.get()
    silent.logto_console = silent.logto_file = False
    silent.set()
    try:
        yield
    finally:
        log.set()
