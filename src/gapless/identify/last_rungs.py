"""The last rungs: what the errors of a fit speak for by far, and then the most probable numbers of everything together.

For robots whose joints move fast at once, links that are a little heavier or longer than drawn matter as much as friction; and
a cable, a zero or a payload that was not fitted is in all numbers that were.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from gapless.arrays import Array, Bools
from gapless.identify.evidence import Suspect, grown_with, informed, off, stood_for, suspects
from gapless.identify.full_model.rungs import EQUAL, Full, State, Step, extended
from gapless.identify.full_model.standing import measured_base
from gapless.identify.per_joint.kernel import QUANTITIES
from gapless.identify.per_joint.ladder import LEAST, Rung, gain_of
from gapless.identify.per_joint.problem import alike
from gapless.identify.score import by_block
from gapless.identify.sensitivity import MISMATCH, Sensitivity, sensitivity
from gapless.identify.uncertainty import WEIGHT
from gapless.measure import Trace
from gapless.twin import Space, Twin

WEIGHED = "  forces as measured, or as stated where no position shows them"
MAP = "+ all other numbers within their tolerances"
ROUNDS = 3  # of suspects: what is found first may hide others
WORTH = 0.05  # of a factor of torques that is worth a look, as a logarithm
SHARES = (1.0, 0.5)  # of a step that are tried: slopes hold over a short way only


def last_rungs(
    state: State, traced: list[Trace], full: Full, known: Mapping[str, float], ladder: list[Rung]
) -> tuple[State, list[Trace], Sensitivity]:
    """A fit after its last rungs, each log beside what it predicts, and how predictions depend on everything then.

    Args:
        state: the fit.
        traced: each log beside what it predicts.
        full: what rungs of the full model need.
        known: parameters that keep their values.
        ladder: to which rungs are added.
    """
    full.tick("how sure each number is")
    state, traced, every = _weigh(state, traced, full, known, ladder)
    rounds = 0
    while not state.twin.floating and rounds < ROUNDS:
        rounds += 1
        off_by_far = suspects(every, modes(state.space))
        if not off_by_far:
            break
        trial = _with(state, off_by_far, full, known)
        state, traced, added = _judged(state, traced, trial, _said(off_by_far), full, ladder)
        if not added:
            break
        instead = {**state.instead, **{s.quantity: s.rivals for s in off_by_far}}
        left = {q: tuple(r for r in rivals if r not in modes(state.space)) for q, rivals in instead.items()}
        state = replace(state, instead={q: rivals for q, rivals in left.items() if rivals})
        state, traced, every = _weigh(state, traced, full, known, ladder)
    trials = [(full.predicted(trial), trial) for trial in probable(state, every, known)]
    shown, trial = min(trials, key=lambda pair: float(np.nanmean(by_block(pair[0], "twin", len(full.split)))))
    state, traced, added = _judged(state, traced, trial, MAP, full, ladder, shown)
    return state, traced, _sensitivity(state, full, known) if added else every


def _weigh(
    state: State, traced: list[Trace], full: Full, known: Mapping[str, float], ladder: list[Rung]
) -> tuple[State, list[Trace], Sensitivity]:
    """A fit with forces that are as probable as can be, where that is no worse; and how predictions depend on everything."""
    every = _sensitivity(state, full, known)
    for trial in weighed(state, every, known):
        state, traced, added = _judged(state, traced, trial, WEIGHED, full, ladder, least=-EQUAL)
        if added:
            return state, traced, _sensitivity(state, full, known)
    return state, traced, every


def modes(space: Space) -> dict[str, bool]:
    """Quantities that were fitted; True for those with numbers of each joint's own."""
    return {p.quantity: not any(q.members for q in space.parameters if q.quantity == p.quantity) for p in space.parameters}


def _judged(
    state: State,
    traced: list[Trace],
    trial: State,
    name: str,
    full: Full,
    ladder: list[Rung],
    shown: list[Trace] | None = None,
    least: float | None = None,
) -> tuple[State, list[Trace], bool]:
    """The better of two fits on what either half did not see; the second where it gains more than chance, or the least."""
    shown = shown or full.predicted(trial)
    before, after = (by_block(each, "heldout", len(full.split)) for each in (traced, shown))
    gain, error = gain_of(list(before.T), list(after.T))
    added = gain > (max(error, LEAST) if least is None else least)
    ladder.append(Rung(name, float(np.sqrt(np.nanmean(after, axis=0)).mean()), gain, error, added))
    full.tick(f"{name}: held-out {np.degrees(ladder[-1].heldout):.3f} deg")
    return (trial, shown, True) if added else (state, traced, False)


def _said(found: list[Suspect]) -> str:
    return "+ " + ", ".join(f"{s.quantity} {'of each' if s.own else 'of all alike'}" for s in found)


def _with(state: State, found: list[Suspect], full: Full, known: Mapping[str, float]) -> State:
    """A fit of suspects too: one number for all where they are alike and the model has the same for all."""
    space = state.twin.space.fix(known)
    for s in found:
        members = [p for p in space.parameters if p.quantity == s.quantity]
        if not s.own and len({p.nominal for p in members}) == 1 and len(members) > 1:
            space = space.join(f"{s.quantity}/*", [p.name for p in members])
    names = {s.quantity for s in found}
    kept = [p for p in state.space.parameters if p.quantity not in names]
    more = [p for p in space.parameters if p.quantity in names]
    step = Step(f"{_said(found)}, {len(state.space)}", _said(found), room=_room(Space((*kept, *more))))
    start = _alike(state.twin, state.values, known)
    return extended(replace(state, values=start, space=replace(state.space, parameters=tuple(kept))), step, full, more)


