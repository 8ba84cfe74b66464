"""Wiring: whether a model explains a log better with two joints swapped, or with another zero, in commands and positions alike.

What a joint must give follows from the motion by inverse dynamics. Measured torque says what it gave; else the lag of a drive
behind its command does, in proportion. So joints that carry different loads can be told apart where nothing else differs.
"""

import copy
from collections.abc import Iterator, Sequence

import mujoco
import numpy as np
from scipy.ndimage import gaussian_filter1d

from gapless.arrays import Array
from gapless.logs import ERROR, INFO, WARNING, Finding, Log
from gapless.report import few
from gapless.robots import home_data
from gapless.twin import Twin

SAMPLES, MOST_JOINTS = 300, 40  # instants that are looked at; joints of a robot, whose pairs are all tried
SMOOTH = {"lag": 0.02, "torque": 0.05}  # s over which positions are smoothed before they are differentiated, and all alike
STICKS = 0.02  # rad/s below which dry friction has no direction
ZEROS = (-0.6, -0.3, -0.15, 0.15, 0.3, 0.6)  # rad that are tried
OFF = 0.3  # rad: a zero that ought to be seen
SWAPPED = 2.0
"""How much the logarithm of what stays unexplained, summed over joints, must fall: to a seventh. On 19 logs, real and
simulated, it fell by at most 0.7 for pairs; with two joints of a leg swapped, by 5.7 and more. By measured torque it fell by at
most 0.2 on logs of six robots that are right, and by 2 and more for 9 of 10 pairs that are swapped on arms and legs."""
MOVED = {"lag": 2.0, "torque": 1.0}
"""The same for zeros. On the logs that are right it fell by at most 1.0 (1.8 for one that was off a little); by measured torque
by at most 0.3."""
IDEAL = int(mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_LIMIT | mujoco.mjtDisableBit.mjDSBL_FRICTIONLOSS)


def wiring_findings(twin: Twin, log: Log) -> Iterator[Finding]:
    """Joints that seem swapped, and zeros that seem off; else on which joints this log could not tell."""
    loops = (twin.model.eq_type != int(mujoco.mjtEq.mjEQ_JOINT)).any()
    servos = not twin.floating and not loops and all(d.signal == "q" and not d.passive for d in twin.drives)
    by = "torque" if "tau" in log and set(twin.joints) <= set(log["tau"].columns) else "lag"
    if not servos or len(twin.joints) > MOST_JOINTS or (motion := _motion(log, twin.joints, by)) is None:
        return
    given, q, dq, ddq, du = motion
    model, n = copy.copy(twin.model), len(twin.joints)
    model.opt.disableflags |= IDEAL

    def unexplained(order: Sequence[int], zero: Array) -> float:
        torque = _torques(model, twin, q[:, order] - zero, dq[:, order], ddq[:, order])
        return float(sum(_unexplained(given[:, j], torque[:, i], dq[:, j], du[:, j]) for i, j in enumerate(order)))

    as_it_is = unexplained(range(n), np.zeros(n))
    swaps = {(i, j): unexplained(_swapped(n, i, j), np.zeros(n)) - as_it_is for i in range(n) for j in range(i + 1, n)}
    zeros = {(i, off): unexplained(range(n), off * np.eye(n)[i]) - as_it_is for i in range(n) for off in ZEROS}
    pair = min(swaps, key=lambda p: swaps[p], default=None)
    joint, off = min(zeros, key=lambda z: zeros[z])
    better = "the model explains far better " + {"lag": "how they lag behind their commands", "torque": "the torque"}[by]
    if pair and swaps[pair] < min(-SWAPPED, zeros[joint, off]):
        one, other = (twin.joints[i] for i in pair)
        text = f"{one} and {other} seem swapped, in q and q_cmd alike: {better} with their names exchanged"
        yield Finding("swapped", ERROR, text, "q", one, value=swaps[pair], unit="1")
    elif zeros[joint, off] < -MOVED[by]:
        name = twin.joints[joint]
        size = f"{off:+g} rad ({np.degrees(off):+.0f} deg)"
        text = f"the zero of {name} seems to be off by about {size}, in q and q_cmd alike: {better} with that zero"
        yield Finding("zero", WARNING, text, "q", name, value=off, unit="rad")
    else:
        alike = [f"{twin.joints[i]} and {twin.joints[j]}" for (i, j), rise in swaps.items() if rise < SWAPPED]
        free = [name for i, name in enumerate(twin.joints) if min(zeros[i, -OFF], zeros[i, OFF]) < MOVED[by]]
        yield from _cannot_tell(alike, free, len(swaps), n, by)


