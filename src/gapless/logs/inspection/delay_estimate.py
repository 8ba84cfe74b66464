"""The delay from command to motion of each joint, apart from the lag of the servo itself.

A servo that follows late is not a servo that hears late: a soft drive lags without any delay. So each joint is simulated as a
drive of its own (stiffness, damping, dry friction, gravity, torque limit, all free) that hears its command d seconds late, and
all of them are fitted at once to what was measured. d can be a fraction of a sample, since commands are held in between.

What else moves a joint is taken from the log, with free weights: the drives of other joints push it through the links (their
errors and speeds, taken to hear as late as this one), and their angles change its inertia. What is still left (contacts,
configuration) is followed by an observer: at every sample the drive is corrected by a fitted share of its error, and it is
judged by how well it foretells the next sample (the prediction error method: Ljung, System Identification, 1999, ch. 7).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from gapless.compiled import compiled
from gapless.delay import received
from gapless.logs.log import Log

STEP = 2e-3
"""Time step of the simulated drive, in s: MuJoCo's own default, as semi-implicit as there. Such a drive answers half a step
early, so that the delay found is the one such a simulation needs, 1 ms above what a stopwatch would show."""
LONGEST = 0.3
"""Longest delay looked for, in s."""
MOST_SECONDS = 25.0
"""Longer logs are cut to the stretch in which the command moves most."""
MOST_SAMPLES = 3000
"""Samples compared, evenly spread; more do not change the answer."""
EARLIEST = -0.003
"""A drive does not move before it is told; an estimate a little below zero is zero."""
PROBE = 0.004
"""The fit is repeated with a delay that is wrong by this much, in s, to see whether the log minds."""
WORSE = 80.0
"""A delay is ruled out where all errors together grow by this many times that of an average sample: 8 % of 1,000 samples.
Tried on stand-ins; noise alone would make it 4, but loads that no log tells of are no noise."""
DETERMINED = 0.002
"""Above this uncertainty, in s, the log does not determine the delay."""
SMOOTH = 0.01
"""Other joints are averaged over this time, in s, before their speeds are taken."""
COUPLED = 5
"""At most so many other joints act on a joint: those that explain most of what it does by itself."""

# What is fitted: the logarithms of stiffness, damping, drag, friction and limit; how much of its own state the observer keeps;
# a bias; the weights of loads, of the errors of other drives, and of angles that change the inertia; the delay.
LOW = (0.0, -5.0, -5.0, -9.0, -2.0, 0.05, -1e5)
HIGH = (12.0, 9.0, 9.0, 9.0, 15.0, 0.999, 1e5)
# Where the search starts: natural frequency in rad/s, delay in s, and the limit as a share of the largest error's pull.
RATES = (6.0, 12.0, 25.0, 50.0, 100.0)
SHIFTS = (0.0, 0.005, 0.01, 0.02, 0.04, 0.08)
STRENGTHS = (0.15, 0.35, 0.7, 3.0)
KEEP = 0.7
"""What the observer keeps at first."""


@dataclass(frozen=True)
class Delay:
    """One joint's delay in s, how far it may move before the fit gets clearly worse, and whether the log determines it."""

    seconds: float
    uncertainty: float
    determined: bool


def delays(log: Log) -> dict[str, Delay]:
    """By joint, for all joints that were told positions and moved. Delays of command and of measurement add up in it."""
    if "q" not in log or "q_cmd" not in log:
        return {}
    time, sent = log["q"].time, log["q_cmd"].time
    if len(time) < 100 or len(sent) < 2 or np.any(np.diff(time) <= 0) or np.any(np.diff(sent) < 0):
        return {}
    if time[-1] - time[0] > 3 * len(time) * np.median(np.diff(time)):  # mostly holes
        return {}
    by_joint = {}
    for joint in log["q"].columns:
        if joint in log["q_cmd"].columns:
            q, u = log["q"].column(joint), log["q_cmd"].column(joint)
            good = np.isfinite(q) & _busiest(time, sent, u)
            if good.sum() > 100 and np.isfinite(u).all() and np.ptp(q[good]) > 0.02 and np.ptp(u) > 0.02:
                with np.errstate(all="ignore"):
                    shared = [c for c in log["q"].columns if c != joint and c in log["q_cmd"].columns]
                    others, targets = (log[s].values[:, [log[s].columns.index(c) for c in shared]] for s in ("q", "q_cmd"))
                    by_joint[joint] = _delay(_record(time[good], q[good], sent, u), others[good], targets)
    return by_joint


