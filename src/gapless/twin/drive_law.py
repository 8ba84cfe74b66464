"""A drive's law as the engine computes it: a network from the history of command and velocity to torque, within the step.

The callback turns the network's torque into the command with which the drive's nominal law gives just that, so that limits of
torque, its strength and its reading act as always, and a drive that is switched off gives none. The history of each joint is a
ring at the end of `userdata`, written once a step; a world that starts anew has it filled as if its state had always held.
"""

import math
from collections.abc import Mapping
from typing import Any

import mujoco
import numba
import numpy as np

from gapless.arrays import Array
from gapless.errors import BadInput
from gapless.twin.learned import DRIVEN, widened

LAGS = (0.0, 0.0075, 0.015)  # s: of the history, as the released weights of Hwangbo 2019 have them
INPUTS = 2 * len(LAGS)  # error of position (or torque) and velocity at each lag, from now on back
HIDDEN = 32  # units in each of two hidden layers
HEAD = 8 + 4 * INPUTS  # numbers before the weights, see `laid_out`
SIZE = HEAD + HIDDEN * (INPUTS + 1) + HIDDEN * (HIDDEN + 1) + HIDDEN + 1  # of what the engine is given of a network
FINER = 4  # the history can be kept at so many times finer steps, as fits and causes try them
SHARED = 2 * HIDDEN + 2  # numbers of all joints: room for both layers, when the newest step was (1: at 0 s), and its place
OWN = 2  # numbers a joint remembers before its history: the command that the callback wrote, and the one that it stands for
PREFIX = "gapless_drive"


def slots(timestep: float) -> int:
    """How many steps of history a time step needs [s]."""
    return math.ceil(LAGS[-1] / timestep - 1e-9) + 2


def mark(spec: mujoco.MjSpec, numbers: Mapping[str, Array]) -> None:
    """Put the networks of actuators into a spec."""
    widened(spec)
    spec.nuserdata += SHARED + len(numbers) * (OWN + 2 * slots(spec.option.timestep / FINER))
    for name, data in numbers.items():
        user = list(spec.actuator(name).userdata)
        spec.actuator(name).userdata = [*user[:-2], float(len(spec.numerics)), DRIVEN]
        spec.add_numeric(name=f"{PREFIX}/{name}", data=data, size=len(data))


def rows(model: mujoco.MjModel) -> dict[str, int]:
    """Joints whose drives' laws are networks, and their actuators."""
    mine = np.flatnonzero(model.actuator_user[:, -1] == DRIVEN).tolist() if model.nuser_actuator >= 2 else []
    return {model.joint(int(model.actuator_trnid[a, 0])).name: a for a in mine}


def silence(model: mujoco.MjModel) -> None:
    """Give drives their plain laws back, in place."""
    for a in rows(model).values():
        model.actuator_user[a, -1] = 0.0


def must_fit(model: mujoco.MjModel) -> None:
    """Refuse a model whose file was changed so that its drives' networks cannot be computed, or whose steps keep no history.

    The compiled step believes what it reads: a wrong size would make it read other memory.
    """
    mine, step, steps = rows(model), model.opt.timestep, 0.0
    for a in mine.values():
        name, place = model.actuator(a).name, model.actuator_user[a, -2]
        named = place in range(model.nnumeric) and model.numeric(int(place)).name == f"{PREFIX}/{name}"
        data = model.numeric(int(place)).data if named else np.zeros(1)
        whole = len(data) == SIZE and np.isfinite(data).all() and data[0] == HIDDEN and data[1] >= 2 and data[2] != 0
        steps = data[1] if whole and steps in (0, data[1]) else np.inf
        if model.nuserdata < SHARED + len(mine) * (OWN + 2 * steps):
            raise BadInput(f"the drive network of {name} in this model is not as it was written: take twin.xml as it was saved")
        if (model.actuator_biasprm[a, 1] == 0) != (data[4] == 0) or model.actuator_ctrladr[a] < 0:
            raise BadInput(f"the drive network of {name} is for a drive with another law than this model's: learn it again")
        if step > LAGS[1] or slots(step) > data[1]:
            low, high = LAGS[-1] / (data[1] - 2), LAGS[1]
            raise BadInput(
                f"the drive network of {name} sees {1e3 * LAGS[1]:g} and {1e3 * LAGS[-1]:g} ms back, which this model keeps at "
                f"time steps from {low:.2g} to {high:g} s, and it has {step:g} s"
            )
    if mine and model.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4:
        raise BadInput("drive networks keep one state a step, and RK4 has four: use the integrator implicitfast or Euler")


