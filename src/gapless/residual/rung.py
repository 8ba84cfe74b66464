"""The rung "+ learned residual" of a fit: a network per joint on top of the fitted physics, kept only where it truly helps.

    found = identify.fit(twin, logs)
    found, learnt = learn(found, logs)

Three members are trained: to all of the logs, and to either half, each on the physics that was fitted to the same. Either half
is predicted in the full model by the member that has not seen it; joints whose held-out error does not fall get no network.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from gapless.arrays import Array, Bools, Ints
from gapless.errors import BadInput
from gapless.identify import SCORE_SECONDS, Fit, Rung, Scorer, by_block, gain_of, scores
from gapless.logs import Log
from gapless.measure import BLOCK, FREE_WINDOW, Split, Trace, admit, holds, split_logs
from gapless.residual import training
from gapless.residual.own_run import Run, own_run
from gapless.residual.result import Learnt, judged_joints
from gapless.residual.training import Material
from gapless.robots import is_dc_motor
from gapless.twin import Motion, Net, Residual, Ripple, Twin, learned

Mode = Literal["off", "auto", "force"]
NAME = "+ learned residual"
LEAST = 0.05  # share of the squared error that a network must take away to be worth it
STEPS = 300_000  # of physics that joints are trained along, at most
WINDOW = 12.0  # s: of the pieces of logs that are longer than that
FEWEST = 4  # blocks of two seconds: two to learn from and two to be judged by
PASSES = (training.ROUNDS, training.ROUNDS // 2)  # rounds of training: along the physics' own run, then along the networks'

Tick = Callable[[str], object]


@dataclass(frozen=True)
class Setting:
    """What training needs to know of the logs."""

    logs: Sequence[Log]
    split: Split
    starts: list[Array | None]
    """When windows of each log start [s]; None for a free run of all of it."""
    length: float | None


def learn(fit: Fit, logs: Sequence[Log], mode: Mode = "auto", tick: Tick = lambda text: None) -> tuple[Fit, Learnt | None]:
    """A fit with learned torque, where that predicts what it has not seen better; and how good it is.

    Args:
        fit: the physics, as `identify.fit` found it.
        logs: what it was fitted to.
        mode: `auto` keeps networks where held-out error truly falls, `force` keeps them all, `off` learns none.
        tick: told what is being done.
    """
    if mode == "off":
        return fit, None
    started = time.perf_counter()
    twin, logs = fit.twin, admit(fit.twin, logs).logs
    why = _unsuitable(fit)
    split = split_logs(logs, twin.joints)
    if not why and split.measured.sum() < FEWEST:
        why = (
            f"a residual needs {FEWEST * BLOCK:g} s of logs, half of them to learn from and half to be judged by, and "
            f"{BLOCK * split.measured.sum():g} s were measured"
        )
    if why and mode == "force":
        raise BadInput(f"--residual force: {why}")
    if why:
        return replace(fit, warnings=[*fit.warnings, f"no residual was learned: {why}"]), None
    setting = _setting(twin, logs, split)
    nets, data = _trained(fit, setting, tick)
    tick(f"{NAME}: checking in the full model")
    judged = split.spread(split.logs, SCORE_SECONDS / twin.model.nv)
    scorer = Scorer(twin.joints, logs, split, judged, [], twin)
    before = by_block(fit.traces, "heldout", len(split))
    every = _predicted(fit, nets, scorer)
    after = by_block(every[1], "heldout", len(split))
    kept = nets if mode == "force" else [n for n, b, a in zip(nets, before.T, after.T, strict=True) if _better(b, a)]
    trial, shown = every if len(kept) == len(nets) or not kept else _predicted(fit, kept, scorer)
    after = by_block(shown, "heldout", len(split))
    gain, error = gain_of(list(before.T), list(after.T))
    added = mode == "force" or bool(kept and gain > max(error, LEAST))
    heldout = float(np.sqrt(np.nanmean(after, axis=0)).mean())
    ladder = [*fit.ladder, Rung(NAME, heldout, gain, error, added)]
    tick(f"{NAME}: held-out {np.degrees(heldout):.3f} deg")
    seconds = time.perf_counter() - started
    learnt = Learnt(
        robot=fit.robot,
        kept=added,
        heldout_before=fit.heldout.fit,
        heldout_after=heldout,
        joints=judged_joints(fit.traces, shown, nets, kept if added else [], data),
        motions=_by_motion(fit.traces, shown),
        seconds=seconds,
        seconds_used=split.seconds(split.logs),
        seconds_given=fit.seconds_given,
        nets=tuple(kept) if added else (),
    )
    if not added:
        return replace(fit, ladder=ladder), learnt
    traces = [replace(old, twin=new.twin, heldout=new.heldout) for old, new in zip(fit.traces, shown, strict=True)]
    grown = replace(trial, ladder=ladder, traces=traces, seconds=fit.seconds + seconds)
    return replace(grown, train=scores(traces, "twin"), heldout=scores(traces, "heldout")), learnt


def _unsuitable(fit: Fit) -> str:
    """Why no residual can be learned on top of a fit; empty where it can."""
    twin = fit.twin
    if twin.floating:
        return "the robot floats, and its joints cannot be simulated alone: hang it up, or hold its base"
    if fit.against:
        return f"the physics does not predict ({fit.against[0]})"
    if any(is_dc_motor(twin.model, d.actuator) for d in twin.drives):
        return "a drive is modelled as an electric motor, whose residual cannot be trained so far"
    if any(isinstance(m, Residual) and m.nets for m in twin.mechanisms) or learned.marked(twin.model):
        return "the model has learned torque already"
    if not fit.traces or not len(fit.halves):
        return "the fit was loaded from a folder, which keeps no halves: fit again"
    return ""


def _setting(twin: Twin, logs: Sequence[Log], split: Split) -> Setting:
    """Whole logs as free runs where they are short; else windows that are spread over them, from measured states."""
    step = twin.model.opt.timestep
    if holds(twin) and split.seconds(split.logs) <= STEPS * step:
        return Setting(logs, split, [None] * len(logs), None)
    length = WINDOW if holds(twin) else FREE_WINDOW
    starts = []
    for log in logs:
        clock, q = log["q"].time, log["q"].of(twin.joints)
        whole = clock[np.isfinite(q).all(axis=1) & (clock <= clock[-1] - length / 2)]
        wanted = np.arange(clock[0], clock[-1] - length / 2, length)
        starts.append(np.unique(whole[np.searchsorted(whole, wanted - 1e-9).clip(0, len(whole) - 1)]) if len(whole) else whole)
    most = max(1, int(STEPS * step / length))
    every = [(i, s) for i, some in enumerate(starts) for s in some]
    few = [every[k] for k in np.unique(np.linspace(0, len(every) - 1, min(most, len(every))).round().astype(int))]
    return Setting(logs, split, [np.array([s for i, s in few if i == log]) for log in range(len(logs))], length)


def _trained(fit: Fit, setting: Setting, tick: Tick) -> tuple[list[Net], Material]:
    """Networks of all joints, each with its three members; and what joints felt in the last run of the first."""
    twin, first = fit.twin, setting.split.first
    parts: list[tuple[str, Array, Bools]] = [("all", fit.values, np.ones_like(first))]
    parts += [("first half", fit.halves[0], first), ("second half", fit.halves[1], ~first)]
    nets: list[Net] = []
    members: list[Array] = []
    felt: list[Material] = []
    for label, values, blocks in parts:
        rng = np.random.default_rng(0)
        now, vector, numbers = twin, values, np.empty((0, 0))
        for turn, rounds in enumerate(PASSES):
            tick(f"{NAME}: learning from {label}, {turn + 1} of {len(PASSES)}")
            data = training.sized(_material(now, setting, vector, fit.zeros))
            if not nets:
                nets = training.blank(twin, data, _waves(twin, fit.traces, setting.split), rng)
            numbers = training.numbers_of(nets) if turn == 0 else numbers
            numbers = training.trained(data.within(blocks), numbers, rng, rounds)
            if turn + 1 < len(PASSES):
                own = [replace(n, members=(training.rounded(numbers[j, learned.HEAD :]),)) for j, n in enumerate(nets)]
                now = twin.plus(Residual(tuple(own)))
        members.append(numbers)
        felt.append(data)
    weights = [tuple(training.rounded(m[j, learned.HEAD :]) for m in members) for j in range(len(nets))]
    return [replace(n, members=w) for n, w in zip(nets, weights, strict=True)], felt[0]


def _material(twin: Twin, setting: Setting, values: Array, zeros: dict[int, Array]) -> Material:
    """What joints feel in all logs along the twin's own runs."""
    runs: list[Run] = []
    blocks: list[list[Ints]] = []
    step = twin.model.opt.timestep
    offsets = [twin.space.names.index(f"offset.encoder/{j}") for j in twin.joints] if zeros else []
    for i, (log, starts) in enumerate(zip(setting.logs, setting.starts, strict=True)):
        if starts is not None and not len(starts):
            continue
        vector = values.copy()
        if i in zeros:
            vector[offsets] += zeros[i]
        run = own_run(twin, log, twin.space.clip(vector), setting.length, starts)
        since = run.starts - log["q"].time[0]
        numbers = [setting.split.numbers(i, s + step * np.arange(len(f[0].x))) for s, f in zip(since, run.felt, strict=True)]
        runs.append(run)
        blocks.append(numbers)
    return training.material(runs, blocks, step, not holds(twin))


