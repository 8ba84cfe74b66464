"""The innermost part of the safety layer, compiled: a command that no limit forbids, whatever was asked for."""

import numba
import numpy as np

from gapless.arrays import Array

HITS = ("finite", "gains", "position", "speed", "torque", "power", "rate", "end")
"""What a command was changed for, in the order of the rows of `hits`."""
TRUST = 0.9
"""Share of a torque or power limit that is commanded: the drive's real gains are a tenth off at most."""
SOFT = 0.65
"""Share of the speed limit towards which a joint may be driven; what it was given before that is seen does the rest."""
BLIND = 0.45
"""The same for a drive without a position to come back to."""
GROWTH = 0.45
"""Share of the limit of the torque's rate that is commanded: two commands may reach a robot in one of its periods."""
STABLE = 0.4
"""Of inertia over delay: the largest gain of the brake on speed, which acts on readings that are that old."""
FADE = 0.35
"""Share of the speed limit over which torque in the direction of motion fades out."""
SHOCK = 1000.0
"""rad/s2 by which the world may slow a joint down before a command acts."""
RESTORE, BEYOND = 0.5, 0.1
"""Share of the torque limit that pushes a joint back which is this far beyond its end [rad]."""
DAMPED = 0.6
"""Share of the most damping that a drive always has."""
BRAKES = 0.35
"""Share of the torque limit that is counted on for stopping before the end of a range: gravity and load take the rest."""


@numba.njit(cache=True)
def _between(
    q: float,
    v: float,
    kp: float,
    kd: float,
    bound: Array,
    most: float,
    braking: float,
    inertia: float,
    age: float,
    build_up: float,
) -> tuple[float, float]:
    """Least and largest torque of a joint that neither makes it too fast nor lets it run into an end; both within `most`."""
    low, high, velocity, torque = bound[0], bound[1], bound[2], bound[3]
    up, down = most, -most
    drift = kp * abs(v) * age  # by which a spring that brakes tightens before it acts
    shock = kd * min(abs(v), SHOCK * age)  # by which damping may vanish that now takes torque off
    if v > 0.0:
        down, up = min(down + drift, 0.0), max(up - shock, 0.0)
    else:
        down, up = min(down + shock, 0.0), max(up - drift, 0.0)
    gain = min(torque / (FADE * velocity), STABLE * inertia / age)
    coasting = abs(v) * (age + build_up)
    soft = SOFT * velocity if kp > 0.0 else BLIND * velocity
    fastest_up = min(soft, np.sqrt(2.0 * braking * max(high - q - coasting, 0.0)))
    fastest_down = min(soft, np.sqrt(2.0 * braking * max(q - low - coasting, 0.0)))
    # before an end the brake leads: it gives what stopping takes, and corrects what is left
    lead = most if fastest_up < soft and v > 0.0 else 0.0
    above = gain * (fastest_up - v) - BRAKES * lead * min(1.0, v / (fastest_up + 0.1))
    lead = most if fastest_down < soft and v < 0.0 else 0.0
    below = gain * (fastest_down + v) - BRAKES * lead * min(1.0, -v / (fastest_down + 0.1))
    # beyond an end it pushes back
    above -= RESTORE * torque * min(max((q - high) / BEYOND, 0.0), 1.0)
    below -= RESTORE * torque * min(max((low - q) / BEYOND, 0.0), 1.0)
    if above < up:
        up = max(above, down)
    if -below > down:
        down = min(-below, up)
    return down, up


@numba.njit(cache=True)
def _put(
    given: float,
    target: float,
    speed: float,
    kp: float,
    kd: float,
    ahead: float,
    q: float,
    v: float,
    bound: Array,
    out: Array,
) -> bool:
    """Write the command (5,) that gives this torque now; whether the end of the range kept its target."""
    low, high, velocity, torque = bound[0], bound[1], bound[2], bound[3]
    change = given - (kp * (target - q) + kd * (speed - v) + ahead)
    ended = False
    if kp > 0.0:
        moved = target + change / kp
        target = min(max(moved, low), high)
        ended = target != moved
        change = kp * (moved - target)
    if kd > 0.0:
        moved = speed + change / kd
        speed = min(max(moved, -SOFT * velocity), SOFT * velocity)
        change = kd * (moved - speed)
    ahead += change
    out[0], out[1], out[2], out[3] = target, speed, kp, kd
    out[4] = min(max(ahead, -torque), torque)
    return ended


