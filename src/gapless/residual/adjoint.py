"""Joints simulated alone with their networks, and the exact gradient of their errors by the weights: the adjoint by hand.

A step is the one that `own_run` inverts: drive and network before it, damping at its end, dry friction that sticks. What
friction does while it sticks has no slope, and how its size changes with speed and load is left out of the gradient.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from gapless.arrays import Array
from gapless.compiled import compiled
from gapless.twin import dry_friction, learned

COUNT, HEAD, CREEP, WINDUP = learned.COUNT, learned.HEAD, learned.CREEP, learned.WINDUP
VELOCITY_TIME, PUSH_TIME = learned.VELOCITY_TIME, learned.PUSH_TIME
FAST = {"contract", "reassoc", "arcp"}


@compiled(parallel=True)
def simulate(felt, pieces, nets, joints, dt, penalty, backwards, limited, loss, slope, x_out, tau_out):  # type: ignore[no-untyped-def]
    """Run pieces of joints, each with its network; their losses, and slopes by the weights.

    Args:
        felt: what joints felt, as `own_run.Felt`, piece after piece. Shape: (12, steps).
        pieces: first and last step of each, the step from which it is compared, and its joint. Shape: (pieces, 4).
        nets: numbers of each joint's network. Shape: (joints, numbers).
        joints: of each joint the 8 numbers of its grip, its damping, the least and the most of its drive, and the error beyond
            which errors count less than their square [rad]. Shape: (joints, 12).
        dt: time step [s].
        penalty: on the squared torque of a step, in units of its bound.
        backwards: whether slopes are wanted.
        limited: whether a network's torque is part of what the drive gives within its limits, as a shift of its target is.
        loss: of each piece, a result; slope: (pieces, weights), too.
        x_out: position before each step, a result; tau_out: torque of the network, too. Shape: (steps,).
    """
    for job in numba.prange(len(pieces)):
        first, last, begin, j = pieces[job]
        rows = slice(first, last)
        loss[job] = _piece(
            felt[:, rows], begin - first, nets[j], joints[j], dt, penalty, backwards, limited, slope[job], x_out[rows],
            tau_out[rows],
        )  # fmt: skip


@compiled(fastmath=FAST)
def _piece(felt, begin, net, joint, dt, penalty, backwards, limited, slope, x_out, tau_out):  # type: ignore[no-untyped-def]
    n, hidden, weights = felt.shape[1], int(net[0]), net[HEAD:]
    damping, low, high, size = joint[8], joint[9], joint[10], joint[11]
    kept = np.empty(
        (n, 6)
    )  # before each step: x, v, windup, slow velocity, slow push; 1: friction holds, 2: drive at its limit
    u, s = np.empty(COUNT), np.empty(hidden)
    x, v, z, slow_v, slow_push = felt[0, 0], felt[1, 0], 0.0, felt[1, 0], felt[2, 0] + felt[3, 0] * felt[0, 0]
    total, late_v, late_push = 0.0, dt / (VELOCITY_TIME + dt), dt / (PUSH_TIME + dt)
    for k in range(n):
        kept[k, 0], kept[k, 1], kept[k, 2], kept[k, 3], kept[k, 4] = x, v, z, slow_v, slow_push
        push = felt[2, k] + felt[3, k] * x
        if k > 0:
            way = 1.0 if v > 0.0 else -1.0
            z = way + (z - way) * math.exp(-abs(v) * dt / WINDUP)
            slow_v += late_v * (v - slow_v)
            slow_push += late_push * (push - slow_push)
        _inputs(net, push, v, felt[5, k], felt[6, k], x, z, slow_v, slow_push, u)
        y = _net(weights, hidden, u, s)
        tau = net[1] * y / (1.0 + abs(y))
        total += penalty * (y / (1.0 + abs(y))) ** 2
        torque = push + felt[4, k] * v + (tau if limited else 0.0)
        held = torque < low or torque > high
        torque = min(max(torque, low), high)
        den = felt[7, k] + dt * (damping - (0.0 if held else felt[4, k]))
        free = v + dt * (torque - damping * v + (0.0 if limited else tau) - felt[8, k] - felt[9, k] * (x - felt[0, k])) / den
        grip = dry_friction(v, torque, x - joint[0], joint[1], joint[2], joint[3], joint[4], joint[5], joint[6], joint[7])
        slow = dt * grip / den
        after = free - slow if free > slow else free + slow if free < -slow else 0.0
        kept[k, 5] = (2.0 if held else 0.0) + (1.0 if after == 0.0 and slow > 0.0 else 0.0)
        x_out[k], tau_out[k] = x, tau
        moved = x + dt * after
        if k >= begin and math.isfinite(felt[10, k]):
            e = (x + felt[11, k] * (moved - x) - felt[10, k]) / size
            total += math.sqrt(1.0 + e * e) - 1.0
        x, v = moved, after
    if backwards:
        _back(felt, begin, net, kept, x, damping, dt, size, penalty, limited, slope, u, s)
    return total


@compiled(fastmath=FAST)
def _back(felt, begin, net, kept, end, damping, dt, size, penalty, limited, slope, u, s):  # type: ignore[no-untyped-def]
    """The adjoint, from the last step to the first: `a_` of something is what it does to the loss. end: the last position."""
    n, hidden, weights = felt.shape[1], int(net[0]), net[HEAD:]
    inward, outward, linear = COUNT * hidden, (COUNT + 1) * hidden, (COUNT + 2) * hidden
    late_v, late_push = dt / (VELOCITY_TIME + dt), dt / (PUSH_TIME + dt)
    a_u, a_s = np.empty(COUNT), np.empty(hidden)
    a_x = a_v = a_z = a_slow_v = a_slow_push = 0.0
    slope[:] = 0.0
    for k in range(n - 1, -1, -1):
        x, v, z0 = kept[k, 0], kept[k, 1], kept[k, 2]
        stuck, held = kept[k, 5] == 1.0 or kept[k, 5] == 3.0, kept[k, 5] >= 2.0
        push, way, decay = felt[2, k] + felt[3, k] * x, 1.0 if v > 0.0 else -1.0, math.exp(-abs(v) * dt / WINDUP)
        z, slow_v, slow_push = z0, kept[k, 3], kept[k, 4]
        if k > 0:
            z = way + (z0 - way) * decay
            slow_v += late_v * (v - slow_v)
            slow_push += late_push * (push - slow_push)
        _inputs(net, push, v, felt[5, k], felt[6, k], x, z, slow_v, slow_push, u)
        y = _net(weights, hidden, u, s)
        here = 0.0
        if k >= begin and math.isfinite(felt[10, k]):
            e = (x + felt[11, k] * (end - x) - felt[10, k]) / size
            pull = e / math.sqrt(1.0 + e * e) / size
            a_x += felt[11, k] * pull
            here = (1.0 - felt[11, k]) * pull
        end = x
        a_free = 0.0 if stuck else a_v + dt * a_x
        a_force = a_free * dt / (felt[7, k] + dt * (damping - (0.0 if held else felt[4, k])))
        a_v = a_free - damping * a_force
        a_x += here - felt[9, k] * a_force
        a_push = 0.0
        if not held:
            a_push = a_force
            a_v += felt[4, k] * a_force
        a_y = (net[1] * (a_push if limited else a_force) + 2.0 * penalty * y / (1.0 + abs(y))) / (
            (1.0 + abs(y)) * (1.0 + abs(y))
        )
        slope[linear + COUNT] += a_y
        for h in range(hidden):
            steep = 1.0 / (1.0 + abs(s[h]))
            slope[outward + h] += a_y * s[h] * steep
            a_s[h] = a_y * weights[outward + h] * steep * steep
            slope[inward + h] += a_s[h]
        for i in range(COUNT):
            slope[linear + i] += a_y * u[i]
            through = a_y * weights[linear + i]
            for h in range(hidden):
                slope[i * hidden + h] += a_s[h] * u[i]
                through += a_s[h] * weights[i * hidden + h]
            inside = net[3 + 2 * COUNT + i] < u[i] < net[3 + 3 * COUNT + i]
            a_u[i] = through * net[3 + COUNT + i] if inside else 0.0
        a_push += a_u[0]
        a_v += a_u[1] + a_u[2] * CREEP / ((abs(v) + CREEP) * (abs(v) + CREEP))
        a_x += a_u[5] + net[2] * (a_u[9] * math.cos(net[2] * x) - a_u[10] * math.sin(net[2] * x))
        a_z, a_slow_v, a_slow_push = a_z + a_u[6], a_slow_v + a_u[7], a_slow_push + a_u[8]
        if k > 0:
            a_v += a_z * (way - z0) * decay * way * dt / WINDUP + late_v * a_slow_v
            a_push += late_push * a_slow_push
            a_z, a_slow_v, a_slow_push = a_z * decay, a_slow_v * (1.0 - late_v), a_slow_push * (1.0 - late_push)
        a_x += felt[3, k] * a_push


@numba.njit(inline="always")
def _inputs(net, push, v, command_v, load, x, z, slow_v, slow_push, u):  # type: ignore[no-untyped-def]
    """The scaled inputs of a network, in place; as `learned.learned_torque` has them."""
    u[0], u[1], u[2], u[3], u[4], u[5] = push, v, v / (abs(v) + CREEP), command_v, load, x
    u[6], u[7], u[8], u[9], u[10] = z, slow_v, slow_push, math.sin(net[2] * x), math.cos(net[2] * x)
    for i in range(COUNT):
        u[i] = min(max((u[i] - net[3 + i]) * net[3 + COUNT + i], net[3 + 2 * COUNT + i]), net[3 + 3 * COUNT + i])


@numba.njit(inline="always")
def _net(weights, hidden, u, s):  # type: ignore[no-untyped-def]
    """Output of a network before its bound; the sums of its hidden units are left in s."""
    y = weights[(COUNT + 2) * hidden + COUNT]
    for h in range(hidden):
        s[h] = weights[COUNT * hidden + h]
    for i in range(COUNT):
        y += weights[(COUNT + 2) * hidden + i] * u[i]
        for h in range(hidden):
            s[h] += weights[i * hidden + h] * u[i]
    for h in range(hidden):
        y += weights[(COUNT + 1) * hidden + h] * s[h] / (1.0 + abs(s[h]))
    return y


def command_velocity(command: Array, dt: float) -> Array:
    """The command's velocity as the network sees it, low-passed. Shape: (steps,)."""
    from scipy.signal import lfilter

    late = dt / (learned.COMMAND_TIME + dt)
    return np.asarray(lfilter([late], [1.0, late - 1.0], np.diff(command, prepend=command[0]) / dt))