def _cannot_tell(alike: list[str], free: list[str], pairs: int, joints: int, by: str) -> Iterator[Finding]:
    """Which swaps and zeros this log would not show, were they wrong."""
    names = "any two joints" if len(alike) == pairs else few(alike)
    zeros = "any joint" if len(free) == joints else few(free)
    parts = [f"exchanged names of {names}"] * bool(alike) + [f"a zero that is {OFF:g} rad off on {zeros}"] * bool(free)
    if parts:
        more = "; measured torque (tau) would tell more" if by == "lag" else ""
        yield Finding("not_told", INFO, f"this log would not show {', nor '.join(parts)}{more}")


def _swapped(n: int, i: int, j: int) -> list[int]:
    order = list(range(n))
    order[i], order[j] = j, i
    return order


def _motion(log: Log, joints: Sequence[str], by: str) -> list[Array] | None:
    """Torque or lag behind the command, position, velocity, acceleration, and the command's velocity; None for a short log.

    Shape of each: (SAMPLES, joints).
    """
    clock = log["q"].time
    wanted = log.at("q_cmd", clock)[:, [log["q_cmd"].columns.index(j) for j in joints]]
    q, rate = log["q"].of(joints), log.rate("q")
    given = wanted - q if by == "lag" else log.at("tau", clock)[:, [log["tau"].columns.index(j) for j in joints]]
    seen = np.isfinite(q).all(axis=1) & np.isfinite(wanted).all(axis=1) & np.isfinite(given).all(axis=1)
    if seen.sum() < SAMPLES / 2 or not rate > 0:
        return None
    even = np.arange(clock[seen][0], clock[seen][-1], 1 / rate)
    q, wanted, given = (np.column_stack([np.interp(even, clock[seen], c) for c in x[seen].T]) for x in (q, wanted, given))

    def smooth(x: Array, order: int = 0) -> Array:
        return np.asarray(gaussian_filter1d(x, max(1.0, SMOOTH[by] * rate), axis=0, order=order) * rate**order)

    rows = np.linspace(0, len(even) - 1, min(SAMPLES, len(even))).astype(int)
    return [x[rows] for x in (smooth(given), smooth(q), smooth(q, 1), smooth(q, 2), smooth(wanted, 1))]


def _torques(model: mujoco.MjModel, twin: Twin, q: Array, dq: Array, ddq: Array) -> Array:
    """What the drives must have given, without friction, by inverse dynamics [N m]. Shape: (samples, joints)."""
    data, out = home_data(model), np.empty_like(q)
    places, dofs = [d.qpos for d in twin.drives], [d.dof for d in twin.drives]
    for i in range(len(q)):
        data.qpos[places], data.qvel[dofs], data.qacc[dofs] = q[i], dq[i], ddq[i]
        mujoco.mj_inverse(model, data)
        out[i] = data.qfrc_inverse[dofs]
    return out


def _unexplained(given: Array, torque: Array, dq: Array, du: Array) -> float:
    """Logarithm of the share of a joint's torque or lag that neither the motion nor damping, delay, dry friction explain."""
    others = np.column_stack([dq, du, np.tanh(dq / STICKS)])
    basis, _ = np.linalg.qr(others / (np.linalg.norm(others, axis=0) + 1e-12))
    given, torque = (x - basis @ (basis.T @ x) for x in (given, torque))
    alike = max(0.0, float(given @ torque) / (float(np.linalg.norm(given) * np.linalg.norm(torque)) + 1e-30))
    return float(np.log(max(1 - alike**2, 1e-3)))
