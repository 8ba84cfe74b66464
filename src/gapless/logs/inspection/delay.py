"""The delay from command to motion of each joint, apart from the lag of the servo itself.

A servo that follows late is not a servo that hears late: a soft drive lags without any delay. So each joint is simulated as a
drive of its own (stiffness, damping, dry friction, gravity, torque limit, all free) that hears its command d seconds late, and
all of them are fitted at once to what was measured. d can be a fraction of a sample, since commands are held in between.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numba
import numpy as np

from gapless.logs.log import Log

STEP = 1e-3
"""Time step of the simulated drive, in s."""
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
DETERMINED = 0.003
"""Above this uncertainty, in s, the log does not determine the delay."""

# What is fitted: the logarithms of stiffness, damping, drag, friction and limit; gravity by sine and cosine, bias; delay.
LOW = np.array([0.0, -5.0, -5.0, -9.0, -2.0, -1e4, -1e4, -1e5, -0.05])
HIGH = np.array([12.0, 9.0, 9.0, 9.0, 15.0, 1e4, 1e4, 1e5, LONGEST])
# Where the search starts: natural frequency in rad/s, delay in s, and the limit as a share of the largest error's pull.
RATES = (6.0, 12.0, 25.0, 50.0, 100.0)
SHIFTS = (0.0, 0.005, 0.01, 0.02, 0.04, 0.08)
STRENGTHS = (0.15, 0.35, 0.7, 3.0)


@dataclass(frozen=True)
class Delay:
    """One joint's delay in s, how far it may move before the fit gets 20 % worse, and whether the log determines it."""

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
    found = {}
    for joint in log["q"].columns:
        if joint in log["q_cmd"].columns:
            q, u = log["q"].column(joint), log["q_cmd"].column(joint)
            good = np.isfinite(q) & _busiest(time, sent, u)
            if good.sum() > 100 and np.isfinite(u).all() and np.ptp(q[good]) > 0.02 and np.ptp(u) > 0.02:
                with np.errstate(all="ignore"):
                    found[joint] = _delay(time[good], q[good], sent, u)
    return found


def together(found: Mapping[str, Delay]) -> Delay | None:
    """One delay for all joints, as on a shared bus: weighted by certainty, less certain where they disagree."""
    if not found:
        return None
    seconds = np.array([d.seconds for d in found.values()])
    weights = 1 / np.array([max(d.uncertainty, 1e-5) for d in found.values()]) ** 2
    mean = float(weights @ seconds / weights.sum())
    disagreement = float(weights @ (seconds - mean) ** 2) / max(len(seconds) - 1, 1)
    spread = float(np.sqrt(max(disagreement, 1.0) / weights.sum()))
    return Delay(mean, spread, bool(spread < DETERMINED and mean > EARLIEST))


