"""The drives of an emulated robot, compiled: MIT commands to torques, and the audit of every limit at the robot's side."""

import numba
import numpy as np

from gapless.arrays import Array
from gapless.deploy.clamp import TRUST

AUDITED = ("position", "velocity", "torque", "power", "rate", "target", "impact")
"""What is counted: joints outside their range, too fast, asked for too much torque, giving too much power, commands whose
torque jumps, and targets outside of the range. The last is what the world does and no command could prevent: a joint that
something presses beyond its end while its drive resists, and a drive whose damping meets a blow. In the order of `counts`."""
SLACK = 0.03
"""rad (m) beyond the end of its mechanical range that a joint may be pressed: ends are a little soft."""


@numba.njit(cache=True)
def torques(command: Array, q: Array, dq: Array, ratio: Array, limit: Array, asked: Array, out: Array) -> None:
    """What drives are asked for and what they give. Shapes: command (5, joints), ratio of gains (2, joints), rest (joints,)."""
    for j in range(len(q)):
        kp, kd = command[2, j] * ratio[0, j], command[3, j] * ratio[1, j]
        tau = kp * (command[0, j] - q[j]) + kd * (command[1, j] - dq[j]) + command[4, j]
        asked[j] = tau
        out[j] = min(max(tau, -limit[j]), limit[j])


@numba.njit(cache=True)
def audit(
    command: Array,
    before: Array,
    elapsed: float,
    q: Array,
    dq: Array,
    asked: Array,
    earlier: Array,
    bounds: Array,
    driven: bool,
    touched: bool,
    counts: Array,
    most: Array,
) -> None:
    """Count what exceeds a limit, and keep the largest share of each limit that was reached.

    Args:
        command: that acts now, shape (5, joints).
        before: that acted until now.
        elapsed: time for which that one acted [s]; 0 where no new command began to act.
        q: true positions, dq: true speeds, asked: torques that the drives are asked for. Shape of each: (joints,).
        earlier: what the same command asks for in the state that it answers, a few milliseconds ago.
        bounds: low, high, velocity, torque, power and rate limits, and both mechanical ends, shape (8, joints).
        driven: whether a computer commands the robot; what its own fallback does is audited for motion only.
        touched: whether anything touches the robot.
        counts, most: by row of AUDITED, shape (7,).
    """
    for j in range(len(q)):
        low, high, velocity, torque, power, rate, first, last = bounds[:, j]
        half = 0.5 * (last - first)
        if half < 1e6:
            most[0] = max(most[0], abs(q[j] - 0.5 * (first + last)) / half)
            if q[j] < first - SLACK or q[j] > last + SLACK:
                back = (asked[j] <= 0.0 or dq[j] <= 0.0) if q[j] > last else (asked[j] >= 0.0 or dq[j] >= 0.0)
                resists = touched and back
                counts[6 if resists else 0] += 1
        share = abs(dq[j]) / velocity
        most[1] = max(most[1], share)
        counts[1] += share > 1.0
        if not driven:
            continue
        share = abs(asked[j]) / torque
        if share > 1.0 and touched and abs(earlier[j]) <= torque:
            counts[6] += 1
        else:
            most[2] = max(most[2], share)
            counts[2] += share > 1.0
        share = abs(asked[j] * dq[j]) / power
        most[3] = max(most[3], share)
        counts[3] += share > 1.0
        if elapsed > 0.0:  # both commands seen from the same state: what the drive's own damping does is no fault of a command
            old = before[2, j] * (before[0, j] - q[j]) + before[3, j] * (before[1, j] - dq[j]) + before[4, j]
            new = command[2, j] * (command[0, j] - q[j]) + command[3, j] * (command[1, j] - dq[j]) + command[4, j]
            share = 0.0 if abs(old) > TRUST * torque else abs(new - old) / elapsed / rate  # too much may be taken back at once
            most[4] = max(most[4], share)
            counts[4] += share > 1.0
        counts[5] += command[2, j] > 0.0 and (command[0, j] < low or command[0, j] > high)


def no_counts() -> tuple[Array, Array]:
    """Counts and largest shares before anything happened."""
    return np.zeros(len(AUDITED)), np.zeros(len(AUDITED))
