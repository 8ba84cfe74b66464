"""The full model: what truly couples, once every joint alone is known: link inertia, encoder zeros, contact, other signals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gapless.arrays import Array
from gapless.identify import uncertainty as unknown
from gapless.identify.full_model import surroundings
from gapless.identify.full_model import window_objective as coupled
from gapless.identify.per_joint.ladder import LEAST, Climb, Remember, Rung, Tick, gain_of
from gapless.identify.score import Trace, by_block
from gapless.logs import Log
from gapless.twin import Parameter, Space, Twin, quantities

CHEAP_STEPS = 1e5  # of twelve joints for one set of slopes: then the full model has the last word in any case
MOST_STEPS = 4e5  # the same where joints alone do not carry over; beyond that they must do
MOST_WINDOWS = 60  # of the full model's fits
CARRIES_OVER = 1.15  # the full model may be this much worse than joints alone before it is fitted itself


@dataclass(frozen=True)
class State:
    """A fit on its way."""

    twin: Twin
    values: Array
    halves: Array
    space: Space
    """What was fitted: some of the twin's parameters, tied where joints share a value."""
    parts: list[unknown.Part]
    zeros: dict[int, Array]
    rivals: list[tuple[tuple[str, ...], Array, Array]]
    """Names, where they ended, and where they ended as well from another start; scaled."""


@dataclass(frozen=True)
class Full:
    """What the rungs that need the full model need."""

    logs: Sequence[Log]
    kept: NDArray[np.bool_]
    """Blocks of the first half, over all logs."""
    firsts: Sequence[int]
    """The number of each log's first block."""
    seconds: float
    """Of each log that are used."""
    signals: tuple[str, ...]
    """What is compared."""
    predicted: Callable[[State], list[Trace]]
    tick: Tick
    remember: Remember

    def windows(self, twin: Twin, blocks: NDArray[np.bool_], most: int = MOST_WINDOWS) -> coupled.Windows:
        """The windows of the logs that lie in some blocks."""
        parts = np.split(blocks, np.asarray(self.firsts[1:], dtype=int))
        holds = not twin.floating and twin.all_servos
        return coupled.windows(twin, self.logs, parts, self.seconds, most, None, None, self.signals, holds and self._short)

    @property
    def _short(self) -> bool:
        """Whether the logs can be run free: where windows begin is then measured once, and not every time with noise."""
        each = [min(self.seconds, log["q"].time[-1] - log["q"].time[0]) for log in self.logs]
        return sum(each) <= MOST_WINDOWS * coupled.HELD_WINDOW

    def parts(self, blocks: NDArray[np.bool_]) -> list[tuple[str, NDArray[np.bool_]]]:
        """Everything, and either half of it."""
        return [("all", blocks), ("first half", blocks & self.kept), ("second half", blocks & ~self.kept)]


def together(
    state: State, traced: list[Trace], top: Climb, left_out: dict[str, list[int]], full: Full, evolve: bool
) -> tuple[State, list[Trace], list[Rung]]:
    """The rungs that need the full model: what couples, encoder zeros, link inertia, contact with the surroundings."""
    twin, kept = state.twin, full.kept
    sound = np.ones((len(kept), len(twin.joints)), dtype=bool)
    for joint, blocks in left_out.items():
        sound[blocks, twin.joints.index(joint)] = False
    before = by_block(traced, "heldout", len(kept))
    here = float(np.sqrt(np.nanmean(np.where(sound, before, np.nan), axis=0)).mean())
    alone = float(np.mean([np.sqrt(np.nanmean(e)) for e in top.errors]))
    inertia = tuple(p for p in twin.space.parameters if quantities.of(p.name).torque_only)
    plan: list[tuple[str, Callable[[State], State]]] = []
    if not twin.all_servos:
        plan = [
            ("full model, each log's own encoder zero", lambda s: _coupled(s, full, s.space, True, "zeros", _roughly)),
            (
                "+ link masses and centres",
                lambda s: _coupled(s, full, _with(s.space, inertia), bool(s.zeros), "links", _roughly),
            ),
        ]
    elif full.signals != ("q",) or _affordable(state, full, MOST_STEPS if here > CARRIES_OVER * alone else CHEAP_STEPS):
        plan = [("full model", lambda s: _coupled(s, full, s.space, False, "full model"))]
        if {"gains.kd", "friction.viscous"} <= {p.quantity for p in state.space.parameters}:
            plan.append(("  damping gain as stated", lambda s: _stated(s, full)))
    if evolve:
        plan.append(
            (
                "full model, evolved",
                lambda s: _coupled(s, full, s.space, bool(s.zeros), "evolved", lambda o, _: coupled.evolve(o)),
            )
        )
    table = surroundings.suspected(twin, traced, left_out)
    if table is not None:
        plan.append(("+ contact with a table", lambda s: _touching(s, table, full)))
    rungs: list[Rung] = []
    for name, extended in plan:
        full.tick(f"{name}: fitting, held-out {np.degrees(np.sqrt(np.nanmean(before, axis=0)).mean()):.3f} deg so far")
        trial = extended(state)
        shown = full.predicted(trial)
        after = by_block(shown, "heldout", len(kept))
        gain, error = gain_of(list(before.T), list(after.T))
        # what the full model finds holds there, and alone nearly; a number that the model states needs reasons to be given up
        least = {"full model": -0.02, "  damping gain as stated": -max(error, 0.02)}
        better = gain > least.get(name, max(error, LEAST))
        rungs.append(Rung(name, float(np.sqrt(np.nanmean(after, axis=0)).mean()), gain, error, better))
        full.tick(f"{name}: held-out {np.degrees(rungs[-1].heldout):.3f} deg")
        if better:
            state, traced, before = trial, shown, after
    return state, traced, rungs