def _waves(twin: Twin, traces: Sequence[Trace], split: Split) -> Array:
    """Times the angle in the sine and cosine of each joint: those of a ripple where errors repeat over the angle, else once."""
    seen = zip(*((t.measured, t.dq, t.error("heldout"), split.first[t.block]) for t in traces), strict=True)
    ripple = Ripple.suspected(twin.model, Motion(*map(np.concatenate, seen)))
    return np.array([ripple.periods.get(j, 1.0) if ripple else 1.0 for j in twin.joints])


def _predicted(fit: Fit, nets: Sequence[Net], scorer: Scorer) -> tuple[Fit, list[Trace]]:
    """The fit with networks, and each log beside what it predicts."""
    twin = fit.twin.plus(Residual(tuple(nets)))
    places = [twin.space.names.index(n) for n in fit.twin.space.names]
    vectors = np.tile(twin.space.nominal, (3, 1))
    vectors[:, places] = [fit.values, *fit.halves]
    vectors[:, twin.space.names.index("residual.member")] = [0.0, 1.0, 2.0]
    grown = replace(fit, twin=twin, values=vectors[0], halves=vectors[1:])
    return grown, scorer(twin, vectors[0], vectors[1:], fit.zeros)


def _better(before: Array, after: Array) -> bool:
    """Whether held-out squared errors (blocks,) of a joint fall truly."""
    gain, error = gain_of([before], [after])
    return gain > max(error, LEAST)


def _by_motion(before: Sequence[Trace], after: Sequence[Trace]) -> dict[str, tuple[float, float]]:
    """Held-out error of each log without and with networks, mean over joints [rad]."""

    def error(trace: Trace) -> float:
        return float(np.sqrt((trace.error("heldout") ** 2).mean(axis=0)).mean())

    return {old.name: (error(old), error(new)) for old, new in zip(before, after, strict=True)}
