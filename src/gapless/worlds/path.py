"""The command and sensor path, compiled: delay, jitter and loss of commands; delay, skew and frames of readings.

Times are in physics steps. A command that takes effect in the middle of a step acts for its share of that step, which for a
constant delay is the linear interpolation of MuJoCo's own actuator delay. Unlike MuJoCo's, it also handles delays below one
step.
"""

import numba
import numpy as np

from gapless.arrays import Array, Ints

SNAP = 1e-9  # steps: a delay this close to a whole step is a whole step


@numba.njit(cache=True)
def _taken(command: float, quantum: float, low: float, high: float) -> float:
    """A command as the firmware takes it: rounded to its step and limited."""
    step = quantum if quantum > 0.0 else 1.0
    rounded = np.rint(command / step) * step
    return min(max(rounded if quantum > 0.0 else command, low), high)


@numba.njit(cache=True)
def _ahead(ahead: Array, gains: Array, world: int, command: int, control: int) -> float:
    """How far feed-forward shifts a command."""
    if not ahead.shape[1]:
        return 0.0
    return gains[world, 0, control] * ahead[0, command, control] + gains[world, 1, control] * ahead[1, command, control]


@numba.vectorize(["float64(float64, float64, float64, float64)"], cache=True)
def firmware(command: float, quantum: float, low: float, high: float) -> float:
    """`_taken` for arrays, which rounds readings as well."""
    return _taken(command, quantum, low, high)


@numba.njit(cache=True)
def deliver(sent: Array, late: Array, held: Array, newest: int, substeps: int, out: Array) -> None:
    """What each actuator receives during the next control period.

    Args:
        sent: commands by age in a ring, shape (n, ring, controls).
        late: how late each takes effect [steps], infinite if lost; shape (n, ring, controls).
        held: what was in force before the oldest of them, shape (n, controls).
        newest: place of the command sent now.
        substeps: steps in a control period.
        out: shape (n, substeps, controls), written.
    """
    n, ring, controls = sent.shape
    for i in range(n):
        for c in range(controls):
            for s in range(substeps):
                until = 1.0  # of this step, not yet accounted for
                total = 0.0
                for age in range(ring):
                    k = (newest - age) % ring
                    since = late[i, k, c] - (age * substeps + s)
                    since = 0.0 if since < 0.0 else since
                    if since < until:
                        if since == 0.0 and until == 1.0:
                            total = sent[i, k, c]
                        else:
                            total += (until - since) * sent[i, k, c]
                        until = since
                    if until <= 0.0:
                        break
                if until > 0.0:  # nothing in the ring has arrived yet
                    total = held[i, c] if until == 1.0 else total + until * held[i, c]
                out[i, s, c] = total


@numba.njit(cache=True)
def read(ring: Array, newest: int, columns: Ints, late: Array, out: Array) -> None:
    """Past values of recorded fields, interpolated between steps.

    Args:
        ring: shape (periods, n, substeps, fields); the last step of period `newest` is now.
        columns: which fields, shape (k,).
        late: age of each reading [steps], shape (n, k).
        out: shape (n, k), written.
    """
    periods, n, substeps, _ = ring.shape
    last = periods * substeps - 1
    for i in range(n):
        for j in range(len(columns)):
            age = min(max(late[i, j], 0.0), float(last))
            whole = int(age)
            part = age - whole
            c = columns[j]
            a = ring[(newest - whole // substeps) % periods, i, substeps - 1 - whole % substeps, c]
            if part > 0.0:
                older = whole + 1
                b = ring[(newest - older // substeps) % periods, i, substeps - 1 - older % substeps, c]
                a += part * (b - a)
            out[i, j] = a


@numba.njit(cache=True)
def hold(
    times: Array,
    values: Array,
    ahead: Array,
    window: Ints,
    late: Array,
    quantum: Array,
    limits: Array,
    offset: Array,
    gains: Array,
    first: int,
    out: Array,
) -> None:
    """What each actuator receives from a recorded stream of commands, each held until the next: `deliver` for a whole log.

    Args:
        times: when each command was sent, in steps since the start of each window; shape (windows, commands).
        values: shape (commands, controls).
        ahead: feed-forward that goes with them, shape (2, commands, controls); (2, 0, controls) for none.
        window: of each world, shape (n,).
        late: how late commands take effect [steps], shape (n, controls).
        quantum: step to which the firmware rounds commands, shape (n, controls).
        limits: least and greatest command, shape (2, controls).
        offset: taken off a command once it is rounded and limited, shape (n, controls).
        gains: by which both kinds of feed-forward are added to it, shape (n, 2, controls).
        first: number of the first step.
        out: shape (n, steps, controls), written.
    """
    n, steps, controls = out.shape
    last = len(values) - 1
    for i in range(n):
        sent = times[window[i]]
        for c in range(controls):
            low, high, unit, off = limits[0, c], limits[1, c], quantum[i, c], offset[i, c]
            k = max(np.searchsorted(sent, first - late[i, c], side="right") - 1, 0)
            now = _taken(values[k, c], unit, low, high) - off + _ahead(ahead, gains, i, k, c)
            for s in range(steps):
                since = first + s - late[i, c]
                until = since + 1.0
                if k < last and sent[k + 1] <= since:
                    while k < last and sent[k + 1] <= since:
                        k += 1
                    now = _taken(values[k, c], unit, low, high) - off + _ahead(ahead, gains, i, k, c)
                if k == last or sent[k + 1] >= until:
                    out[i, s, c] = now
                    continue
                total, before, j = (sent[k + 1] - since) * now, sent[k + 1], k + 1
                while True:
                    end = min(sent[j + 1], until) if j < last else until
                    value = _taken(values[j, c], unit, low, high) - off + _ahead(ahead, gains, i, j, c)
                    total += (end - before) * value
                    if end >= until:
                        break
                    before, j = end, j + 1
                out[i, s, c] = total


@numba.njit(cache=True)
def sample(
    before: Array,
    record: Array,
    columns: Ints,
    wanted: Array,
    window: Ints,
    late: Array,
    first: int,
    done: Ints,
    out: Array,
) -> None:
    """Readings of a replay at the times of a log: `read` for a whole log, a stretch of steps at a time.

    Args:
        before: state at step `first`, shape (n, fields).
        record: states after steps first + 1 ..., shape (n, steps, fields).
        columns: which fields, shape (k,).
        wanted: when readings were taken [steps] since the start of each window, ascending; shape (windows, readings).
        window: of each world, shape (n,).
        late: age of each reading [steps], shape (n, k).
        first: number of steps before this stretch.
        done: readings taken so far, shape (n, k), updated.
        out: shape (n, readings, k), written.
    """
    n, steps, _ = record.shape
    for i in range(n):
        times = wanted[window[i]]
        for j in range(len(columns)):
            c, m = columns[j], done[i, j]
            while m < len(times):
                step = times[m] - late[i, j] - first
                if not step <= steps:  # later, or NaN where a window has fewer readings than others
                    break
                step = max(step, 0.0)
                whole = int(step)
                part = step - whole
                a = before[i, c] if whole == 0 else record[i, whole - 1, c]
                out[i, m, j] = a + part * (record[i, whole, c] - a) if part > 0.0 else a
                m += 1
            done[i, j] = m


@numba.vectorize(["float64(float64, float64)"], cache=True)
def in_steps(seconds: float, timestep: float) -> float:
    """Seconds as steps; what is a whole number of steps but for rounding becomes one."""
    steps = seconds / timestep
    whole = np.rint(steps)
    return whole if abs(steps - whole) < SNAP else steps
