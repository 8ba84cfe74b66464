"""Whether a fit can be used, whether its numbers can be trusted, and what in the logs speaks against either; in sentences."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import mujoco
import numpy as np

from gapless.arrays import Array
from gapless.identify.full_model.rungs import State
from gapless.identify.per_joint.problem import alike
from gapless.identify.score import Scores, missed
from gapless.identify.sensitivity import Sensitivity
from gapless.identify.uncertainty import LOOSE, at_bound, heavier
from gapless.logs import Log, chatter
from gapless.measure import Split, Trace, floors, uneven
from gapless.report import few
from gapless.twin import Gaussian, Twin, quantities

WORSE = 3.0  # times the usual error: a log that contradicts the others
MISSING = 2.0  # times the noise of the encoder: a model that leaves more lacks something
POOR = 0.3  # of how much the joints move: a model that leaves this much of it is not adequate
UNLIKE = 0.5  # scaled units that the drives of joints may differ by which the model makes alike: half a real mismatch
HEAVY = 0.1  # share of the torque that masses and torque sensors may be off by
CLOSED = 0.1  # of the error of the model as given: what a fit that leaves less has closed
STEP = 0.7  # of the held-out error that half the time step changes: half of its square
TOUCHES = 0.5  # share of the joints: one that slips is its own fault, most of them are not
DISAGREE = 0.25  # share of the numbers that either half of the logs may put outside of their intervals
LOOPS = (int(mujoco.mjtEq.mjEQ_CONNECT), int(mujoco.mjtEq.mjEQ_WELD))
STRANGE = 2.0  # times as far from simulated robots as they are from each other: something is wrong that no number stands for


@dataclass
class Doubts:
    """What speaks against a fit."""

    against: list[str] = field(default_factory=list)
    """Using it at all: it does not predict."""
    suspicions: list[str] = field(default_factory=list)
    """Trusting its numbers, and what may be behind it."""
    notes: list[str] = field(default_factory=list)
    """What else is odd."""


@dataclass(frozen=True)
class Unlike:
    """Joints of one type with unlike numbers."""

    sentence: str
    numbers: list[list[int]]
    """By quantity, where in the belief's space the numbers of these joints are."""


def doubts(
    state: State,
    logs: Sequence[Log],
    heldout: Scores,
    traced: Sequence[Trace],
    left_out: Mapping[str, Sequence[int]],
    belief: Gaussian,
    apart: Sequence[Unlike],
    halves: Array,
    every: Sensitivity,
    split: Split,
) -> Doubts:
    """What speaks against a fit.

    Args:
        state: the fit.
        logs: what it was fitted to.
        heldout: its held-out errors beside the baselines.
        traced: each log beside what was predicted.
        left_out: joint to the blocks that the fit misses by far.
        belief: over what was fitted.
        apart: joints of one type with unlike numbers.
        halves: the same from either half of the logs, scaled. Shape: (2, parameters).
        every: how predictions depend on everything.
        split: of the logs.
    """
    out = Doubts(_chatter(logs, traced[0].joints) + _baselines(heldout, traced))
    out.suspicions = [*(each.sentence for each in apart), *_weight(heavier(belief.space, every)), *_disagree(belief, halves)]
    out.suspicions += [
        f"{name} was fitted, but it may be right and {few(list(rivals))} off instead: these logs do not tell which; "
        "measure one of them and state it (--fix)"
        for name, rivals in state.instead.items()
    ]
    late = None if state.twin.floating else uneven(traced, state.twin.model.opt.timestep)
    out.notes += [late.sentence] if late else []
    out.suspicions += _structure(state, logs, late.traces if late else traced, every.coarse)
    out.notes += _coarse(state.twin, heldout, every.coarse)
    stuck = missed(state.twin, late.traces, len(split)) if late else left_out
    if len(stuck) > TOUCHES * len(traced[0].joints):
        out.suspicions.append(
            f"{len(stuck)} of {len(traced[0].joints)} joints have stretches that no joint model fits: does the robot touch "
            "itself or its surroundings there? Record a motion that keeps clear (gapless excite)"
        )
    out.notes += _chains(state.twin)
    for joint, blocks in left_out.items():
        where = [split.place(b) for b in blocks[:4]]
        places = ", ".join(f"{logs[i].name} at {since:.0f} s" for i, since in where)
        more = f" and {len(blocks) - 4} more" if len(blocks) > 4 else ""
        out.notes.append(f"{joint}: excluded, since no joint model fits it (blocked, slipped or touching?): {places}{more}")
    sizes = np.array([np.sqrt((t.error("twin") ** 2).mean()) for t in traced])
    for i in np.flatnonzero(sizes > WORSE * np.median(sizes)).tolist() if len(sizes) > 2 else []:
        out.notes.append(
            f"{traced[i].name} contradicts the other logs: its error is {np.degrees(sizes[i]):.2g} deg, "
            f"theirs is {np.degrees(np.median(sizes)):.2g} deg"
        )
    if state.zeros:
        spread = np.ptp(np.stack(list(state.zeros.values())), axis=0)
        j = int(spread.argmax())
        out.notes.append(
            f"the encoder zero differs between logs by up to {np.degrees(spread[j]):.1f} deg: home the robot before recording"
        )
    at_bound = _at_bound(belief)
    if at_bound:
        out.suspicions.append(f"{few(at_bound)} ended at a bound: widen what the model allows, or look at the robot")
    return out