def _affordable(state: State, full: Full, most: float) -> bool:
    """Whether slopes in the full model take no more than so many steps; kinematic trees share simulations."""
    trees = len({int(state.twin.model.dof_treeid[d.dof]) for d in state.twin.drives})
    windows = min(
        MOST_WINDOWS, sum(min(full.seconds, log["q"].time[-1] - log["q"].time[0]) for log in full.logs) / coupled.HELD_WINDOW
    )
    steps = coupled.HELD_WINDOW / state.twin.model.opt.timestep
    return len(state.space) / trees * windows * steps * state.twin.model.nv / 12 < most


def _coupled(
    state: State,
    full: Full,
    space: Space,
    zeros: bool,
    key: str,
    solver: Callable[[coupled.Objective, int], Array] = lambda objective, most: coupled.solve(objective, most, 1e-3),
) -> State:
    """Fit a space in the full model, to everything and to either half."""
    found: list[tuple[coupled.Objective, Array]] = []
    start = state.values
    for label, blocks in full.parts(np.ones_like(full.kept)):
        data = full.windows(state.twin, blocks, MOST_WINDOWS if label == "all" else MOST_WINDOWS // 2)
        objective = coupled.Objective(data, space, start, coupled.typical(data, start), zeros)

        def fitted(objective: coupled.Objective = objective, most: int = 20 if label == "all" else 6) -> dict[str, Any]:
            x = solver(objective, most)
            return {"x": x.tolist()}

        found.append((objective, np.array(full.remember(f"{key}, {label}", fitted)["x"])))
        if label == "all":
            x, end = objective.finish(found[0][1])
            start = objective.values(x[None])[0]
    whole, *rest = (objective for objective, _ in found)
    halves = np.stack([o.values(h[None])[0] for o, (_, h) in zip(rest, found[1:], strict=True)])
    return State(state.twin, start, halves, space, [end], whole.own_zeros(x) if zeros else {}, [])


def _roughly(objective: coupled.Objective, most: int) -> Array:
    """Windows that begin from noisy states tell no more than this."""
    return coupled.solve(objective, min(most, 8), 1e-2)


def _stated(state: State, full: Full) -> State:
    """Damping gains as the model states them, and viscous friction with the rest: mostly only their sum is seen."""
    twin, values = state.twin, state.values.copy()
    names = twin.space.names
    for p in state.space.parameters:
        for name in (p.members or (p.name,)) if p.quantity == "gains.kd" else ():
            kd, viscous = names.index(name), names.index(name.replace("gains.kd", "friction.viscous"))
            values[viscous] += values[kd] - twin.space.nominal[kd]
            values[kd] = twin.space.nominal[kd]
    rest = tuple(p for p in state.space.parameters if p.quantity != "gains.kd")
    begun = replace(state, values=twin.space.clip(values))
    return _coupled(begun, full, replace(state.space, parameters=rest), False, "damping as stated")


def _with(space: Space, more: Sequence[Parameter]) -> Space:
    return replace(space, parameters=(*space.parameters, *more))


def _touching(state: State, table: surroundings.Suspect, full: Full) -> State:
    """Add a table, and fit where and how stiff it is to the windows in which the robot seems to touch it."""
    twin = state.twin.plus(table.mechanism)
    places = [twin.space.names.index(n) for n in state.twin.space.names]
    ours = [twin.space.names.index(n) for n in twin.space.match("table.*")]

    def over(values: Array) -> Array:
        out = twin.space.values({"table.height": table.height})
        out[places] = values
        return out

    found = []
    for label, where in full.parts(table.blocks):
        start = over(state.values)
        if where.any():
            data = full.windows(twin, where)

            def fitted(data: coupled.Windows = data, start: Array = start) -> dict[str, Any]:
                for names in (("table.height", "table.stiffness"), ("table.*",)):
                    objective = coupled.Objective(data, twin.space.select(*names), start, coupled.typical(data, start))
                    start = objective.values(coupled.solve(objective, iterations=8)[None])[0]
                return {"x": start.tolist()}

            start = np.array(full.remember(f"table, {label}", fitted)["x"])
        found.append(start[ours])
    vectors = [over(v) for v in (state.values, *state.halves)]
    for vector, own in zip(vectors, found, strict=True):
        vector[ours] = own
    data, space = full.windows(twin, table.blocks), twin.space.select("table.*")
    there = coupled.Objective(data, space, vectors[0], coupled.typical(data, vectors[0]))
    parts = [*state.parts, there.finish(there.start)[1]]
    both = _with(state.space, space.parameters)
    return State(twin, vectors[0], np.stack(vectors[1:]), both, parts, state.zeros, state.rivals)