def together(by_joint: Mapping[str, Delay]) -> Delay | None:
    """One delay for all joints, as on a shared bus; less certain where they disagree.

    Weights fall with the fourth power of uncertainty: what makes a joint uncertain, its load, makes it wrong as well.
    """
    if not by_joint:
        return None
    seconds = np.array([d.seconds for d in by_joint.values()])
    variances = np.array([max(d.uncertainty, 1e-5) for d in by_joint.values()]) ** 2
    weights = variances**-2 / np.sum(variances**-2)
    mean = float(weights @ seconds)
    disagreement = float(np.sum((seconds - mean) ** 2 / variances)) / max(len(seconds) - 1, 1)
    spread = float(np.sqrt(max(disagreement, 1.0) * np.sum(weights**2 * variances)))
    return Delay(mean, spread, bool(spread < DETERMINED and mean > EARLIEST))


@dataclass(frozen=True)
class _Record:
    """One joint's samples and commands, and what else acts on it, on the steps of its simulated drive."""

    time: np.ndarray
    q: np.ndarray
    sent: np.ndarray
    u: np.ndarray
    edges: np.ndarray
    """Of the steps, in s. Shape: (steps + 1,)."""
    loads: np.ndarray
    """What pushes the joint, each near 1. Shape: (steps, loads)."""
    targets: np.ndarray
    """Commands to other joints, sent with its own. Shape: (joints, commands)."""
    turns: np.ndarray
    """Angles of these joints, which pull on them as commands do, and change the inertia. Shape: (steps, joints)."""
    scale: float

    def misfit(self, x: np.ndarray) -> np.ndarray:
        """What the drive foretells for each sample, less what was measured, as a share of the motion."""
        row, pairs = len(LOW) + self.loads.shape[1], self.turns.shape[1]
        heard = np.empty((1 + pairs, len(self.loads)))
        for mean, command in zip(heard, [self.u, *self.targets], strict=True):
            received(self.sent, command, self.edges[0] - x[-1], STEP, mean)
        weights = (x[len(LOW) : row], x[row : row + pairs], x[row + pairs : -1])
        push, ease = _acting(self.loads, heard[1:], self.turns, *weights)
        predicted = _drive(heard[0], push, ease, self.edges[0], self.time, self.q, *np.exp(x[:5]), *x[5:7], STEP)
        return np.nan_to_num((predicted - self.q) / self.scale, nan=1e3, posinf=1e3, neginf=-1e3)


def _record(time: np.ndarray, q: np.ndarray, sent: np.ndarray, u: np.ndarray) -> _Record:
    steps = int((time[-1] - time[0]) / STEP) + 2
    edges = time[0] + STEP * (np.arange(steps + 1) - 0.5)
    angle = np.interp(edges[:-1] + STEP / 2, time, q)
    loads = np.column_stack([np.sin(angle), np.cos(angle)])
    return _Record(time, q, sent, u, edges, loads, np.empty((0, len(sent))), np.empty((steps, 0)), float(np.std(q)) or 1.0)


