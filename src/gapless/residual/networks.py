"""Networks of all joints on top of some physics: what they are trained along, and what the full model predicts with them.

Three members are trained: to all of the logs, and to either half, each on the physics that was fitted to the same. Either half
is predicted in the full model by the member that has not seen it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gapless.arrays import Array, Bools, Ints
from gapless.errors import BadInput
from gapless.identify import Scorer, by_block, gain_of
from gapless.logs import Log
from gapless.measure import BLOCK, FREE_WINDOW, Split, Trace, floors, holds
from gapless.residual import training
from gapless.residual.own_run import Run, own_run
from gapless.residual.training import Material
from gapless.robots import is_dc_motor
from gapless.twin import Motion, Net, Residual, Ripple, Twin, learned

LEAST = 0.05  # share of the squared error that a network must take away to be worth it
STEPS = 300_000  # of physics that joints are trained along, at most
WINDOW = 12.0  # s: of the pieces of logs that are longer than that
FEWEST = 4  # blocks of two seconds: two to learn from and two to be judged by
PASSES = (training.ROUNDS, training.ROUNDS // 2)  # rounds of training: along the physics' own run, then along the networks'

Tick = Callable[[str], object]


@dataclass(frozen=True)
class Physics:
    """What networks are learned on top of."""

    twin: Twin
    vectors: Array
    """Parameters as all of the logs have them, and either half. Shape: (3, parameters)."""
    zeros: dict[int, Array]
    """Encoder zeros of single logs [rad]."""
    traces: Sequence[Trace]
    """What it predicts of the logs."""
    finer: Array
    """As `vectors`, in a simulation of half the time step that moves the same; empty where nothing was fitted."""

    def predicted(self, added: Residual, scorer: Scorer) -> tuple[Twin, Array, list[Trace]]:
        """The twin with something learned, its parameters (3, parameters), and each log beside what it predicts."""
        twin = self.twin.plus(added)
        places = [twin.space.names.index(n) for n in self.twin.space.names]
        vectors = np.tile(twin.space.nominal, (3, 1))
        vectors[:, places] = self.vectors
        if "residual.member" in twin.space.names:
            vectors[:, twin.space.names.index("residual.member")] = [0.0, 1.0, 2.0]
        return twin, vectors, scorer(twin, vectors[0], vectors[1:], self.zeros)

    def best(self, scorer: Scorer) -> Array:
        """Held-out squared error that physics alone can have, without any number that is news. Shape: (blocks, joints).

        A fit makes up for its time step by rotors and delays, and what these leave is no gap of the robot's. So of each joint
        it is the least of three: as fitted, with half the time step and numbers that move the same, and as far again, which is
        with no time step at all (Richardson: the engine's error is of the first order).
        """
        tried = [list(self.traces)]
        if len(self.finer):
            half = scorer(self.twin.at_step(self.twin.model.opt.timestep / 2), self.finer[0], self.finer[1:], self.zeros)
            tried += [
                [replace(t, heldout=t.heldout + far * (h.heldout - t.heldout)) for t, h in zip(self.traces, half, strict=True)]
                for far in (1, 2)
            ]
        errors = np.stack([by_block(traces, "heldout", len(scorer.split)) for traces in tried])
        return np.stack([e[np.argmin(np.nanmean(e, axis=1))] for e in np.moveaxis(errors, 2, 0)], axis=1)


@dataclass(frozen=True)
class Setting:
    """What training needs to know of the logs."""

    logs: Sequence[Log]
    split: Split
    starts: list[Array | None]
    """When windows of each log start [s]; None for a free run of all of it."""
    length: float | None


def unsuitable(twin: Twin, split: Split) -> str:
    """Why nothing can be learned of a twin from logs, before anything is fitted; empty where it can."""
    if any(is_dc_motor(twin.model, d.actuator) for d in twin.drives):
        return "a drive is modelled as an electric motor, whose residual cannot be trained so far"
    if any(isinstance(m, Residual) and m.nets for m in twin.mechanisms) or learned.marked(twin.model):
        return "the model has learned torque already"
    if split.measured.sum() < FEWEST:
        return (
            f"a residual needs {FEWEST * BLOCK:g} s of logs, half of them to learn from and half to be judged by, and "
            f"{BLOCK * split.measured.sum():g} s were measured"
        )
    return ""


def setting_of(twin: Twin, logs: Sequence[Log], split: Split) -> Setting:
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


def trained(physics: Physics, setting: Setting, target: bool, tick: Tick) -> tuple[list[Net], Material]:
    """Networks of all joints, each with its three members; and what joints felt in the last run of the first.

    target: whether they shift what drives are told, instead of adding torque at joints.
    """
    twin, first = physics.twin, setting.split.first
    parts: list[tuple[str, Bools]] = [("all", np.ones_like(first)), ("first half", first), ("second half", ~first)]
    nets: list[Net] = []
    members: list[Array] = []
    felt: list[Material] = []
    for (label, blocks), vector in zip(parts, physics.vectors, strict=True):
        rng = np.random.default_rng(0)
        now, numbers = twin, np.empty((0, 0))
        for turn, rounds in enumerate(PASSES):
            tick(f"learning from {label}, {turn + 1} of {len(PASSES)}")
            data = training.sized(_material(now, setting, vector, physics.zeros, target))
            if not nets:
                nets = training.blank(twin, data, _waves(twin, physics.traces, setting.split), rng)
            numbers = training.numbers_of(nets) if turn == 0 else numbers
            numbers = training.trained(data.within(blocks), numbers, rng, rounds)
            if turn + 1 < len(PASSES):
                own = [replace(n, members=(training.rounded(numbers[j, learned.HEAD :]),)) for j, n in enumerate(nets)]
                now = twin.plus(Residual(tuple(own), target))
        members.append(numbers)
        felt.append(data)
    weights = [tuple(training.rounded(m[j, learned.HEAD :]) for m in members) for j in range(len(nets))]
    return [replace(n, members=w) for n, w in zip(nets, weights, strict=True)], felt[0]


def _material(twin: Twin, setting: Setting, values: Array, zeros: dict[int, Array], target: bool) -> Material:
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
    if target and any((run.gain <= 0).any() for run in runs):
        raise BadInput("a drive of the model has no gain, so no shift of its command makes up for anything: state kp")
    return training.material(runs, blocks, step, not holds(twin), target)


def _waves(twin: Twin, traces: Sequence[Trace], split: Split) -> Array:
    """Times the angle in the sine and cosine of each joint: those of a ripple where errors repeat over the angle, else once."""
    seen = zip(*((t.measured, t.dq, t.error("heldout"), split.first[t.block]) for t in traces), strict=True)
    ripple = Ripple.suspected(twin.model, Motion(*map(np.concatenate, seen)))
    return np.array([ripple.periods.get(j, 1.0) if ripple else 1.0 for j in twin.joints])


def noise(logs: Sequence[Log], joints: Sequence[str]) -> Array:
    """What sensors add to the position of each joint [rad]. Shape: (joints,)."""
    floor = floors(logs, ["q"])["q"]
    return np.array([floor.size[floor.columns.index(j)] for j in joints])


def worth_it(nets: Sequence[Net], physics: Array, after: Sequence[Trace], noisy: Array) -> list[Net]:
    """Networks of joints whose held-out error truly falls below that of physics, and by more than what nobody can measure.

    Args:
        nets: one a joint.
        physics: held-out squared error without them. Shape: (blocks, joints).
        after: predictions with all of them.
        noisy: what sensors add to the position of each joint [rad]. An error that is smaller is no gap.
    """
    pairs = zip(physics.T, by_block(after, "heldout", len(physics)).T, strict=True)
    kept = []
    for net, (old, new), least in zip(nets, pairs, noisy, strict=True):
        gain, error = gain_of([old], [new])
        if gain > max(error, LEAST) and np.nanmean(old - new) > least**2:
            kept.append(net)
    return kept
