"""Logs replayed in the full model for many vectors of parameters at once: what every hypothesis is judged by."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gapless.arrays import Array
from gapless.errors import BadInput
from gapless.logs import Log
from gapless.robots import base_joint
from gapless.twin import Twin
from gapless.worlds import Replayer

BLOCK = 1.0  # s: errors within a stretch this long are not independent
WINDOW = 2.5  # s that a replay runs free; short ones never show what builds up
TORQUE_WINDOW = 0.5  # s: a joint without a position loop drifts away from any measurement
JOINT_SECONDS, SECONDS = 75.0, (10.0, 20.0)  # s: replayed of all logs together, times degrees of freedom; and its bounds
RATE = 100.0  # Hz: samples closer than this tell nothing more
MOST_LOGS = 8
SHORTEST = 2 * BLOCK  # s: below, nothing can be held out
BROKEN = 1.0  # rad: what a replay counts whose physics broke
BATCH = 24  # vectors at a time, so that what is recorded fits into memory
TILT = ("base roll", "base pitch")


@dataclass(frozen=True)
class Physics:
    """A twin and logs, cut to a length that can be replayed hundreds of times."""

    twin: Twin
    replayers: tuple[Replayer, ...]
    window: float
    """How long a replay runs free from a measured state [s]."""

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """What errors are measured of: the joints, and the tilt of a free base."""
        return self.twin.joints + (TILT if self.floating else ())

    @cached_property
    def floating(self) -> bool:
        return self.twin.floating

    @cached_property
    def _seen(self) -> list[NDArray[np.bool_]]:
        """Which samples of each replayer count. Shape of each: (windows, samples)."""
        out = []
        for r in self.replayers:
            every = max(1, round(r.log.rate("q") / RATE))
            keep = np.isfinite(r.time) & np.isfinite(r.measured["q"]).all(axis=2)
            keep[:, np.arange(keep.shape[1]) % every != 0] = False
            keep[:, 0] = False  # the first sample is where a replay starts
            out.append(keep)
        return out

    @cached_property
    def time(self) -> Array:
        """Since the start of its log [s]. Shape of this and the next three: (samples, ...)."""
        return np.concatenate(
            [(r.starts[:, None] + r.time - r.log["q"].time[0])[s] for r, s in zip(self.replayers, self._seen, strict=True)]
        )

    @cached_property
    def log_of(self) -> NDArray[np.int64]:
        return np.concatenate([np.full(int(s.sum()), i) for i, s in enumerate(self._seen)])

    @cached_property
    def block(self) -> NDArray[np.int64]:
        """Number of the stretch of `BLOCK` seconds that a sample is in, log after log."""
        own = (self.time / BLOCK).astype(np.int64)
        last = [int(own[self.log_of == i].max()) + 1 for i in range(len(self.replayers))]
        return own + np.concatenate([[0], np.cumsum(last)[:-1]])[self.log_of]

    def measured(self, signal: str) -> Array | None:
        """A signal of the logs, where all have it. Shape: (samples, columns)."""
        if not all(signal in r.measured for r in self.replayers):
            return None
        return np.concatenate([r.measured[signal][s] for r, s in zip(self.replayers, self._seen, strict=True)])

    @cached_property
    def command(self) -> Array:
        return np.concatenate([r.command[s] for r, s in zip(self.replayers, self._seen, strict=True)])

    def errors(self, values: Array) -> Array:
        """Replayed minus measured, for vectors (k, parameters) over the twin's space. Shape: (k, samples, columns) [rad]."""
        return np.concatenate([self._errors(values[i : i + BATCH]) for i in range(0, len(values), BATCH)])

    def _errors(self, values: Array) -> Array:
        out = []
        for r, seen in zip(self.replayers, self._seen, strict=True):
            result = r(values)
            error = result.error("q")
            if self.floating:
                error = np.concatenate([error, result.error("quat")[..., :2]], axis=-1)
            out.append(np.clip(np.nan_to_num(error[:, seen], nan=BROKEN), -BROKEN, BROKEN))
        return np.concatenate(out, axis=1)

    def like(self, twin: Twin) -> Physics:
        """The same stretches of the same logs in another twin of the same robot."""
        return Physics(
            twin, tuple(Replayer(twin, r.log, window=self.window, starts=r.starts) for r in self.replayers), self.window
        )

    def halved(self) -> Physics:
        """The same with half the time step."""
        model = copy.copy(self.twin.model)
        model.opt.timestep /= 2
        return self.like(replace(self.twin, model=model))


def physics(twin: Twin, logs: Sequence[Log]) -> Physics:
    """Line logs up with a twin; see `Physics`."""
    if not logs:
        raise BadInput("name at least one log")
    if not twin.joints:
        raise BadInput(f"{twin.name} has no drives, so a log cannot be replayed in it; state gains (kp, kd) for its joints")
    lengths = [log["q"].time[-1] - log["q"].time[0] if "q" in log and len(log["q"].time) else 0.0 for log in logs]
    if sum(lengths) < SHORTEST:
        raise BadInput(
            f"{sum(lengths):.1f} s of motion are too short to hold anything out: record at least {SHORTEST:g} s, better 20 s"
        )
    servo = twin.all_servos
    window = WINDOW if servo else TORQUE_WINDOW
    seconds = float(np.clip(JOINT_SECONDS / twin.model.nv, *SECONDS))
    usable = [i for i, length in enumerate(lengths) if length > window / 2]
    picked = [usable[i] for i in sorted(set(np.linspace(0, len(usable) - 1, min(len(usable), MOST_LOGS)).round().astype(int)))]
    each = seconds * np.array([lengths[i] for i in picked]) / sum(lengths[i] for i in picked)
    made = [
        Replayer(twin, logs[i], window=window, starts=_starts(twin, logs[i], window, s))
        for i, s in zip(picked, each, strict=True)
    ]
    return Physics(twin, tuple(made), window)


def _starts(twin: Twin, log: Log, window: float, seconds: float) -> Array:
    """Windows that make up so many seconds, evenly spread over a log, each from a sample of every joint."""
    missing = [j for j in twin.joints if j not in log["q"].columns]
    clock = log["q"].time
    if missing:
        return clock[:1]  # the replayer says what is wrong
    whole = np.isfinite(np.column_stack([log["q"].column(j) for j in twin.joints])).all(axis=1)
    last = clock[-1] - window
    if last <= clock[0] or not (whole & (clock <= last)).any():
        return clock[:1]
    count = max(1, round(min(seconds, clock[-1] - clock[0]) / window))
    good = clock[whole & (clock <= last + 1e-9)]
    wanted = clock[0] + np.arange(count) * (last - clock[0]) / max(count - 1, 1)
    return np.unique(good[np.searchsorted(good, wanted - 1e-9).clip(0, len(good) - 1)])


def limbs(twin: Twin) -> NDArray[np.int64]:
    """Which limb each joint belongs to, by its first link: different limbs hardly move each other. Shape: (joints,)."""
    return np.array([limb_of(twin, int(twin.model.jnt_bodyid[d.joint])) for d in twin.drives])


def limb_of(twin: Twin, body: int) -> int:
    """The first link of the limb that a link is part of; the base itself where it is part of none."""
    model, base = twin.model, base_joint(twin.model)
    root = 0 if base is None else int(model.body_weldid[model.jnt_bodyid[base]])
    while int(model.body_weldid[body]) not in (0, root) and int(model.body_weldid[model.body_parentid[body]]) not in (0, root):
        body = int(model.body_parentid[body])
    return body
