"""Traces: the positions of a log beside what was predicted, by the command, the model as given, a fit, and one held out."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gapless.arrays import Array, Ints
from gapless.logs import Log
from gapless.measure.baselines import best_delays, delayed_command
from gapless.measure.window import Windows


@dataclass(frozen=True)
class Trace:
    """One log beside its predictions: free-running where drives hold positions, else in windows. Joints that turn in rad."""

    name: str
    joints: tuple[str, ...]
    time: Array
    """Since the log's first sample [s]. Shape: (samples,); of what follows, unless stated: (samples, joints)."""
    measured: Array
    command: Array
    """The commanded positions as prediction, NaN where there are none."""
    delayed: Array
    """The command as late as fits each joint best over all logs."""
    given: Array
    """The model as given."""
    twin: Array
    """The model with the values that were asked for, or fitted to everything."""
    heldout: Array
    """By a fit to the other half of the logs; `twin` where nothing was held out."""
    dq: Array
    """Measured velocity, or the slope of positions."""
    load: Array
    """What the drive had to do: a torque [N m] where that is known, else how far it was from its command."""
    shock: Array
    """How quickly the turning of a free base changed [rad/s2]; NaN where there is no such base. Shape: (samples,)."""
    window: Ints
    """Which window, or block of a free run, a sample belongs to. Shape of this and the next: (samples,)."""
    block: Ints
    """Number of the block, over all logs."""
    temperature: Array | None = None
    """Of each joint [°C], NaN where it has no sensor; None where the log has none."""

    def error(self, prediction: str) -> Array:
        """A prediction minus what was measured. Shape: (samples, joints)."""
        return np.asarray(getattr(self, prediction) - self.measured)


def traces(
    data: Windows,
    given: Array,
    twin: Array,
    heldout: Array | None = None,
    load: Array | None = None,
    delays: Array | None = None,
) -> list[Trace]:
    """Traces of every log.

    Args:
        data: the windows that were predicted.
        given: positions predicted by the model as given. Shape of this and the next three: (samples, joints).
        twin: by the values that were asked for.
        heldout: by fits to the half of the logs that lacks a sample.
        load: on the drives [N m], where that is known better than from the log.
        delays: with which the command fits each joint best [s]; found unless given. Shape: (joints,).
    """
    joints = data.twin.joints
    late = best_delays([r.log for r in data.replayers], joints).get("q") if delays is None else delays
    measured, window = data.measured("q"), data.block if data.length is None else data.window
    out = []
    for i, r in enumerate(data.replayers):
        mine = data.log == i
        times = r.log["q"].time[0] + data.clock[mine]
        none = np.full((len(times), len(joints)), np.nan)
        shown = none if late is None else delayed_command(r.log, "q", joints, times, late)
        torque = _column(r.log, "tau", joints, times)
        effort = (data.command - measured)[mine] if torque is None else torque
        out.append(
            Trace(
                name=r.log.provenance.source or f"log {data.logs[i] + 1}",
                joints=joints,
                time=data.clock[mine],
                measured=measured[mine],
                command=data.command[mine],
                delayed=shown,
                given=given[mine],
                twin=twin[mine],
                heldout=(twin if heldout is None else heldout)[mine],
                dq=np.column_stack([np.interp(times, r.velocity.time, r.velocity.column(j)) for j in joints]),
                load=effort if load is None else load[mine],
                shock=_shock(r.log, times) if data.twin.floating else none[:, 0],
                window=window[mine],
                block=data.block[mine],
                temperature=_column(r.log, "temperature", joints, times, all_of=False),
            )
        )
    return out


def _shock(log: Log, times: Array) -> Array:
    """How quickly the turning of the base changed [rad/s2]. Shape: (samples,)."""
    if "gyro" not in log:
        return np.full(len(times), np.nan)
    gyro = log["gyro"]
    change = np.linalg.norm(np.gradient(gyro.values, gyro.time, axis=0), axis=1)
    return np.interp(times, gyro.time, change)


def _column(log: Log, signal: str, joints: Sequence[str], times: Array, all_of: bool = True) -> Array | None:
    """A signal of each joint, NaN where it has none; None where there is none, or not of all. Shape: (samples, joints)."""
    columns = log[signal].columns if signal in log else ()
    if not columns or (all_of and not set(joints) <= set(columns)):
        return None
    values = log.at(signal, times)
    return np.column_stack([values[:, columns.index(j)] if j in columns else np.full(len(times), np.nan) for j in joints])