def laid_out(steps: int, law: Array, scale: Array, inputs: Array, layers: list[Array]) -> Array:
    """A network's numbers in the order of the engine.

    Args:
        steps: how many the history keeps.
        law: gain and bias of the drive's nominal law, (4,).
        scale: mean and spread of the torque.
        inputs: centre, spread, low and high of each, (4, inputs).
        layers: inward, its biases, across, its biases, outward, its bias.
    """
    centre, spread, low, high = inputs
    head = [[HIDDEN, steps], law, scale, centre, 1 / spread, low, high]
    return np.concatenate([*head, *(np.ravel(part) for part in layers)])


@numba.njit(inline="always")
def look_back(lag, place, steps, dt):  # type: ignore[no-untyped-def]
    """Where the steps after and before a lag are in a history whose newest is at `place`, and the share of the earlier one."""
    back = lag / dt
    whole = min(int(back + 1e-9), steps - 2)
    late = place - whole if place >= whole else place - whole + steps
    return 2 * late, 2 * (late - 1 if late > 0 else steps - 1), max(back - whole, 0.0)


@numba.njit(inline="always")
def scaled(net, i, ring, spot):  # type: ignore[no-untyped-def]
    """An input in units of its spread, within what was seen in training."""
    (late, later, share), j = spot, i % 2
    u = ((1.0 - share) * ring[late + j] + share * ring[later + j] - net[8 + i]) * net[8 + INPUTS + i]
    return min(max(u, net[8 + 2 * INPUTS + i]), net[8 + 3 * INPUTS + i])


@numba.njit(fastmath=True, error_model="numpy")  # a check for zero would keep the compiler from dividing several at once
def network_torque(net, ring, now, near, far, first, second):  # type: ignore[no-untyped-def]
    """A drive's torque [N m].

    Args:
        net: as `laid_out` has it.
        ring: the history.
        now: where in it to look for what is now, as `look_back` says.
        near: the same of the shorter lag.
        far: and of the longer one.
        first: room for the first hidden layer.
        second: and for the other.
    """
    u0, u1 = scaled(net, 0, ring, now), scaled(net, 1, ring, now)
    u2, u3 = scaled(net, 2, ring, near), scaled(net, 3, ring, near)
    u4, u5 = scaled(net, 4, ring, far), scaled(net, 5, ring, far)
    w, across = net[HEAD:], net[HEAD + HIDDEN * (INPUTS + 1) :]
    for h in range(HIDDEN):  # written out, so that the compiler takes several hidden units at once
        s = w[INPUTS * HIDDEN + h] + u0 * w[h] + u1 * w[HIDDEN + h] + u2 * w[2 * HIDDEN + h]
        s += u3 * w[3 * HIDDEN + h] + u4 * w[4 * HIDDEN + h] + u5 * w[5 * HIDDEN + h]
        first[h] = s / (1.0 + abs(s))
        second[h] = across[HIDDEN * HIDDEN + h]
    for k in range(0, HIDDEN, 8):
        r = across[HIDDEN * k : HIDDEN * (k + 8)]
        s0, s1, s2, s3 = first[k], first[k + 1], first[k + 2], first[k + 3]
        s4, s5, s6, s7 = first[k + 4], first[k + 5], first[k + 6], first[k + 7]
        for h in range(HIDDEN):
            s = s0 * r[h] + s1 * r[HIDDEN + h] + s2 * r[2 * HIDDEN + h] + s3 * r[3 * HIDDEN + h]
            s += s4 * r[4 * HIDDEN + h] + s5 * r[5 * HIDDEN + h] + s6 * r[6 * HIDDEN + h] + s7 * r[7 * HIDDEN + h]
            second[h] += s
    last = across[HIDDEN * (HIDDEN + 1) :]
    y = last[HIDDEN]
    for h in range(HIDDEN):
        y += second[h] / (1.0 + abs(second[h])) * last[h]
    return net[6] + net[7] * y


@numba.njit(inline="always")
def remember(memory, at, place, steps, fresh, command, x, v, servo):  # type: ignore[no-untyped-def]
    """Put what a drive is told now into its history; it may have been told what this callback wrote a moment ago."""
    if fresh or command != memory[at]:
        memory[at + 1] = command
    told = memory[at + 1] - x if servo else memory[at + 1]
    for k in range(steps if fresh else 1):
        ring = at + OWN + 2 * ((place + k) % steps)
        memory[ring], memory[ring + 1] = told, v


