"""The last rung: what was fitted moves on while every other number of the model moves within its tolerance, all together.

For robots whose joints move fast at once, links that are a little heavier or longer than drawn matter as much as friction.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from gapless.arrays import Array, Bools
from gapless.identify.full_model.rungs import State
from gapless.identify.sensitivity import Sensitivity
from gapless.identify.uncertainty import MISMATCH

NAME = "+ all other numbers within their tolerances"
SHARES = (1.0, 0.5)  # of a step that are tried: slopes hold over a short way only


def nudged(state: State, every: Sensitivity, known: Mapping[str, float]) -> list[State]:
    """The same fit a step on, by several shares of the step: the most probable numbers of all logs and of either half.

    Args:
        state: the fit.
        every: how predictions depend on everything there.
        known: parameters that keep their values.
    """
    whole = state.twin.space
    places = [whole.names.index(name) for name in every.space.names]
    rows: list[Bools | slice] = [slice(None), every.first, ~every.first]
    starts = every.space.to_scaled(every.space.clip(np.stack([state.values, *state.halves])[:, places]))
    fitted = {name for p in state.space.parameters for name in p.members or (p.name,)}
    free = np.array([name in fitted for name in every.space.names])
    steps = np.stack([_step(every, free, part) for part in rows])
    out = []
    for share in SHARES:
        moved = every.space.clip(every.space.from_scaled(starts + share * steps))
        vectors = np.stack([state.values, *state.halves])
        vectors[:, places] = moved
        for name, value in known.items():
            vectors[:, whole.names.index(name)] = value
        out.append(replace(state, values=vectors[0], halves=vectors[1:]))
    return out


def _step(every: Sensitivity, free: Bools, rows: Bools | slice) -> Array:
    """To the most probable numbers given some residuals, scaled; what was not fitted stays within its tolerance."""
    low, high = every.space.tolerated
    room = np.where(free, MISMATCH**2, np.maximum(high - low, 1e-6) ** 2 / 12)
    weighed = every.weighed(every.slopes, rows)
    information = every.slopes[rows].T @ weighed + np.diag(1 / room)
    step = -np.linalg.solve(information, weighed.T @ every.residual[rows])
    return np.where(free, np.clip(step, -MISMATCH, MISMATCH), np.clip(step, low, high))
