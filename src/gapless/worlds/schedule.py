"""Gains as logged: which gains a drive had, and whether it was switched on, in each window of a log and at each step."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from gapless.arrays import Array
from gapless.errors import BadInput
from gapless.logs import Log
from gapless.twin import Twin

MOST_CHANGES = 2000


class Schedule:
    """Factors on a twin's nominal gains over the steps of each window.

    Gains in a log (signals kp and kd by joint, or constants `meta["kp"]`, `meta["kd"]`) replace the twin's nominal ones; a
    parameter `gains.kp` then says by how much the logged gain is wrong. A drive that is not `enabled` gives no torque.
    """

    def __init__(self, log: Log, twin: Twin, joints: tuple[str, ...], starts: Array, steps: int):
        self._joints = joints
        self._gains: list[tuple[str, int, Array, Array]] = []  # quantity, joint, times, factors
        names = {name: i for i, name in enumerate(twin.space.names)}
        for j, joint in enumerate(joints):
            for quantity in ("kp", "kd"):
                column, stream = names.get(f"gains.{quantity}/{joint}"), logged_gain(log, quantity, joint)
                if column is not None and stream is not None and twin.space.nominal[column] > 0:
                    self._gains.append((quantity, j, stream[0], stream[1] / twin.space.nominal[column]))
        self._enabled = [
            (
                log["enabled"].time,
                log["enabled"].column(j) if j in log["enabled"].columns else np.ones(len(log["enabled"].time)),
            )
            for j in joints
            if "enabled" in log
        ]
        self._starts, self._steps, self._timestep = starts, steps, twin.model.opt.timestep
        self.changes = self._find_changes()

    def _find_changes(self) -> dict[int, NDArray[np.bool_]]:
        """Step to the windows in which something changes there."""
        out: dict[int, NDArray[np.bool_]] = {}
        for times, values in [(t, v) for *_, t, v in self._gains] + [(t, v > 0.5) for t, v in self._enabled]:
            at = times[1:][np.diff(values) != 0]
            if len(at) > MOST_CHANGES:
                raise BadInput(f"gains that change {len(at)} times in one log cannot be replayed; the most is {MOST_CHANGES}")
            for w, start in enumerate(self._starts):
                steps = np.rint((at - start) / self._timestep).astype(int)
                for s in steps[(steps > 0) & (steps < self._steps)]:
                    out.setdefault(int(s), np.zeros(len(self._starts), dtype=bool))[w] = True
        return out

    def changed(self, step: int) -> NDArray[np.bool_]:
        """The windows in which a gain changes at a step. Shape: (windows,)."""
        return self.changes.get(step, np.zeros(len(self._starts), dtype=bool))

    def factors(self, window: NDArray[np.int64], step: NDArray[np.int64]) -> tuple[Array, Array] | None:
        """Logged over nominal kp and kd at a step, or None where the log names no gains. Shape of each: (n, joints)."""
        if not self._gains:
            return None
        out = {q: np.ones((len(window), len(self._joints))) for q in ("kp", "kd")}
        for quantity, joint, times, values in self._gains:
            out[quantity][:, joint] = self._now(times, values, window, step)
        return out["kp"], out["kd"]

    def off(self, window: NDArray[np.int64], step: NDArray[np.int64]) -> NDArray[np.bool_] | None:
        """Which joints are switched off at a step, or None where none ever is. Shape: (n, joints)."""
        if not any((v < 0.5).any() for _, v in self._enabled):
            return None
        return np.column_stack([self._now(t, v, window, step) < 0.5 for t, v in self._enabled])

    def _now(self, times: Array, values: Array, window: NDArray[np.int64], step: NDArray[np.int64]) -> Array:
        when = self._starts[window] + (step + 0.5) * self._timestep
        return values[np.maximum(np.searchsorted(times, when, side="right") - 1, 0)]


def logged_gain(log: Log, quantity: str, joint: str) -> tuple[Array, Array] | None:
    """A gain of a joint over time, or None where the log does not say."""
    if quantity in log and joint in log[quantity].columns:
        return log[quantity].time, log[quantity].column(joint)
    value = log.meta.get(quantity)
    if isinstance(value, Mapping):
        value = value.get(joint)
    if isinstance(value, int | float):
        return np.array([0.0]), np.array([float(value)])
    return None