def applied() -> Any:
    """The compiled part of the engine's callback that makes drives with a network give its torque."""
    from numba import types

    from gapless.twin.engine_memory import offsets, readers

    in_model = ("nactuator", "nu", "nq", "nv", "njnt", "nnumeric", "nnumericdata", "nuser_actuator", "nuserdata")
    n_act, n_ctrl, n_q, n_v, n_jnt, n_num, n_numbers, n_user, n_memory = offsets("mjModel", in_model)
    arrays = ("actuator_user", "actuator_trnid", "actuator_ctrladr", "jnt_qposadr", "jnt_dofadr", "numeric_adr", "numeric_data")
    user_at, joint_at, ctrl_at, qpos_adr_at, dof_adr_at, adr_at, numbers_at = offsets("mjModel", arrays)
    opt_at, long_at = offsets("mjModel", ("opt", "numeric_size"))
    (step_at,) = offsets("mjOption", ("timestep",))
    time_at, memory_at, control_at, qpos_at, qvel_at = offsets("mjData", ("time", "userdata", "ctrl", "qpos", "qvel"))
    size_of, _ = readers(numba, types.int64)
    _, integers = readers(numba, types.int32)
    one, numbers = readers(numba, types.float64)

    @numba.njit
    def law(m, d):  # type: ignore[no-untyped-def]
        width, count = size_of(m, n_user), size_of(m, n_act)
        if width < 2:
            return
        user, mine = numbers(m, user_at, count * width), 0
        for a in range(count):
            mine += user[(a + 1) * width - 1] == DRIVEN
        if mine == 0:
            return
        joint, control_of = integers(m, joint_at, 2 * count), integers(m, ctrl_at, count)
        qpos_adr, dof_adr = integers(m, qpos_adr_at, size_of(m, n_jnt)), integers(m, dof_adr_at, size_of(m, n_jnt))
        control, qpos = numbers(d, control_at, size_of(m, n_ctrl)), numbers(d, qpos_at, size_of(m, n_q))
        qvel, start = numbers(d, qvel_at, size_of(m, n_v)), integers(m, adr_at, size_of(m, n_num))
        every, long = numbers(m, numbers_at, size_of(m, n_numbers)), integers(m, long_at, size_of(m, n_num))
        memory, total = numbers(d, memory_at, size_of(m, n_memory)), size_of(m, n_memory)
        at, fresh, place, steps, now, near, far = 0, False, 0, 0, (0, 0, 0.0), (0, 0, 0.0), (0, 0, 0.0)
        first, second = memory[:0], memory[:0]
        for a in range(count):
            if user[(a + 1) * width - 1] != DRIVEN:
                continue
            numeric = int(user[(a + 1) * width - 2])
            if numeric < 0 or numeric >= len(start) or long[numeric] != SIZE:
                return  # a file was cut, which `must_fit` refuses after the engine's first step
            net = every[start[numeric] : start[numeric] + SIZE]
            if at == 0:
                steps, dt = int(net[1]), one(m, opt_at + step_at)
                at = total - mine * (OWN + 2 * steps)
                if steps < 2 or at < SHARED:
                    return
                time, before = one(d, time_at) + 1.0, memory[at - 2]
                fresh, place = before == 0.0, min(max(int(memory[at - 1]), 0), steps - 1)
                if time > before and not fresh:
                    place = place + 1 if place + 1 < steps else 0
                memory[at - 2], memory[at - 1] = time, place
                now = look_back(LAGS[0], place, steps, dt)
                near, far = look_back(LAGS[1], place, steps, dt), look_back(LAGS[2], place, steps, dt)
                first, second = memory[at - SHARED : at - SHARED + HIDDEN], memory[at - SHARED + HIDDEN : at - 2]
            if int(net[1]) != steps:
                return
            j, c = joint[2 * a], control_of[a]
            x, v = qpos[qpos_adr[j]], qvel[dof_adr[j]]
            remember(memory, at, place, steps, fresh, control[c], x, v, net[4] != 0.0)
            ring = memory[at + OWN : at + OWN + 2 * steps]
            torque = network_torque(net, ring, now, near, far, first, second)
            control[c] = memory[at] = (torque - net[3] - net[4] * x - net[5] * v) / net[2]
            at += OWN + 2 * steps

    return law