@numba.njit(cache=True)
def clamp(
    wanted: Array,
    last: Array,
    q: Array,
    dq: Array,
    bounds: Array,
    braking: Array,
    inertia: Array,
    dt: float,
    age: float,
    build_up: float,
    out: Array,
    hits: Array,
) -> None:
    """Write into `out` the command nearest to `wanted` that keeps every limit; shapes (5, joints) by rows of MIT.

    Torque is predicted from the newest reading, and bounded so that it neither drives a joint beyond its speed limit, nor
    beyond what it can still brake before the end of its range, nor grows too quickly. Where the drive has a gain, its target
    is moved so that it asks for no more; what is left over goes into the torque that is fed forward.

    Args:
        wanted: what is asked for; NaN and infinities are replaced by what was sent last.
        last: what was sent last.
        q, dq: newest readings. Shape: (joints,).
        bounds: low, high, velocity, torque, power, rate, kp, kd. Shape: (8, joints).
        braking: deceleration to count on [rad/s2]. inertia: least that a drive sees [kg m2]. Shape: (joints,).
        dt: since the last command [s].
        age: of the readings when the command acts [s].
        build_up: time in which torque and gains may go from nothing to their limits [s].
        out, hits: the command, and how often each of HITS changed one.
    """
    for j in range(len(q)):
        low, high, velocity, torque, power, rate, most_kp, most_kd = bounds[:, j]
        for row in range(5):
            out[row, j] = wanted[row, j]
            if not np.isfinite(out[row, j]):
                out[row, j] = last[row, j]
                hits[0] += 1
        kp, kd = min(max(out[2, j], 0.0), most_kp), min(max(out[3, j], 0.0), most_kd)
        hits[1] += kp != out[2, j] or kd != out[3, j]
        fade = dt / build_up  # gains do not jump either: then torque does not, wherever the joint really is
        plain, floor = kd, min(DAMPED * most_kd, torque / velocity)
        kd = max(kd, floor)  # a drive damps within microseconds what readings show only later; asked for is the same torque now
        kp = min(max(kp, last[2, j] - fade * most_kp), last[2, j] + fade * most_kp)
        kd = min(max(kd, last[3, j] - fade * most_kd), last[3, j] + fade * most_kd)
        target = min(max(out[0, j], low), high)
        hits[2] += kp > 0.0 and target != out[0, j]
        speed = min(max(out[1, j], -SOFT * velocity), SOFT * velocity)
        hits[3] += speed != out[1, j]
        ahead = min(max(out[4, j], -torque), torque)
        asked = kp * (target - q[j]) + plain * (speed - dq[j]) + ahead
        # what the drive may give either way
        v = dq[j]
        most = min(TRUST * torque, TRUST * power / (abs(v) + TRUST * torque * age / inertia[j] + 1e-9))
        hits[5] += abs(asked) > most and most < TRUST * torque
        down, up = _between(q[j], v, kp, kd, bounds[:, j], most, braking[j], inertia[j], age, build_up)
        given = min(max(asked, down), up)
        hits[4] += given != asked
        # how quickly it changes, both commands seen from the same state
        before = last[2, j] * (last[0, j] - q[j]) + last[3, j] * (last[1, j] - v) + last[4, j]
        step = GROWTH * rate * dt
        slower = min(max(given, before - step), before + step)
        slower = min(max(slower, -TRUST * torque), TRUST * torque)  # after a blow the old command asks for too much by now
        hits[6] += slower != given
        given = slower
        hits[7] += _put(given, target, speed, kp, kd, ahead, q[j], v, bounds[:, j], out[:, j])
