"""Wiring: whether a model explains a log better with two joints swapped, or with another zero, in commands and positions alike.

A drive that holds a position lags behind its command in proportion to the torque that it must give. That torque follows from
the motion by inverse dynamics, so that joints which carry different loads can be told apart where nothing else differs.
"""

import copy
from collections.abc import Iterator, Sequence

import mujoco
import numpy as np
from scipy.ndimage import gaussian_filter1d

from gapless.arrays import Array
from gapless.logs import ERROR, WARNING, Finding, Log
from gapless.robots import home_data
from gapless.twin import Twin

SAMPLES, MOST_JOINTS = 300, 40  # instants that are looked at; joints of a robot, whose pairs are all tried
SMOOTH = 0.02  # s over which positions are smoothed before they are differentiated
STICKS = 0.02  # rad/s below which dry friction has no direction
ZEROS = (-0.6, -0.3, -0.15, 0.15, 0.3, 0.6)  # rad that are tried
DECISIVE = 2.0
"""How much the logarithm of what stays unexplained, summed over joints, must fall: to a seventh. On 19 logs, real and
simulated, it fell by at most 0.7 for pairs and 1.0 for zeros (1.8 for one that was off a little); with two joints of a leg
swapped, by 5.7 and more."""
IDEAL = int(mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_LIMIT | mujoco.mjtDisableBit.mjDSBL_FRICTIONLOSS)


def wiring_findings(twin: Twin, log: Log) -> Iterator[Finding]:
    """Joints that seem swapped, and zeros that seem off; none where the model or the log cannot tell."""
    servos = not twin.floating and twin.model.neq == 0 and all(d.signal == "q" and not d.passive for d in twin.drives)
    if not servos or len(twin.joints) > MOST_JOINTS or (motion := _motion(log, twin.joints)) is None:
        return
    lag, q, dq, ddq, du = motion
    model, n = copy.copy(twin.model), len(twin.joints)
    model.opt.disableflags |= IDEAL

    def unexplained(order: Sequence[int], zero: Array) -> float:
        torque = _torques(model, twin, q[:, order] - zero, dq[:, order], ddq[:, order])
        return float(sum(_unexplained(lag[:, j], torque[:, i], dq[:, j], du[:, j]) for i, j in enumerate(order)))

    as_it_is = unexplained(range(n), np.zeros(n))
    swaps = {(i, j): unexplained(_swapped(n, i, j), np.zeros(n)) - as_it_is for i in range(n) for j in range(i + 1, n)}
    zeros = {(i, off): unexplained(range(n), off * np.eye(n)[i]) - as_it_is for i in range(n) for off in ZEROS}
    pair = min(swaps, key=lambda p: swaps[p], default=None)
    joint, off = min(zeros, key=lambda z: zeros[z])
    if pair and swaps[pair] < min(-DECISIVE, zeros[joint, off]):
        one, other = (twin.joints[i] for i in pair)
        text = f"{one} and {other} seem swapped, in q and q_cmd alike: the model explains how they lag behind their commands "
        yield Finding("swapped", ERROR, text + "far better with their names exchanged", "q", one, value=swaps[pair], unit="1")
    elif zeros[joint, off] < -DECISIVE:
        name = twin.joints[joint]
        size = f"{off:+g} rad ({np.degrees(off):+.0f} deg)"
        text = f"the zero of {name} seems to be off by about {size}, in q and q_cmd alike: the model "
        yield Finding(
            "zero", WARNING, text + "explains far better how it lags behind its command", "q", name, value=off, unit="rad"
        )


def _swapped(n: int, i: int, j: int) -> list[int]:
    order = list(range(n))
    order[i], order[j] = j, i
    return order


def _motion(log: Log, joints: Sequence[str]) -> list[Array] | None:
    """Lag behind the command, position, velocity, acceleration, and the command's velocity; None for a log that is too short.

    Shape of each: (SAMPLES, joints).
    """
    clock = log["q"].time
    wanted = log.at("q_cmd", clock)[:, [log["q_cmd"].columns.index(j) for j in joints]]
    q, rate = log["q"].of(joints), log.rate("q")
    seen = np.isfinite(q).all(axis=1) & np.isfinite(wanted).all(axis=1)
    if seen.sum() < SAMPLES / 2 or not rate > 0:
        return None
    even = np.arange(clock[seen][0], clock[seen][-1], 1 / rate)
    q, wanted = (np.column_stack([np.interp(even, clock[seen], c) for c in x[seen].T]) for x in (q, wanted))

    def smooth(x: Array, order: int = 0) -> Array:
        return np.asarray(gaussian_filter1d(x, max(1.0, SMOOTH * rate), axis=0, order=order) * rate**order)

    rows = np.linspace(0, len(even) - 1, min(SAMPLES, len(even))).astype(int)
    return [x[rows] for x in (smooth(wanted - q), smooth(q), smooth(q, 1), smooth(q, 2), smooth(wanted, 1))]


def _torques(model: mujoco.MjModel, twin: Twin, q: Array, dq: Array, ddq: Array) -> Array:
    """What the drives must have given, without friction, by inverse dynamics [N m]. Shape: (samples, joints)."""
    data, out = home_data(model), np.empty_like(q)
    places, dofs = [d.qpos for d in twin.drives], [d.dof for d in twin.drives]
    for i in range(len(q)):
        data.qpos[places], data.qvel[dofs], data.qacc[dofs] = q[i], dq[i], ddq[i]
        mujoco.mj_inverse(model, data)
        out[i] = data.qfrc_inverse[dofs]
    return out


def _unexplained(lag: Array, torque: Array, dq: Array, du: Array) -> float:
    """Logarithm of the share of a joint's lag that its torque does not explain, beside damping, delay and dry friction."""
    others = np.column_stack([dq, du, np.tanh(dq / STICKS)])
    basis, _ = np.linalg.qr(others / (np.linalg.norm(others, axis=0) + 1e-12))
    lag, torque = (x - basis @ (basis.T @ x) for x in (lag, torque))
    alike = max(0.0, float(lag @ torque) / (float(np.linalg.norm(lag) * np.linalg.norm(torque)) + 1e-30))
    return float(np.log(max(1 - alike**2, 1e-3)))