def _delay(record: _Record, others: np.ndarray, targets: np.ndarray) -> Delay:
    """The joint's delay. others: positions of other joints at the same times; targets: their commands. Shape: (n, joints)."""
    seen = slice(None, None, max(1, len(record.q) // MOST_SAMPLES))
    alone = replace(record, time=record.time[seen], q=record.q[seen])
    best = min((_fitted(alone, x, 0.05) for x in _starts(alone)), key=lambda f: f[0])[1]
    coupled, x = _with_others(alone, best, record.time, others, targets)
    for _ in range(2):
        spread = 1.5 * float(np.median(np.abs(coupled.misfit(x)))) + 1e-9
        cost, x = _fitted(coupled, x, spread)
    # Other constants may take up what a wrong delay leaves: they are fitted again beside it.
    for _ in range(3):
        worse, y = min((_fitted(coupled, _later(x, side), spread, True) for side in (-PROBE, PROBE)), key=lambda f: f[0])
        if worse >= cost:
            break
        cost, x = _fitted(coupled, y, spread)  # the valley goes on there
    uncertainty = PROBE * np.sqrt(WORSE / len(alone.q) / max(worse / max(cost, 1e-12) - 1.0, 1e-6))
    inside = EARLIEST < x[-1] < LONGEST - 1e-3
    return Delay(float(x[-1]), float(uncertainty), bool(uncertainty < DETERMINED and inside))


def _starts(record: _Record) -> list[np.ndarray]:
    """The two best of many drives, of different torque limits."""
    q, u = record.q, record.u
    offset = float(np.median(q) - np.median(u))
    reach = float(np.percentile(np.abs(q - np.interp(record.time, record.sent, u)), 99)) + 1e-3
    tries: list[tuple[float, float, np.ndarray]] = []
    for rate, shift, strength in product(RATES, SHIFTS, STRENGTHS):
        k = rate**2
        logs = np.log([k, 1.4 * rate, 0.2 * rate, 0.02 * k * record.scale, strength * k * reach])
        x = np.array([*logs, KEEP, k * offset, *np.zeros(record.loads.shape[1]), shift])
        tries.append((float(np.mean(np.abs(record.misfit(x)))), strength, x))
    best = [min((t for t in tries if t[1] == s), key=lambda t: t[0]) for s in STRENGTHS]
    return [t[2] for t in sorted(best, key=lambda t: t[0])[:2]]


def _fitted(record: _Record, x: np.ndarray, spread: float, held: bool = False) -> tuple[float, np.ndarray]:
    """Cost and result of the fit from a start; `held`: with its delay. The solver sees all near 1, in steps that matter."""
    from scipy.optimize import least_squares

    loads, turns, bend = record.loads.shape[1] + record.turns.shape[1], record.turns.shape[1], 0.1 * np.exp(x[0])
    low = np.array([*LOW, *[-1e5] * loads, *[-5.0] * turns, -0.05])
    high = np.array([*HIGH, *[1e5] * loads, *[5.0] * turns, LONGEST])
    sizes = np.array([0.2, 0.2, 0.5, 0.5, 0.5, 0.05, bend, *[0.5 * bend] * loads, *[0.1] * turns, 0.005])
    free = slice(0, len(x) - held)
    x = np.clip(x, low + 1e-9, high - 1e-9)

    def full(y: np.ndarray) -> np.ndarray:
        return np.concatenate([x[free] + (y - 1) * sizes[free], x[len(y) :]])

    bounds = [1 + (edge[free] - x[free]) / sizes[free] for edge in (low, high)]
    result = least_squares(
        lambda y: record.misfit(full(y)), np.ones(len(x) - held), bounds=bounds, loss="soft_l1", f_scale=spread,
        diff_step=1e-3, ftol=3e-4, xtol=1e-4, max_nfev=20,
    )  # fmt: skip
    return float(result.cost), full(result.x)


def _later(x: np.ndarray, side: float) -> np.ndarray:
    """The same drive with another delay. One with less damping that hears later looks much the same: start there."""
    x = x.copy()
    x[-1] += side
    x[1] = np.log(max(np.exp(x[1]) - side * np.exp(x[0]), 0.1 * np.exp(x[1])))
    return x


def _with_others(
    record: _Record, x: np.ndarray, time: np.ndarray, others: np.ndarray, targets: np.ndarray
) -> tuple[_Record, np.ndarray]:
    """The record with the joints that act on it most, and where its fit starts."""
    moves = np.isfinite(others).all(axis=0) & np.isfinite(targets).all(axis=0) & (np.ptp(others, axis=0) > 0.02)
    others, targets = others[:, moves], targets[:, moves]
    if not moves.any():
        return record, x
    centre, size = others.mean(axis=0), others.std(axis=0)
    speeds, turns = _motion(time, (others - centre) / size, record.edges)
    commands = np.ascontiguousarray(((targets - centre) / size).T)
    rest = record.misfit(x)
    usual = np.clip(rest, *np.array([-4.0, 4.0]) * np.median(np.abs(rest)))
    gain = []
    for j in range(len(size)):
        wider = replace(record, targets=commands[[j]], turns=turns[:, [j]])
        effect = wider.misfit(np.concatenate([x[:-1], [0.01 * np.exp(x[0]), 0.0], x[-1:]])) - rest
        gain.append(float(usual @ effect) ** 2 / max(float(effect @ effect), 1e-12))
    most = np.sort(np.argsort(gain)[::-1][:COUPLED])
    wider = replace(
        record,
        loads=np.column_stack([record.loads, speeds[:, most]]),
        targets=commands[most],
        turns=turns[:, most],
    )
    return wider, np.concatenate([x[:-1], np.zeros(3 * len(most)), x[-1:]])


def _motion(time: np.ndarray, others: np.ndarray, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Speeds (of size 1) and angles of joints on the steps of a drive. Shapes: (steps, joints)."""
    from scipy.interpolate import CubicSpline

    block = max(1, round(SMOOTH / float(np.median(np.diff(time)))))
    count = len(time) // block
    means = [a[: count * block].reshape(count, block, -1).mean(axis=1) for a in (time[:, None], others)]
    curve = CubicSpline(means[0][:, 0], means[1])
    inside = np.clip(edges[:-1] + STEP / 2, means[0][0, 0], means[0][-1, 0])
    speeds = curve(inside, 1)
    return speeds / np.maximum(speeds.std(axis=0), 1e-9), curve(inside)


def _busiest(time: np.ndarray, sent: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Which samples lie in the stretch of MOST_SECONDS in which the command changes most."""
    if time[-1] - time[0] <= MOST_SECONDS:
        return np.ones(len(time), bool)
    way = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(u)))])
    starts = np.arange(time[0], time[-1] - MOST_SECONDS, MOST_SECONDS / 4)
    gain = [np.interp(s + MOST_SECONDS, sent, way) - np.interp(s, sent, way) for s in starts]
    start = starts[int(np.argmax(gain))]
    return (time >= start) & (time < start + MOST_SECONDS)


