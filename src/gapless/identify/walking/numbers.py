"""The numbers of a robot that walks: those that are fitted, and all others that may be off and cause part of what is seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gapless.arrays import Array
from gapless.identify.evidence import MISMATCH, SELDOM
from gapless.identify.full_model.standing import tied
from gapless.identify.uncertainty import WRONG
from gapless.robots import base_joint
from gapless.twin import Space, Twin, quantities

CENTRES = ("inertia.com_x", "inertia.com_y", "inertia.com_z")


@dataclass(frozen=True)
class Numbers:
    """Vectors over it are scaled: first what is fitted, then for each other quantity by how much all of it is off."""

    twin: Twin
    space: Space
    """What is fitted."""
    others: tuple[tuple[int, ...], ...]
    """Parameters of each other quantity, as columns of the twin's space."""

    @classmethod
    def of(cls, twin: Twin, known: Mapping[str, float]) -> Numbers:
        """All that is fitted to a robot on its feet, and its base's centre of mass, less what is known."""
        kinds = [quantity for rung in quantities.standing_rungs().values() for quantity in rung]
        space, base, every = tied(twin, kinds, known), base_joint(twin.model), twin.space.parameters
        link = "" if base is None else twin.model.body(int(twin.model.jnt_bodyid[base])).name
        centres = tuple(p for p in every if p.name in {f"{c}/{link}" for c in CENTRES} - set(known))
        space = Space(space.parameters + centres, space.fixed)
        own = {n for p in space.parameters for n in p.members or (p.name,)}
        taken = own | set(known) | {other for n in own for other in quantities.stood_for(n)}
        rest: dict[str, list[int]] = {}
        for i, p in enumerate(every):
            if p.name not in taken and quantities.of(p.name).repeatable and quantities.cause(p.name) is not None:
                rest.setdefault(p.quantity, []).append(i)
        return cls(twin, space, tuple(map(tuple, rest.values())))

    @property
    def prior(self) -> Array:
        """Standard deviations about 0 before anything was measured, as in `uncertainty`. Shape: (numbers,)."""
        return np.array([MISMATCH] * len(self.space) + [np.sqrt(SELDOM) * WRONG] * len(self.others))

    def within(self, numbers: Array) -> Array:
        """The nearest ones within the bounds."""
        k = len(self.space)
        return np.concatenate([np.clip(numbers[..., :k], *self.space.bounds), numbers[..., k:]], axis=-1)

    def sample(self, centre: Array, covariance: Array, n: int, rng: np.random.Generator) -> Array:
        """Draw from a Gaussian, mirrored where it leaves the bounds."""
        drawn, k = rng.multivariate_normal(centre, covariance, n, method="cholesky"), len(self.space)
        drawn[:, :k] = self.space.mirrored(drawn[:, :k])
        return drawn

    def robots(self, numbers: Array, rng: np.random.Generator | None = None) -> Array:
        """Robots with these numbers, over the twin's space; if there is chance, all is off within its tolerance besides.

        Joints that share a number are then near it, each with its own. Shape: (n, parameters).
        """
        every, k = self.twin.space, len(self.space)
        at = every.to_scaled(self.twin.expand(self.space.from_scaled(numbers[:, :k]), self.space))
        for column, members in enumerate(self.others, start=k):
            at[:, members] += numbers[:, column : column + 1]
        if rng is not None:
            exact = {p.name for p in self.space.parameters if not p.members} | set(self.space.fixed)
            at += np.where([n in exact for n in every.names], 0.0, rng.uniform(*every.tolerated, at.shape))
        return every.clip(every.from_scaled(at))