def _chains(twin: Twin) -> list[str]:
    """Joints that more than their drives move: closed chains and couplings, which only the full model has."""
    m = twin.model
    body = [
        e for e in range(m.neq) if m.eq_active0[e] and m.eq_type[e] in LOOPS and m.eq_objtype[e] == mujoco.mjtObj.mjOBJ_BODY
    ]
    links = dict.fromkeys(m.body(int(b)).name for e in body for b in (m.eq_obj1id[e], m.eq_obj2id[e]) if b > 0)
    if not links:
        return []
    return [
        f"closed chains through {few(list(links))}: joints alone are fitted as if they were open, so numbers of joints in them "
        "rest on the full model"
    ]


def _baselines(heldout: Scores, traced: Sequence[Trace]) -> list[str]:
    """Predictions that are no better than those of no model."""
    if np.isinf(heldout.fit):
        return ["the physics of the fitted model break on what was held out: lower the model's time step, or check its inertia"]
    baselines = {"the model as given": heldout.given, "the command": heldout.command, "a pure delay": heldout.delay}
    out = [
        f"held out, the fit ({np.degrees(heldout.fit):.3g} deg) is no better than {name} ({np.degrees(e):.3g} deg)"
        for name, e in baselines.items()
        if np.isfinite(e) and not heldout.fit < e
    ]
    motion = np.sqrt(np.mean([np.var(t.measured, axis=0).mean() for t in traced]))
    if not heldout.fit < POOR * motion:
        out.append(
            f"held out, the fit leaves {100 * heldout.fit / motion:.0f} % of the motion: no friction or motor model is adequate"
        )
    return out


def unlike(twin: Twin, belief: Gaussian) -> list[Unlike]:
    """Joints that the model gives the same drive, with numbers that differ by more than drives of one type do."""
    space, spread = belief.space, np.sqrt(np.diag(belief.covariance))
    designed = [q for q in quantities.of_any_drive() if not quantities.of(q).optional]  # gains, armature: not friction
    out = []
    for team in alike(twin):
        kinds = sorted({p.quantity for p in space.parameters})
        same = [[space.names.index(n) for i in team if (n := f"{q}/{twin.joints[i]}") in space.names] for q in kinds]
        for quantity in designed:
            names = [f"{quantity}/{twin.joints[i]}" for i in team]
            places = np.array([space.names.index(n) for n in names if n in space.names], dtype=int)
            if len(places) < 2:
                continue
            away = belief.centre[places] - np.median(belief.centre[places])
            far = (spread[places] < LOOSE) & (np.abs(away) > np.maximum(UNLIKE, 1.645 * spread[places]))
            if not far.any():
                continue
            values = space.clip(space.from_scaled(belief.centre))[places]
            high, low = int(np.argmax(belief.centre[places])), int(np.argmin(belief.centre[places]))
            most, least = (space.names[places[i]] for i in (high, low))
            sentence = (
                f"{most} is {values[high]:.3g} {quantities.of(quantity).unit} and {least} {values[low]:.3g}, "
                "though the model gives these joints the same drive: something heavy, a cable or a stiff bearing on one side? "
                "Compare with the limbs swapped"
            )
            out.append(Unlike(sentence, [places for places in same if len(places) > 1]))
    return out


def _weight(heavier: tuple[float, float] | None) -> list[str]:
    """Torques that were measured and that robots of another weight need, by more than chance; see `uncertainty.heavier`."""
    if heavier is None or abs(heavier[0]) < max(HEAVY, 1.645 * heavier[1]):
        return []
    return [
        f"the torque that was measured is not what the twin needs, but about that of links {np.exp(heavier[0]):.2f} times as "
        "heavy as the model's: the masses, the torque sensor's scale or something that the model lacks may be off, and gains, "
        "friction and inertia with it; weigh the robot"
    ]