@compiled
def _acting(loads, heard, turns, weights, pulls, shares):  # type: ignore[no-untyped-def]
    """What pushes in each step, and the inverse of inertia. Shapes: (steps,). Its own loop, since BLAS threads wait here."""
    push, ease = np.zeros(len(loads)), np.empty(len(loads))
    for i in range(len(loads)):
        inertia = 1.0
        for j in range(len(weights)):
            push[i] += loads[i, j] * weights[j]
        for j in range(len(pulls)):
            push[i] += pulls[j] * (heard[j, i] - turns[i, j])
            inertia += turns[i, j] * shares[j]
        ease[i] = 1.0 / max(inertia, 0.2)
    return push, ease


@compiled
def _drive(heard, push, ease, start, time, measured, stiffness, damping, drag, friction, limit, keep, bias, step):  # type: ignore[no-untyped-def]
    """What a drive of unit inertia, corrected at each sample, foretells for it. Shape: (samples,).

    stiffness (1/s^2) and damping (1/s) of the controller, whose sum is limited (rad/s^2); drag (1/s) and dry friction
    (rad/s^2) of the joint; pushes (rad/s^2) and the inverse of inertia by step. The observer holds position, speed and a load
    and forgets them by `keep` (fading memory filter: Morrison, Introduction to Sequential Smoothing, 1969, ch. 13).
    """
    predicted = np.empty(len(time))
    near, speed, load = 1 - keep**3, 1.5 * (1 - keep) ** 2 * (1 + keep), (1 - keep) ** 3
    q, v, extra, k, last = measured[0], 0.0, 0.0, 0, start - 1.0
    for i in range(len(heard)):
        begin, h = start + i * step, step * ease[i]
        pull = push[i] + bias + extra
        spring = stiffness * (heard[i] - q)
        fast = (v + h * (spring + pull)) / (1.0 + h * (damping + drag))
        drive = spring - damping * fast
        if abs(drive) > limit:
            fast = (v + h * (np.sign(drive) * limit + pull)) / (1.0 + h * drag)
        v = 0.0 if abs(fast) <= h * friction else fast - h * friction * np.sign(fast)
        while k < len(time) and time[k] <= begin + step:
            predicted[k] = q + (time[k] - begin) * v
            error, since = measured[k] - predicted[k], min(max(time[k] - last, step), 0.05)
            q, v, extra = q + near * error, v + speed * error / since, extra + load * error / since**2
            k, last = k + 1, time[k]
        q += step * v
    predicted[k:] = q
    return predicted
