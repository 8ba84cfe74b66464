"""Delay: what is in force at a time, given messages, when each was sent, and how late it acts; and states as they were before.

Commands are messages, each in force until the next one acts: `mean_in_force` is the arithmetic of every delayed command, live
(`received_live`), from a log (`received_from_log`) and in the fits of single joints. States are interpolated between steps:
`state_ago` for live readings, `states_at` for those at the times of a log.

Times are in steps of whoever calls. A command that takes effect in the middle of a step acts for its share of that step, which
for a constant delay is the linear interpolation of MuJoCo's own actuator delay. Unlike MuJoCo's, it also handles delays below
one step.
"""

import numba
import numpy as np
from numpy.typing import ArrayLike

from gapless.arrays import Array, Ints
from gapless.compiled import compiled

# numba keeps what it compiled of a function until the file of that very function changes: after a change here, delete the
# __pycache__ of those that call it (identify/per_joint, logs/inspection)

SNAP = 1e-9  # steps: a delay this close to a whole step is a whole step


@numba.vectorize(["float64(float64, float64)"], cache=True)
def in_steps(seconds: float, timestep: float) -> float:
    """Seconds as steps; what is a whole number of steps but for rounding becomes one."""
    steps = seconds / timestep
    whole = np.rint(steps)
    return whole if abs(steps - whole) < SNAP else steps


def rows_in_force(sent: Array, times: ArrayLike) -> Ints:
    """The newest message that was sent by each time; the first one before any was. Shapes: (messages,), (...) to (...)."""
    return np.maximum(np.searchsorted(sent, times, side="right") - 1, 0)


@compiled
def newest_by(sent: Array, time: float, newest: int) -> int:
    """The newest message sent by a time, looked for from an older one on."""
    while newest + 1 < len(sent) and sent[newest + 1] <= time:
        newest += 1
    return newest


@compiled
def mean_in_force(sent: Array, values: Array, newest: int, start: float, step: float) -> float:
    """The mean over a step of messages that each act from when they are sent until the next is.

    Args:
        sent: ascending, shape (messages,).
        values: shape (messages,).
        newest: message that was sent by the start, see `newest_by`.
        start: of the step, less the delay where there is one.
        step: its length.
    """
    end = start + step
    if newest + 1 == len(sent) or sent[newest + 1] >= end:
        return values[newest]
    total = 0.0
    while newest + 1 < len(sent) and sent[newest + 1] < end:
        newest += 1
        total += (sent[newest] - start) * values[newest - 1]
        start = sent[newest]
    return (total + (end - start) * values[newest]) / step


@compiled
def received(sent: Array, values: Array, start: float, step: float, out: Array) -> None:
    """The mean in force over each of some steps, written to `out` (steps,); see `mean_in_force`."""
    newest = max(int(np.searchsorted(sent, start, side="right")) - 1, 0)
    for i in range(len(out)):
        newest = newest_by(sent, start + i * step, newest)
        out[i] = mean_in_force(sent, values, newest, start + i * step, step)


@compiled
def received_from_log(sent: Array, values: Array, window: Ints, late: Array, first: int, out: Array) -> None:
    """What each actuator receives from a recorded stream of commands.

    Args:
        sent: in steps since the start of each window, shape (windows, commands).
        values: shape (commands, controls).
        window: of each world, shape (n,).
        late: how late commands take effect [steps], shape (n, controls).
        first: number of the first step.
        out: shape (n, steps, controls), written.
    """
    for i in range(len(out)):
        for c in range(out.shape[2]):
            received(sent[window[i]], values[:, c], first - late[i, c], 1.0, out[i, :, c])


@compiled
def received_live(acts: Array, values: Array, command: Array, late: Array, out: Array) -> None:
    """Send a command now; what each actuator receives during the control period that begins now.

    A command that is overtaken by a newer one never acts; one that is lost leaves the one before it in force.

    Args:
        acts: when each command that is under way takes effect [steps] since the period before, oldest first; shape
            (n, controls, commands), updated.
        values: of these commands, of the same shape, updated.
        command: sent now, shape (n, controls).
        late: how late it takes effect [steps], infinite if it is lost; shape (n, controls).
        out: shape (n, steps in the period, controls), written.
    """
    n, steps, controls = out.shape
    for i in range(n):
        for c in range(controls):
            when, value = acts[i, c], values[i, c]
            for k in range(len(when) - 1):
                when[k], value[k] = min(when[k + 1] - steps, late[i, c]), value[k + 1]
            lost = late[i, c] == np.inf
            when[-1], value[-1] = when[-2] if lost else late[i, c], value[-2] if lost else command[i, c]
            received(when, value, 0.0, 1.0, out[i, :, c])


@compiled
def state_ago(ring: Array, newest: int, columns: Ints, age: Array, out: Array) -> None:
    """Recorded fields as they were some time ago, interpolated between steps.

    Args:
        ring: shape (periods, n, substeps, fields); the last step of period `newest` is now.
        columns: which fields, shape (k,).
        age: how long ago [steps], shape (n, k).
        out: shape (n, k), written.
    """
    periods, n, substeps, _ = ring.shape
    last = periods * substeps - 1
    for i in range(n):
        for j in range(len(columns)):
            ago = min(max(age[i, j], 0.0), float(last))
            whole = int(ago)
            part = ago - whole
            c = columns[j]
            a = ring[(newest - whole // substeps) % periods, i, substeps - 1 - whole % substeps, c]
            if part > 0.0:
                older = whole + 1
                b = ring[(newest - older // substeps) % periods, i, substeps - 1 - older % substeps, c]
                a += part * (b - a)
            out[i, j] = a


@compiled
def states_at(
    before: Array, record: Array, columns: Ints, times: Array, window: Ints, age: Array, first: int, done: Ints, out: Array
) -> None:
    """Recorded fields as readings at the times of a log show them: `state_ago` for a chunk of steps at a time.

    Args:
        before: state at step `first`, shape (n, fields).
        record: states after steps first + 1 ..., shape (n, steps, fields).
        columns: which fields, shape (k,).
        times: when readings were taken [steps] since the start of each window, ascending; shape (windows, readings).
        window: of each world, shape (n,).
        age: of each reading when it is taken [steps], shape (n, k).
        first: number of steps before this chunk.
        done: readings taken so far, shape (n, k), updated.
        out: shape (n, readings, k), written.
    """
    n, steps, _ = record.shape
    for i in range(n):
        taken = times[window[i]]
        for j in range(len(columns)):
            c, m = columns[j], done[i, j]
            while m < len(taken):
                step = taken[m] - age[i, j] - first
                if not step <= steps:  # later, or NaN where a window has fewer readings than others
                    break
                step = max(step, 0.0)
                whole = int(step)
                part = step - whole
                a = before[i, c] if whole == 0 else record[i, whole - 1, c]
                out[i, m, j] = a + part * (record[i, whole, c] - a) if part > 0.0 else a
                m += 1
            done[i, j] = m