def _disagree(belief: Gaussian, halves: Array) -> list[str]:
    """Numbers that either half of the logs puts elsewhere. Each half has twice the variance, their difference four times."""
    spread = np.sqrt(np.diag(belief.covariance))
    known = spread < LOOSE
    off = known & (np.abs(halves[0] - halves[1]) > 2 * 1.645 * spread)
    if not off.sum() > DISAGREE * max(int(known.sum()), 1):
        return []
    names = [n for n, bad in zip(belief.space.names, off, strict=True) if bad]
    return [f"either half of the logs gives other values of {few(names)}: their model is not what moves the joints"]


def unexplained(logs: Sequence[Log], traced: Sequence[Trace], coarse: Array) -> Array:
    """Errors of joints over the noise of their encoders and what the time step makes; above `MISSING` something is missing."""
    errors = np.sqrt(np.mean(np.concatenate([t.error("heldout") for t in traced]) ** 2, axis=0))
    floor = floors(logs, ["q"])["q"]
    noise = floor.size[[floor.columns.index(j) for j in traced[0].joints]]
    return np.asarray(errors / np.hypot(noise, coarse[: len(noise)]))


def hiding(state: State, ratios: Array) -> list[str]:
    """Quantities fitted to a robot on its feet that something may hide in which its model lacks; none if it lacks nothing.

    They show in accelerations and where feet touch the ground alone. How drives hold a robot up shows all the time.

    ratios: errors over what explains them; see `unexplained`.
    """
    hold, fitted = quantities.of_how_drives_hold(), dict.fromkeys(p.quantity for p in state.space.parameters)
    return [q for q in fitted if q not in hold] if state.twin.floating and (ratios > MISSING).any() else []


def _structure(state: State, logs: Sequence[Log], traced: Sequence[Trace], coarse: Array) -> list[str]:
    """Errors far above the noise of the encoders and what the time step makes: something that the model does not have."""
    ratios = unexplained(logs, traced, coarse)
    if not (ratios > MISSING).any():
        return []
    j, hides = int(ratios.argmax()), hiding(state, ratios)
    words = f"unexplained error remains: {ratios[j]:.0f} times the noise floor on {traced[0].joints[j]}; the report shows where"
    return [words + (f"; {few(hides)} may have been fitted to what the model lacks" if hides else "")]


def _coarse(twin: Twin, heldout: Scores, coarse: Array) -> list[str]:
    """Predictions that a smaller time step would change by as much as they are off, where they are still far off."""
    change = float(np.mean(coarse[: len(twin.joints)]))
    if not max(STEP * heldout.fit, CLOSED * heldout.given) < change:
        return []
    return [
        f"half the time step of the model ({twin.model.opt.timestep:g} s) changes predictions by {np.degrees(change):.2g} deg, "
        "most of what is left: lower it for better predictions; intervals count what it may have put into the numbers"
    ]


def _chatter(logs: Sequence[Log], joints: Sequence[str]) -> list[str]:
    """Commands that swing over much of their range and back from sample to sample; of torque drives the torque too."""
    out = []
    for log in logs:
        for signal in ("q_cmd", "tau_cmd", "tau") if "tau_cmd" in log else ("q_cmd",):
            swings = {}
            for joint in joints if signal in log else ():
                if joint not in log[signal].columns:
                    continue
                c = log[signal].column(joint)
                if chatter(c):
                    swings[joint] = f"between {c.min():.3g} and {c.max():.3g}"
            if swings:
                joint, more = next(iter(swings)), f" and {len(swings) - 1} more" if len(swings) > 1 else ""
                said = f"{signal} of {joint}{more} swings {swings[joint]} from sample to sample"
                out.append(f"{log.name}: {said}; no joint follows that")
    return out


def _at_bound(belief: Gaussian) -> list[str]:
    """Numbers that are as far as they may go, and not where the model has them: what ended at none is none."""
    space, ends = belief.space, at_bound(belief)
    value = space.clip(space.from_scaled(belief.centre))
    none = np.minimum(np.abs(value), np.abs(value - space.nominal)) < 1e-5 * (space.high - space.low)
    return [name for name, end in zip(space.names, ends & ~none, strict=True) if end]


def strange(far: float) -> str:
    """What speaks against the numbers of a robot that walks so many times as far from simulated ones as they from another."""
    if far <= STRANGE:
        return ""
    return (
        f"the robot is {far:.1f} times as far from simulated robots with these numbers as those are from another: "
        "is the policy the one that walked, with that command, on flat ground? Or does the model lack a part, such as play "
        "or a spring?"
    )
