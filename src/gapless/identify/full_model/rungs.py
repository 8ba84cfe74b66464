"""The full model: what truly couples, once every joint alone is known: link inertia, encoder zeros, contact, other signals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gapless.arrays import Array, Bools
from gapless.identify.full_model import surroundings, window_objective as coupled
from gapless.identify.per_joint.kernel import QUANTITIES
from gapless.identify.per_joint.ladder import Climb, Remember, Rung, Tick, gain_of, least_gain
from gapless.identify.score import Scorer, by_block
from gapless.logs import Log
from gapless.measure import BLOCK, Split, Trace, Windows, holds, runs, windows
from gapless.twin import Mechanism, Motion, Parameter, Space, Twin, quantities

CHEAP_STEPS = 1e5  # of twelve joints for one set of slopes: then the full model has the last word in any case
MOST_STEPS = 4e5  # the same where joints alone do not carry over: of the logs as much is used as that allows
LEAST_SECONDS = 10.0  # of the logs that are used however long that takes [s]
MOST_WINDOWS = 60  # of the full model's fits
NEARBY = 4  # iterations of a fit that begins close to where it ends
EQUAL = 0.02  # share of the held-out squared error that does not matter
CARRIES_OVER = 1.15  # the full model may be this much worse than joints alone before it is fitted itself


@dataclass(frozen=True)
class State:
    """A fit on its way."""

    twin: Twin
    values: Array
    halves: Array
    space: Space
    """What was fitted: some of the twin's parameters, tied where joints share a value."""
    zeros: dict[int, Array]
    rivals: list[tuple[tuple[str, ...], Array, Array]]
    """Names, where they ended, and where they ended as well from another start; scaled."""
    instead: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Quantities that were fitted because errors spoke for them, and those that may be off instead."""


@dataclass(frozen=True)
class Full:
    """What the rungs that need the full model need."""

    logs: Sequence[Log]
    split: Split
    signals: tuple[str, ...]
    """What is compared."""
    scorer: Scorer
    tick: Tick
    remember: Remember
    _made: dict[tuple[int, int], Windows] = field(default_factory=dict)

    def windows(self, twin: Twin, blocks: Bools, most: int = MOST_WINDOWS) -> Windows:
        """The windows of the logs that lie in some blocks; short logs run free, so that noise at a start counts once."""
        if not holds(twin) or self.seconds > MOST_WINDOWS * BLOCK:
            return windows(twin, self.logs, self.split, blocks, most=most, signals=self.signals)
        return self.runs(twin, self.seconds).only(blocks)

    def runs(self, twin: Twin, seconds: float) -> Windows:
        """Free runs of the logs, or of pieces that last so long together [s]."""
        stretches = self.split.spread(self.split.logs, seconds)
        key = (id(twin), len(stretches))
        if key not in self._made:
            self._made[key] = runs(twin, self.logs, self.split, stretches, self.signals)
        return self._made[key]

    @property
    def seconds(self) -> float:
        """That the logs last [s]."""
        return self.split.seconds(self.split.logs)

    def parts(self, blocks: Bools) -> list[tuple[str, Bools]]:
        """Everything, and either half of it."""
        return [("all", blocks), ("first half", blocks & self.split.first), ("second half", blocks & ~self.split.first)]

    def predicted(self, state: State) -> list[Trace]:
        """Every log beside what a fit predicts."""
        return self.scorer(state.twin, state.values, state.halves, state.zeros)


@dataclass(frozen=True)
class Step:
    """A rung that needs the full model."""

    key: str
    """Under which its fits are remembered."""
    name: str
    """As tables show it."""
    adds: tuple[str, ...] = ()
    """Quantities that it fits besides."""
    mechanism: Mechanism | None = None
    """What the twin lacks for that."""
    room: Array | None = None
    """Covariance by which what is fitted may differ from the model, where that is known; scaled."""


ZEROS = Step("zeros", "full model, each log's own encoder zero")
COUPLED = Step("full model", "full model")
STATED = Step("damping as stated", "  damping gain as stated")
EVOLVED = Step("evolved", "full model, evolved")
TABLE = Step("table", "+ contact with a table")


def together(
    state: State, traced: list[Trace], top: Climb, left_out: dict[str, list[int]], full: Full, evolve: bool
) -> tuple[State, list[Trace], list[Rung]]:
    """The rungs that need the full model: what couples, encoder zeros, link inertia, contact with the surroundings."""
    before = by_block(traced, "heldout", len(full.split))
    table = surroundings.suspected(state.twin, traced, left_out, len(full.split))
    rungs: list[Rung] = []
    steps = _plan(state, before, top, left_out, full, evolve, table is not None)
    affordable = _steps(state, full.seconds) < CHEAP_STEPS  # only then a structure that the model lacks is tried
    steps += [step for step in _mechanisms(state.twin, traced, full.split) if step.mechanism is None or affordable]
    for step in steps:
        full.tick(f"{step.name}: fitting, held-out {np.degrees(np.sqrt(np.nanmean(before, axis=0)).mean()):.3f} deg so far")
        trial = _touching(state, table, full) if step is TABLE and table is not None else extended(state, step, full)
        shown = full.predicted(trial)
        after = by_block(shown, "heldout", len(full.split))
        gain, error = gain_of(list(before.T), list(after.T))
        # what the full model finds holds there, and alone nearly; a number that the model states needs reasons to be given up
        least = {COUPLED.key: -EQUAL if affordable else 0.0, STATED.key: -max(error, EQUAL)}.get(
            step.key, max(error, least_gain(step.adds))
        )
        added = gain > least and not _came_to_nothing(trial, step)
        rungs.append(Rung(step.name, float(np.sqrt(np.nanmean(after, axis=0)).mean()), gain, error, added))
        full.tick(f"{step.name}: held-out {np.degrees(rungs[-1].heldout):.3f} deg")
        if rungs[-1].added:
            state, traced, before = trial, shown, after
    return state, traced, rungs


def _came_to_nothing(state: State, step: Step) -> bool:
    """Whether what a rung adds is nowhere in the end, or is something else: a hysteresis that winds up for ever is a spring.

    Then what it gained is another fit of the rest.
    """
    sizes: dict[str, list[bool]] = {}
    endless = set()
    for p in state.space.parameters:
        if p.quantity not in step.adds or not quantities.of(p.quantity).structure:
            continue
        place, value = p.name.partition("/")[2], state.values[state.twin.space.names.index((p.members or (p.name,))[0])]
        if p.log and min(value / p.low, p.high / value) < 1 + 1e-6:
            endless.add(place)
        none = sizes.setdefault(place, [])
        if quantities.cause(p.quantity) == p.quantity and not p.log:
            none.append(max(p.nominal, abs(value)) <= p.tolerance)
    return bool(sizes) and all(place in endless or (bool(none) and all(none)) for place, none in sizes.items())


def _plan(
    state: State, before: Array, top: Climb, left_out: dict[str, list[int]], full: Full, evolve: bool, table: bool
) -> list[Step]:
    """Which rungs to try. before: held-out squared errors of joints alone in the full model, (blocks, joints)."""
    twin, plan = state.twin, list[Step]()
    usable = before.copy()
    for joint, blocks in left_out.items():
        usable[blocks, twin.joints.index(joint)] = np.nan
    in_full = float(np.sqrt(np.nanmean(usable, axis=0)).mean())
    alone = float(np.mean([np.sqrt(np.nanmean(e)) for e in top.errors]))
    if not twin.all_servos:
        plan = [ZEROS]
    elif full.signals != ("q",) or in_full > CARRIES_OVER * alone or _steps(state, full.seconds) < CHEAP_STEPS:
        plan = [COUPLED]
        if {"gains.kd", "friction.viscous"} <= {p.quantity for p in state.space.parameters}:
            plan.append(STATED)
    return plan + [EVOLVED] * evolve + [TABLE] * table


def _mechanisms(twin: Twin, traced: Sequence[Trace], split: Split) -> list[Step]:
    """Rungs that joints alone cannot climb, of mechanisms that the twin has, or lacks while its errors speak for them."""
    seen = zip(*((t.measured, t.dq, t.error("heldout"), split.first[t.block]) for t in traced), strict=True)
    lacking = twin.suspects(Motion(*map(np.concatenate, seen))) if twin.all_servos else []
    out = []
    for rung, names in quantities.rungs().items():
        hidden = twin.all_servos and any(quantities.of(name).torque_only for name in names)
        mechanism = next((m for m, added in lacking if {p.quantity for p in added} & set(names)), None)
        known = mechanism is not None or {p.quantity for p in twin.space.parameters} & set(names)
        if known and not hidden and not set(names) <= set(QUANTITIES):
            out.append(Step(rung, rung, names, mechanism))
    return out


def _steps(state: State, seconds: float) -> float:
    """How many steps of twelve joints slopes in the full model take; kinematic trees share simulations."""
    trees = len({int(state.twin.model.dof_treeid[d.dof]) for d in state.twin.drives})
    return (
        len(state.space) / trees * min(MOST_WINDOWS * BLOCK, seconds) / state.twin.model.opt.timestep * state.twin.model.nv / 12
    )


def extended(state: State, step: Step, full: Full, more: Sequence[Parameter] = ()) -> State:
    """A fit with what a rung adds, and more."""
    if step.mechanism is not None:
        state = _grown(state, step.mechanism)
    space = _with(state.space, [*(p for p in state.twin.space.parameters if p.quantity in step.adds), *more])
    if step is STATED:
        state = _damping_as_stated(state)
        space = replace(space, parameters=tuple(p for p in space.parameters if p.quantity != "gains.kd"))
    return _coupled(state, full, space, step is ZEROS or bool(state.zeros), step)


def _coupled(state: State, full: Full, space: Space, zeros: bool, step: Step) -> State:
    """Fit a space in the full model, to everything and to either half."""
    if holds(state.twin) and not zeros and step is not EVOLVED:
        return _coupled_runs(state, full, space, step)
    start, ends = state.values, []
    for label, blocks in full.parts(np.ones_like(full.split.first)):
        whole = label == "all"
        data = full.windows(state.twin, blocks, MOST_WINDOWS if whole else MOST_WINDOWS // 2)
        objective = coupled.Objective(data, space, start, coupled.typical(data, start), zeros)

        def fitted(objective: coupled.Objective = objective, whole: bool = whole) -> dict[str, Any]:
            if step is EVOLVED:
                return {"x": coupled.evolve(objective).tolist()}
            # windows that begin from noisy states tell no more than a rough fit
            return {"x": coupled.solve(objective, 8 if whole else 6).tolist()}

        x = np.array(full.remember(f"{step.key}, {label}", fitted)["x"])
        if whole:
            x, _ = objective.finish(x)
            own_zeros = objective.own_zeros(x) if zeros else {}
            start = objective.values(x[None])[0]
        ends.append(objective.values(x[None])[0])
    return State(state.twin, ends[0], np.stack(ends[1:]), space, own_zeros, [])


def _coupled_runs(state: State, full: Full, space: Space, step: Step) -> State:
    """Fit a space to free runs of the full model; either half a step from there, by the slopes that its own part of it has."""
    steps = _steps(replace(state, space=space), full.seconds)
    cheap = steps < CHEAP_STEPS
    seconds = max(LEAST_SECONDS, min(MOST_WINDOWS * BLOCK, full.seconds) * MOST_STEPS / steps)
    data = full.windows(state.twin, np.ones_like(full.split.first)) if steps < MOST_STEPS else full.runs(state.twin, seconds)
    objective = coupled.Objective(data, space, state.values, coupled.typical(data, state.values), room=step.room)

    def fitted() -> dict[str, Any]:
        x = coupled.solve(objective, *((20, 1e-3) if cheap else (NEARBY if step is STATED else 8, 1e-2)))
        x, halves = objective.halves(*objective.finish(x, coupled.LAST_STEPS if cheap else 1))
        return {"x": [x.tolist(), *halves.tolist()]}

    ends = objective.values(np.array(full.remember(step.key, fitted)["x"]))
    return State(state.twin, ends[0], ends[1:], space, {}, [])


def _damping_as_stated(state: State) -> State:
    """Damping gains as the model states them, and viscous friction with the rest: mostly only their sum is seen."""
    space, values = state.twin.space, state.values.copy()
    for p in state.space.parameters:
        for name in (p.members or (p.name,)) if p.quantity == "gains.kd" else ():
            kd, viscous = space.names.index(name), space.names.index(name.replace("gains.kd", "friction.viscous"))
            values[viscous] += values[kd] - space.nominal[kd]
            values[kd] = space.nominal[kd]
    return replace(state, values=space.clip(values))


def _grown(state: State, mechanism: Mechanism) -> State:
    """The same fit with a mechanism installed, at its nominal values."""
    twin = state.twin.plus(mechanism)
    places = [twin.space.names.index(n) for n in state.twin.space.names]
    vectors = np.tile(twin.space.nominal, (3, 1))
    vectors[:, places] = [state.values, *state.halves]
    return replace(state, twin=twin, values=vectors[0], halves=vectors[1:])


def _with(space: Space, more: Sequence[Parameter]) -> Space:
    return replace(space, parameters=(*space.parameters, *more))


def _touching(state: State, table: surroundings.Suspect, full: Full) -> State:
    """Add a table, and fit where and how stiff it is to the windows in which the robot seems to touch it."""
    grown = _grown(state, table.mechanism)
    twin, vectors = grown.twin, np.stack([grown.values, *grown.halves])
    vectors[:, twin.space.names.index("table.height")] = table.height
    ours = [twin.space.names.index(n) for n in twin.space.match("table.*")]
    found = []
    for label, where in full.parts(table.blocks):
        start = vectors[0]
        if where.any():
            data = full.windows(twin, where)

            def fitted(data: Windows = data, start: Array = start) -> dict[str, Any]:
                for names in (("table.height", "table.stiffness"), ("table.*",)):
                    objective = coupled.Objective(data, twin.space.select(*names), start, coupled.typical(data, start))
                    start = objective.values(coupled.solve(objective, iterations=8)[None])[0]
                return {"x": start.tolist()}

            start = np.array(full.remember(f"table, {label}", fitted)["x"])
        found.append(start[ours])
    vectors[:, ours] = found
    both = _with(state.space, twin.space.select("table.*").parameters)
    return State(twin, vectors[0], vectors[1:], both, state.zeros, state.rivals)