def _delay(time: np.ndarray, q: np.ndarray, sent: np.ndarray, u: np.ndarray) -> Delay:
    from scipy.optimize import least_squares

    # The integral of a held command is exact between any two times, so a shift by part of a step is smooth.
    integral = np.concatenate([[0.0], np.cumsum(u[:-1] * np.diff(sent))])
    steps = int((time[-1] - time[0]) / STEP) + 2
    edges = time[0] + STEP * np.arange(steps + 1)
    speed = (q[min(3, len(q) - 1)] - q[0]) / (time[min(3, len(q) - 1)] - time[0])

    def heard(shift: float) -> np.ndarray:
        at = edges - shift
        whole = np.interp(at, sent, integral) + u[0] * np.minimum(at - sent[0], 0) + u[-1] * np.maximum(at - sent[-1], 0)
        return np.diff(whole) / STEP

    def motion(x: np.ndarray) -> np.ndarray:
        path = _drive(heard(x[-1]), q[0], speed, *np.exp(x[:5]), *x[5:8], STEP)  # type: ignore[call-arg]
        return np.interp(time, edges, path)

    scale = float(np.std(q)) or 1.0
    seen = slice(None, None, max(1, len(q) // MOST_SAMPLES))
    time, q = time[seen], q[seen]

    def misfit(x: np.ndarray) -> np.ndarray:
        return np.nan_to_num((motion(x) - q) / scale, nan=1e3, posinf=1e3, neginf=-1e3)

    offset = float(np.median(q) - np.median(u))
    reach = float(np.percentile(np.abs(q - np.interp(time, sent, u)), 99)) + 1e-3
    tries: list[tuple[float, float, np.ndarray]] = []
    for rate, shift, strength in product(RATES, SHIFTS, STRENGTHS):
        k = rate**2
        logs = np.log([k, 1.4 * rate, 0.2 * rate, 0.02 * k * scale, strength * k * reach])
        x = np.array([*logs, 0.0, 0.0, k * offset, shift])
        tries.append((float(np.mean(np.abs(misfit(x)))), strength, x))
    bend = 0.1 * float(np.exp(min(tries, key=lambda t: t[0])[2][0]))
    sizes = np.array([0.2, 0.2, 0.5, 0.5, 0.5, bend, bend, bend, 0.005])

    def fitted(x: np.ndarray, free: int = len(LOW)) -> tuple[float, np.ndarray]:
        """The fit from a start, over the first `free` parameters. The solver sees them near 1, in steps that matter."""
        x = np.clip(x, LOW + 1e-9, HIGH - 1e-9)

        def full(y: np.ndarray) -> np.ndarray:
            return np.concatenate([x[:free] + (y - 1) * sizes[:free], x[free:]])

        bounds = [1 + (edge[:free] - x[:free]) / sizes[:free] for edge in (LOW, HIGH)]
        result = least_squares(
            lambda y: misfit(full(y)), np.ones(free), bounds=bounds, loss="soft_l1", f_scale=0.05, diff_step=1e-3,
            ftol=1e-5, xtol=1e-5, max_nfev=60,
        )  # fmt: skip
        return float(result.cost), full(result.x)

    def probed(x: np.ndarray, side: float) -> tuple[float, np.ndarray]:
        """The fit with another delay. A drive with less damping that hears later looks much the same: start there."""
        x = x + np.array([0.0] * (len(x) - 1) + [side])
        x[1] = np.log(max(np.exp(x[1]) - side * np.exp(x[0]), 0.1 * np.exp(x[1])))
        return fitted(x, len(x) - 1)

    best = [min((t for t in tries if t[1] == s), key=lambda t: t[0]) for s in STRENGTHS]
    cost, x = min((fitted(t[2]) for t in sorted(best, key=lambda t: t[0])[:2]), key=lambda f: f[0])
    # Other constants may take up what a wrong delay leaves: they are fitted again beside it.
    for _ in range(6):
        worse, y = min((probed(x, side) for side in (-PROBE, PROBE)), key=lambda f: f[0])
        if worse >= cost:
            break
        cost, x = fitted(y)  # the valley goes on there
    spread = PROBE * np.sqrt(0.2 / max(worse / max(cost, 1e-12) - 1.0, 1e-6))
    behind = float(np.sum(((q - np.interp(time, sent, u)) / scale) ** 2))
    explained = 2 * cost < 0.7 * behind
    inside = EARLIEST < x[-1] < HIGH[-1] - 1e-3
    return Delay(float(x[-1]), float(spread), bool(spread < DETERMINED and explained and inside))


def _busiest(time: np.ndarray, sent: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Which samples lie in the stretch of MOST_SECONDS in which the command changes most."""
    if time[-1] - time[0] <= MOST_SECONDS:
        return np.ones(len(time), bool)
    way = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(u)))])
    starts = np.arange(time[0], time[-1] - MOST_SECONDS, MOST_SECONDS / 4)
    gain = [np.interp(s + MOST_SECONDS, sent, way) - np.interp(s, sent, way) for s in starts]
    start = starts[int(np.argmax(gain))]
    return (time >= start) & (time < start + MOST_SECONDS)


@numba.njit(cache=True)
def _drive(heard, q, v, stiffness, damping, drag, friction, limit, g_sin, g_cos, bias, step):  # type: ignore[no-untyped-def]
    """A drive of unit inertia. Shape: (steps + 1,).

    stiffness (1/s^2) and damping (1/s) of the controller, whose sum is limited (rad/s^2); drag (1/s) and dry friction
    (rad/s^2) of the joint; gravity by its angle, and a bias.
    """
    path = np.empty(len(heard) + 1)
    path[0] = q
    for i in range(len(heard)):
        load = bias - g_sin * np.sin(q) - g_cos * np.cos(q)
        spring = stiffness * (heard[i] - q)
        fast = (v + step * (spring + load)) / (1.0 + step * (damping + drag))
        drive = spring - damping * fast
        if abs(drive) > limit:
            fast = (v + step * (np.sign(drive) * limit + load)) / (1.0 + step * drag)
        v = 0.0 if abs(fast) <= step * friction else fast - step * friction * np.sign(fast)
        q += step * v
        path[i + 1] = q
    return path
