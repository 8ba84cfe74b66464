"""How well a twin predicts logs in the full model, beside the baselines that any method has to beat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gapless.arrays import Array
from gapless.identify.per_joint.inverse_dynamics import Course
from gapless.identify.per_joint.kernel import BLOCK, WINDOW
from gapless.logs import Log
from gapless.twin import Twin
from gapless.worlds import Replayer

DELAYS = np.arange(0, 0.2001, 0.005)  # s: what a pure delay may be


@dataclass(frozen=True)
class Errors:
    """Root mean square position error over all samples, mean over joints [rad]; NaN where there is no such prediction."""

    command: float
    """The commanded position as prediction."""
    delay: float
    """The command, as late as fits each joint best."""
    nominal: float
    fit: float


@dataclass(frozen=True)
class Trace:
    """One log beside what was predicted: free-running for servos, in windows for torque drives. Positions in rad."""

    name: str
    joints: tuple[str, ...]
    time: Array
    """Since the log's start [s]. Shape: (samples,); of all that follow but `block`: (samples, joints)."""
    measured: Array
    command: Array
    delayed: Array
    nominal: Array
    fitted: Array
    """By the fit to everything."""
    heldout: Array
    """By a fit to the other half of the logs."""
    dq: Array
    """[rad/s]"""
    load: Array
    """Gravity and coupling [Nm]."""
    block: NDArray[np.int64]
    """Number of the block that a sample belongs to, over all logs."""
    temperature: Array | None = None
    """Of each joint [°C], NaN where it has no sensor; None if the log has none."""

    def error(self, prediction: str) -> Array:
        """A prediction minus what was measured. Shape: (samples, joints)."""
        return np.asarray(getattr(self, prediction) - self.measured)


def traces(
    twin: Twin,
    logs: Sequence[Log],
    courses: Sequence[Course],
    values: Array,
    halves: Array,
    kept: NDArray[np.bool_],
    firsts: Sequence[int],
    seconds: float,
    zeros: Mapping[int, Array],
) -> list[Trace]:
    """Predict every log.

    Args:
        twin: the model.
        logs: what was measured.
        courses: the same along the measured trajectory.
        values: the fit to everything, over the twin's space.
        halves: fits to the `kept` blocks and to the others. Shape: (2, parameters).
        kept: over the blocks of all logs, of the first `seconds` of each.
        firsts: the number of each log's first block.
        seconds: of each log.
        zeros: encoder zeros of single logs, by their number [rad].
    """
    holds = not twin.floating and twin.all_servos
    offsets = [twin.space.names.index(f"offset.encoder/{j}") for j in twin.joints] if zeros else []
    out = []
    for i, (log, first, end) in enumerate(zip(logs, firsts, [*firsts[1:], len(kept)], strict=True)):
        vectors = np.stack([twin.space.nominal, values, *halves])
        if i in zeros:
            vectors[1:, offsets] += zeros[i]
        result = Replayer(twin, log, window=None if holds else WINDOW, end=seconds)(twin.space.clip(vectors))
        flat = (result.starts[:, None] + result.time).ravel()
        seen = np.isfinite(flat) & np.isfinite(result.measured["q"]).all(axis=2).ravel()
        measured = result.measured["q"].reshape(-1, len(result.joints))[seen]
        # a replay that broke is as wrong as half a turn of the joint
        wrong = np.nan_to_num(result.error("q"), nan=np.pi).reshape(4, -1, len(result.joints))[:, seen]
        time = flat[seen] - log["q"].time[0]
        block = np.minimum(first + (time / BLOCK).astype(np.int64), end - 1)
        other = np.where(kept[block, None], wrong[3], wrong[2])
        command = result.command.reshape(-1, len(result.joints))[seen]
        out.append(
            Trace(
                log.provenance.source or f"log {i + 1}",
                result.joints,
                time,
                measured,
                command,
                _delayed(log, result.joints, flat[seen], measured),
                measured + wrong[0],
                measured + wrong[1],
                measured + other,
                _at(time, courses[i], "dq"),
                _at(time, courses[i], "load"),
                block,
                _temperature(log, result.joints, flat[seen]),
            )
        )
    return out


def errors(traced: Sequence[Trace], fit: str) -> Errors:
    """Over all logs; `fit` is `fitted` or `heldout`."""

    def pooled(prediction: str) -> float:
        square = np.concatenate([t.error(prediction) for t in traced]) ** 2
        return float(np.sqrt(square.mean(axis=0)).mean())

    return Errors(pooled("command"), pooled("delayed"), pooled("nominal"), pooled(fit))


def by_block(traced: Sequence[Trace], prediction: str, blocks: int) -> Array:
    """Mean squared error of each block and joint, NaN where nothing was measured. Shape: (blocks, joints)."""
    block = np.concatenate([t.block for t in traced])
    square = np.concatenate([t.error(prediction) for t in traced]) ** 2
    count = np.bincount(block, minlength=blocks)
    total = np.stack([np.bincount(block, weights=c, minlength=blocks) for c in square.T], axis=1)
    return np.where(count[:, None] > 0, total / np.maximum(count, 1)[:, None], np.nan)


def _at(time: Array, c: Course, field: str) -> Array:
    """A field of a course at other times since its start. Shape: (samples, joints)."""
    grid = c.period * np.arange(len(c.q))
    return np.stack([np.interp(time, grid, column) for column in getattr(c, field).T], axis=1)


def _temperature(log: Log, joints: Sequence[str], times: Array) -> Array | None:
    """Of each joint [°C]. Shape: (samples, joints)."""
    if "temperature" not in log:
        return None
    measured, columns = log.at("temperature", times), log["temperature"].columns
    return np.column_stack([measured[:, columns.index(j)] if j in columns else np.full(len(times), np.nan) for j in joints])


def _delayed(log: Log, joints: Sequence[str], times: Array, measured: Array) -> Array:
    """The command as late as fits each joint best. Shape: (samples, joints)."""
    if "q_cmd" not in log or not set(joints) <= set(log["q_cmd"].columns):
        return np.full(measured.shape, np.nan)
    order = [log["q_cmd"].columns.index(j) for j in joints]
    tried = np.stack([log.at("q_cmd", times - d)[:, order] for d in DELAYS])
    best = np.nanmean((tried - measured) ** 2, axis=1).argmin(axis=0)
    return np.stack([tried[b, :, j] for j, b in enumerate(best)], axis=1)
