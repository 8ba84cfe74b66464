"""The stepping loop: all worlds, a chunk of steps at a time, recorded, with forces that may depend on the state."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from gapless.arrays import Array, Ints
from gapless.delay import in_steps, states_at
from gapless.twin import StepState
from gapless.worlds.engine import Engine

Force = Callable[[StepState], Array]


@dataclass(frozen=True)
class Failure:
    """A world whose physics broke."""

    world: int
    time: float
    """Since the world's last reset [s]."""
    reason: str


@dataclass(frozen=True)
class Chunk:
    """Some steps of all worlds."""

    first: int
    """Steps before it."""
    before: Mapping[str, Array]
    """Fields at its beginning. Shape of each: (n, width)."""
    record: Mapping[str, Array]
    """Fields after each of its steps. Shape of each: (n, steps, width)."""


def roll(engine: Engine, control: Array, record: Mapping[str, Array], force: Force | None) -> dict[int, tuple[int, str]]:
    """Step all worlds under control (n, steps, nu) and record fields after each step, (n, steps, width).

    A force (n, nv) is computed from the state before each step and acts besides what is in `qfrc_applied`.

    Returns:
        World to the step in which its physics broke, and why.
    """
    if force is None:
        moved = next(iter(record.values()))
        return {world: (_last_move(moved[world]), why) for world, why in engine.roll(control, record).items()}
    broken: dict[int, tuple[int, str]] = {}
    applied, qpos, qvel = (engine.state(f) for f in ("qfrc_applied", "qpos", "qvel"))
    others = applied.copy()
    once = {f: np.empty((len(v), 1, *v.shape[2:])) for f, v in record.items()}
    for step in range(control.shape[1]):
        applied[:] = others + force(StepState(qpos, qvel, control[:, step]))
        for world, why in engine.roll(control[:, step : step + 1], once).items():
            broken.setdefault(world, (step, why))
        for field, values in once.items():
            record[field][:, step] = values[:, 0]
    applied[:] = others
    return broken


def _last_move(record: Array) -> int:
    """The step from which on a record (steps, width) repeats."""
    moves = np.flatnonzero((record[1:] != record[:-1]).any(axis=1))
    return int(moves[-1]) + 1 if len(moves) else 0


class Sampler:
    """Reads one signal of all worlds at given times, as chunks go by."""

    def __init__(self, field: str, columns: Ints, age: Array, times: Array, window: Ints, timestep: float):
        """Choose what to read.

        Args:
            field: of MjData.
            columns: of it, shape (k,).
            age: of each reading when it is taken [s], shape (n, k).
            times: when readings are taken [s] since the start of each window, NaN at the end where there are fewer;
                shape (windows, readings).
            window: of each world, shape (n,).
            timestep: of the physics [s].
        """
        self.field, self._columns, self._window = field, columns, window
        with np.errstate(invalid="ignore"):  # NaN stays NaN
            self._age, self._times = (np.ascontiguousarray(in_steps(t, timestep)) for t in (age, times))
        self._taken = np.zeros(age.shape, dtype=np.int64)
        self.values: Array = np.full((len(window), times.shape[1], len(columns)), np.nan)
        """Shape: (n, readings, k)."""

    def take(self, chunk: Chunk) -> None:
        """Read what falls into a chunk."""
        before, record = chunk.before[self.field], chunk.record[self.field]
        states_at(before, record, self._columns, self._times, self._window, self._age, chunk.first, self._taken, self.values)
