"""How well a fit predicts logs in the full model, beside the baselines that any method has to beat."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from gapless.arrays import Array
from gapless.identify.per_joint.inverse_dynamics import Trajectory
from gapless.logs import Log
from gapless.measure import (
    BROKEN,
    FREE_WINDOW,
    Split,
    Stretch,
    Trace,
    Windows,
    best_delays,
    holds,
    mean_by,
    outlying,
    runs,
    traces,
    windows,
)
from gapless.twin import Twin


@dataclass(frozen=True)
class Scores:
    """Root mean square position error over all samples, mean over joints [rad]; NaN where there is no such prediction, and
    infinite where physics broke."""

    command: float
    """The commanded position as prediction."""
    delay: float
    """The command, as late as fits each joint best."""
    given: float
    """The model as given."""
    fit: float


@dataclass(frozen=True)
class Scorer:
    """Predicts the same stretches of logs whenever it is asked; what a twin needs for that is made once."""

    joints: tuple[str, ...]
    logs: Sequence[Log]
    split: Split
    stretches: Sequence[Stretch]
    trajectories: Sequence[Trajectory]
    """Those stretches as the joints felt them; empty for a floating base."""
    given: Twin
    """The model as given."""
    _made: dict[int, Windows] = field(default_factory=dict)

    def __call__(self, twin: Twin, values: Array, halves: Array, zeros: Mapping[int, Array]) -> list[Trace]:
        """Predict every log.

        Args:
            twin: the model.
            values: the fit to everything, over the twin's space.
            halves: fits to the first half of the blocks and to the second. Shape: (2, parameters).
            zeros: encoder zeros of single logs, by their number [rad].
        """
        data = self._data(twin)
        vectors = np.tile(np.stack([values, *halves]), (len(data.logs), 1, 1))
        if zeros:
            offsets = [twin.space.names.index(f"offset.encoder/{j}") for j in twin.joints]
            vectors[:, :, offsets] += np.array([zeros.get(i, np.zeros(len(twin.joints))) for i in data.logs])[:, None]
        fitted, *by_half = data.measured("q") + data.errors(twin.space.clip(vectors))
        heldout = self.split.held_out(data.block, *by_half)
        return traces(data, self._as_given, fitted, heldout, self._load(data), self._delays)

    @cached_property
    def _as_given(self) -> Array:
        """What the model as given predicts. Shape: (samples, joints)."""
        data = self._data(self.given)
        return data.measured("q") + data.errors(self.given.space.nominal[None])[0]

    @cached_property
    def _delays(self) -> Array | None:
        return best_delays(self.logs, self.joints).get("q")

    def _data(self, twin: Twin) -> Windows:
        """The stretches in a twin."""
        if id(twin) not in self._made:
            if holds(twin):
                data = runs(twin, self.logs, self.split, self.stretches, rate=np.inf)
            else:
                blocks = self.split.blocks(self.stretches)
                data = windows(twin, self.logs, self.split, blocks, FREE_WINDOW, rate=np.inf)
            self._made[id(twin)] = data
        return self._made[id(twin)]

    def _load(self, data: Windows) -> Array | None:
        """On the drives [N m]. Shape: (samples, joints)."""
        if not self.trajectories:
            return None
        out = np.empty((len(data.log), len(self.joints)))
        for place, i in enumerate(data.logs):
            mine, parts = data.log == place, [c for c in self.trajectories if c.log == i]
            since, load = (np.concatenate([getattr(c, name) for c in parts]) for name in ("since", "load"))
            out[mine] = np.column_stack([np.interp(data.clock[mine], since, column) for column in load.T])
        return out


def scores(traced: Sequence[Trace], fit: str) -> Scores:
    """Over all logs; `fit` is `twin` or `heldout`."""

    def pooled(prediction: str) -> float:
        error = np.concatenate([t.error(prediction) for t in traced])
        broke = np.isclose(error, BROKEN, rtol=0, atol=1e-9).all(axis=1).any()
        return np.inf if broke else float(np.sqrt((error**2).mean(axis=0)).mean())

    return Scores(pooled("command"), pooled("delayed"), pooled("given"), pooled(fit))


def by_block(traced: Sequence[Trace], prediction: str, blocks: int) -> Array:
    """Mean squared error of each block and joint, NaN where nothing was measured. Shape: (blocks, joints)."""
    square = np.concatenate([t.error(prediction) for t in traced]) ** 2
    return mean_by(np.concatenate([t.block for t in traced]), square, blocks)


def missed(twin: Twin, traced: Sequence[Trace], blocks: int) -> dict[str, list[int]]:
    """Joint to the blocks that the fit misses by far; of a robot on its feet none, since its joints move together."""
    if twin.floating:
        return {}
    bad = [outlying(e) for e in by_block(traced, "twin", blocks).T]
    return {j: np.flatnonzero(b).tolist() for j, b in zip(twin.joints, bad, strict=True) if b.any()}