def _alike(twin: Twin, values: Array, known: Mapping[str, float]) -> Array:
    """Values with the same of joints of one type: where they differ, each has put something else into its own."""
    out, space = values.copy(), twin.space
    scaled, names = space.to_scaled(values), space.names
    for team in alike(twin, known):
        for quantity in QUANTITIES:
            named = [n for i in team if (n := f"{quantity}/{twin.joints[i]}") in names and n not in known]
            places = [names.index(n) for n in named]
            if len(places) > 1:
                scaled[places] = np.median(scaled[places])
                out[places] = space.clip(space.from_scaled(scaled))[places]
    return out


def _room(space: Space, fitted: Space | None = None) -> Array:
    """How far numbers may be off, of which some were fitted (all, unless given), by a real mismatch."""
    chosen = modes(fitted or space)
    return off(space, [q for q, own in chosen.items() if not own], [q for q, own in chosen.items() if own])


def _sensitivity(state: State, full: Full, known: Mapping[str, float]) -> Sensitivity:
    signals = full.signals + (measured_base(full) if state.twin.floating else ())
    return sensitivity(state.twin, state.values, full.logs, full.split, signals, state.zeros, known)


def probable(state: State, every: Sensitivity, known: Mapping[str, float]) -> list[State]:
    """The same fit a step on, by several shares of the step: the most probable numbers of all logs and of either half.

    Args:
        state: the fit.
        every: how predictions depend on everything there.
        known: parameters that keep their values.
    """
    fitted, starts = _fitted(state, every), _starts(state, every)
    # what a fitted number stands for is in it already
    moved = np.eye(len(fitted))[:, [p.quantity not in stood_for(modes(state.space)) for p in every.space.parameters]]
    steps = np.clip(_ways(state, every, moved) @ moved.T, -MISMATCH, MISMATCH)
    low, high = (np.where(fitted, far, ends) for far, ends in zip((-np.inf, np.inf), every.space.tolerated, strict=True))
    ends = (np.clip(starts + share * steps, low, high) for share in SHARES)
    return [_at(state, every, every.space.from_scaled(end), known) for end in ends]


def weighed(state: State, every: Sensitivity, known: Mapping[str, float]) -> list[State]:
    """The same fit with all torques and the rotor of each joint, and all masses, larger or smaller by most probable factors.

    Joints on which little hangs move the same with any, and all do if masses are larger too, so a fit to positions ends at some
    factor or other; torque that was measured shows it, and without any, drives are as the model states them. Each has a factor
    of its own, or, where masses were fitted, all have one, which no position shows at all; none where that is so already.
    """
    assert every.factors is not None
    grown = np.isin([p.quantity for p in every.space.parameters], [*grown_with(modes(state.space))])
    own = every.factors * (_fitted(state, every) | grown)[:, None]
    own, out = own[:, own.any(axis=0)], list[State]()
    values = every.space.from_scaled(_starts(state, every))
    for ways in (own, own.sum(axis=1, keepdims=True)) if WEIGHT in modes(state.space) else (own,):
        growth = _ways(state, every, ways)[0]  # positions hardly show it, so either half has the same
        if np.abs(growth).max() > WORTH:
            out.append(_at(state, every, values * np.exp((ways != 0) @ growth), known))
    return out


def _fitted(state: State, every: Sensitivity) -> Bools:
    """Of everything, what was fitted. Shape: (parameters,)."""
    chosen = modes(state.space)
    return np.array([p.quantity in chosen for p in every.space.parameters])


def _starts(state: State, every: Sensitivity) -> Array:
    """What was fitted to all logs and to either half, over everything; scaled. Shape: (3, parameters)."""
    places = [state.twin.space.names.index(name) for name in every.space.names]
    return every.space.to_scaled(every.space.clip(np.stack([state.values, *state.halves])[:, places]))


def _at(state: State, every: Sensitivity, values: Array, known: Mapping[str, float]) -> State:
    """A fit with other values of everything. Shape of these: (3, parameters)."""
    whole, vectors = state.twin.space, np.stack([state.values, *state.halves])
    vectors[:, [whole.names.index(name) for name in every.space.names]] = every.space.clip(values)
    for name, value in known.items():
        vectors[:, whole.names.index(name)] = value
    return replace(state, values=vectors[0], halves=vectors[1:])


def _ways(state: State, every: Sensitivity, directions: Array) -> Array:
    """How far it is along some directions to the most probable numbers, given all residuals, and those of either half.

    What was fitted may be off from the model by a real mismatch, and everything else by its tolerance. Shape: (3, directions).
    directions: shape (parameters, directions), scaled.
    """
    x, prior = _starts(state, every)[0], np.linalg.inv(_room(every.space, state.space))
    out = []
    for rows in (slice(None), every.first, ~every.first):
        information, pull = informed(replace(every, blur=None), rows)  # errors of slopes make steps shorter, which is safe
        out.append(-np.linalg.solve(directions.T @ (information + prior) @ directions, directions.T @ (pull + prior @ x)))
    return np.stack(out)
