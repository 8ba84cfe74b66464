"""A floating base, standing or walking: feet push back, so joints cannot be fitted alone; everything in the full model.

Windows are short, since an open loop on legs soon falls; the IMU counts beside the encoders, and the motion capture if there is
one. Height and speed of the base at the start of each window are free where they were not measured.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gapless.arrays import Array
from gapless.identify.full_model import window_objective as coupled
from gapless.identify.full_model.rungs import Full, State
from gapless.identify.per_joint.ladder import LEAST, Rung, gain_of
from gapless.identify.per_joint.problem import alike, label
from gapless.measure import FREE_WINDOW, Windows, mean_by
from gapless.twin import Space, Twin, quantities

SIGNALS = ("quat", "gyro", "base_pos", "base_vel")
MOST_WINDOWS = 24
ITERATIONS = 6
POLISH = 20  # iterations at the end, where the weight on the feet leaves a long valley: masses, gains and friction all larger


def stand(twin: Twin, full: Full, known: Mapping[str, float]) -> tuple[State, list[Rung], float]:
    """Climb the rungs in the full model; joints of one actuator type share their numbers. `known` parameters are not fitted.

    Returns the fit, the rungs, and how many seconds of the logs were used.
    """
    kept, tick = full.split.first, full.tick
    signals = full.signals + measured_base(full)
    full = replace(full, signals=signals)
    begins = twin.floating and not {"base_pos", "base_vel"} <= set(signals)
    everything = np.ones_like(kept)
    whole = full.windows(twin, everything, MOST_WINDOWS)
    datas = [whole, *(full.windows(twin, half, MOST_WINDOWS // 2) for half in (kept, ~kept))]
    start = twin.space.values(known)
    size = coupled.typical(whole, start)
    vectors = np.stack([start] * 3)
    chosen: tuple[str, ...] = ()
    before = _heldout(whole, vectors[1:])
    rungs = [Rung("as given", _positions(before, twin), 0.0, 0.0, True)]
    try:
        for name, extra in quantities.standing_rungs().items():
            space = tied(twin, (*chosen, *extra), known)
            if len(space) == len(tied(twin, chosen, known)):
                continue
            tick(f"{name}: fitting in the full model, held-out {np.degrees(rungs[-1].heldout):.3f} deg so far")
            trial = vectors.copy()
            for i, data in enumerate(datas):
                objective = coupled.Objective(data, space, trial[0] if i else vectors[0], size)
                x = _remembered(full, f"standing {name}, part {i}", objective, ITERATIONS if i == 0 else ITERATIONS // 2, 1e-2)
                trial[i] = objective.values(x[None])[0]
            after = _heldout(whole, trial[1:])
            gain, error = gain_of(list(before.T), list(after.T))
            better = gain > max(error, LEAST)
            rungs.append(Rung(name, _positions(after, twin), gain, error, better))
            if better:
                chosen, vectors, before = (*chosen, *extra), trial, after
    except KeyboardInterrupt:
        if not chosen:
            raise
        tick("stopped: what was found so far is kept")
    first = next(iter(quantities.standing_rungs().values()))  # where nothing helps, say how well the drive's numbers are known
    space = tied(twin, chosen or first, known)
    tick("all of it together")
    objective = coupled.Objective(whole, space, vectors[0], size)
    x = _remembered(full, "standing, all", objective, POLISH if chosen else 0, 1e-3)
    size = coupled.typical(whole, objective.values(x[None])[0])
    base, found = objective.values(x[None])[0], []
    for i, data in enumerate(datas):
        objective = coupled.Objective(data, space, base, size, begins=begins)
        x = _remembered(
            full, f"standing, begun, part {i}", objective, (POLISH if i == 0 else ITERATIONS) if chosen else 0, 1e-3
        )
        x, _ = objective.finish(x)
        base = objective.values(x[None])[0] if i == 0 else base
        found.append(objective.values(x[None])[0])
    vectors = np.stack(found)
    after = _heldout(whole, vectors[1:])
    rungs.append(Rung("all of it together", _positions(after, twin), *gain_of(list(before.T), list(after.T)), True))
    used = whole.count * FREE_WINDOW
    return State(twin, vectors[0], vectors[1:], space, {}, []), rungs, used


def measured_base(full: Full) -> tuple[str, ...]:
    """Signals of a floating base that all logs have, besides those that are compared anyway."""
    return tuple(s for s in SIGNALS if all(s in log for log in full.logs) and s not in full.signals)


def tied(twin: Twin, quantities: Sequence[str], known: Mapping[str, float]) -> Space:
    """Quantities of a twin, less what is known; joints of one type share theirs."""
    space = twin.space
    for team in alike(twin, known):
        joints = [twin.joints[i] for i in team]
        for quantity in quantities:
            members = [f"{quantity}/{j}" for j in joints if f"{quantity}/{j}" in space.names]
            if len(members) > 1:
                space = space.join(f"{quantity}/{label(joints, twin.joints)}", members)
    free = [p for p in space.parameters if p.quantity in quantities and not {*p.members, p.name} & set(known)]
    return Space(tuple(free), dict(known))


def _remembered(full: Full, key: str, objective: coupled.Objective, iterations: int, tolerance: float) -> Array:
    def compute() -> dict[str, Any]:
        return {"x": coupled.solve(objective, iterations, tolerance).tolist()}

    return np.array(full.remember(key, compute)["x"])


def _heldout(data: Windows, halves: Array) -> Array:
    """Mean squared error of each window and column, by the fit to the half that lacks it. Shape: (windows, columns)."""
    by_half = [mean_by(data.window, error**2, data.count) for error in data.errors(halves)]
    return data.split.held_out(data.window_blocks, *by_half)


def _positions(square: Array, twin: Twin) -> float:
    """Root mean square of the joints' part, mean over joints [rad]."""
    return float(np.sqrt(np.nanmean(square[:, : len(twin.joints)], axis=0)).mean())
