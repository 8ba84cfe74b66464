"""Learned torque as the engine computes it: a small network per joint, compiled into the step.

A network's numbers are a `numeric` of the model, so a saved twin carries them; the last two columns of `actuator_user` say
which numeric is whose, world by world, so an ensemble costs nothing; what it remembers is at the end of `userdata`. The same
compiled functions are stepped through by training (`gapless.residual`).
"""

import math
from collections.abc import Sequence
from typing import Any

import mujoco
import numba
import numpy as np

from gapless.arrays import Array
from gapless.errors import BadInput

INPUTS = (
    "push",  # what the drive pushes with before its damping: error times gain, or the torque that was commanded [N m]
    "velocity",
    "direction",  # soft sign of the velocity
    "command velocity",  # low-passed
    "load",  # gravity and Coriolis torque [N m]
    "angle",
    "windup",  # state of Dahl's friction, -1 to 1
    "slow velocity",  # low-passed
    "slow push",  # low-passed
    "sine",  # of so many times the angle
    "cosine",
)
COUNT = len(INPUTS)
MEMORY = 5  # numbers a joint: windup, slow velocity, slow push, last command, command velocity
CREEP = 0.05  # rad/s: where the soft sign is half
WINDUP = 0.03  # rad: over which Dahl's friction winds up
VELOCITY_TIME, PUSH_TIME, COMMAND_TIME = 0.1, 0.2, 0.02  # s: of the low-pass filters
HEAD = 3 + 4 * COUNT  # numbers before the weights: hidden units, bound, waves; centre, 1 / spread, low and high of each input
MARKED = 0.4142135623  # in the last column of actuator_user: this drive has a network, whose numeric is in the column before
TARGET = 0.7320508076  # there too: its network shifts what the drive is told, within its limits (delta action)
DRIVEN = 0.2360679775  # there too: its law is a network (`drive_law`), whose numeric is in the column before
PREFIX = "gapless_residual"
STEP_NAME = "gapless_timestep"  # the numeric with the time step of training [s]
STEP = 0.01  # share by which a time step may differ from that of training


def weights(hidden: int) -> int:
    """How many weights a network with so many hidden units has: inputs, biases, outputs, the linear part and a constant."""
    return hidden * (COUNT + 2) + COUNT + 1


def mark(spec: mujoco.MjSpec, nets: Sequence[tuple[str, Sequence[Array]]], target: bool = False) -> None:
    """Put networks into a spec: actuator to the numbers of each member of its ensemble; the first one acts.

    target: whether they shift what drives are told, instead of adding torque at the joints.
    """
    widened(spec)
    spec.nuserdata += 1 + MEMORY * len(nets)
    spec.add_numeric(name=STEP_NAME, data=[spec.option.timestep], size=1)
    for name, members in nets:
        place = len(spec.numerics)
        for k, numbers in enumerate(members):
            spec.add_numeric(name=f"{PREFIX}/{name}/{k}", data=numbers, size=len(numbers))
        user = list(spec.actuator(name).userdata)
        spec.actuator(name).userdata = [*user[:-2], float(place), TARGET if target else MARKED]


def widened(spec: mujoco.MjSpec) -> None:
    """Give actuators two more columns of `user`, which say whose network is where."""
    spec.nuser_actuator = max(0, spec.nuser_actuator) + 2
    for actuator in spec.actuators:
        user = list(actuator.userdata)[: spec.nuser_actuator - 2]
        actuator.userdata = user + [0.0] * (spec.nuser_actuator - len(user))


def marked(model: mujoco.MjModel, marks: Sequence[float] = (MARKED, TARGET, DRIVEN)) -> bool:
    """Whether a model has drives with a network."""
    return bool(model.nuser_actuator >= 2 and np.isin(model.actuator_user[:, -1], marks).any())


def must_fit(model: mujoco.MjModel, same_step: bool = True) -> None:
    """Refuse a model whose file was changed so that its networks cannot be computed, or were trained for another time step.

    The compiled step believes what it reads: a wrong size would make it read other memory.
    """
    if not marked(model, (MARKED, TARGET)):
        return
    rows = np.flatnonzero(np.isin(model.actuator_user[:, -1], (MARKED, TARGET)))
    for a in rows:
        place = model.actuator_user[a, -2]
        name = model.numeric(int(place)).name if place in range(model.nnumeric) else ""
        data = model.numeric(name).data if name.startswith(f"{PREFIX}/{model.actuator(a).name}/") else np.zeros(1)
        whole = len(data) > HEAD and data[0] >= 1 and len(data) == HEAD + weights(data[0]) and np.isfinite(data).all()
        if not whole or model.nuserdata < 1 + MEMORY * len(rows) or model.actuator_ctrladr[a] < 0:
            raise BadInput(
                f"the learned torque of {model.actuator(a).name} in this model is not as it was written: its networks were cut "
                "or moved; take twin.xml as `gapless fit` wrote it"
            )
    step = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_NUMERIC, STEP_NAME)
    trained = float(model.numeric_data[model.numeric_adr[step]]) if step >= 0 else model.opt.timestep
    if same_step and abs(model.opt.timestep - trained) > STEP * trained:
        raise BadInput(
            f"the learned torque in this model was trained at a time step of {trained:g} s, and the model has "
            f"{model.opt.timestep:g} s: use that step, or learn it again"
        )


@numba.njit(inline="always")
def remember(memory, at, fresh, push, velocity, command, dt):  # type: ignore[no-untyped-def]
    """Bring what a joint's network remembers up to a step, from the state at its beginning; `fresh` starts anew."""
    if fresh:
        memory[at], memory[at + 1], memory[at + 2] = 0.0, velocity, push
        memory[at + 3], memory[at + 4] = command, 0.0
        return
    way = 1.0 if velocity > 0.0 else -1.0
    memory[at] = way + (memory[at] - way) * math.exp(-abs(velocity) * dt / WINDUP)
    memory[at + 1] += dt / (VELOCITY_TIME + dt) * (velocity - memory[at + 1])
    memory[at + 2] += dt / (PUSH_TIME + dt) * (push - memory[at + 2])
    memory[at + 4] += dt / (COMMAND_TIME + dt) * ((command - memory[at + 3]) / dt - memory[at + 4])
    memory[at + 3] = command


@numba.njit(inline="always")
def scaled(net, i, value):  # type: ignore[no-untyped-def]
    """An input in units of its spread, within what was seen in training."""
    u = (value - net[3 + i]) * net[3 + COUNT + i]
    return min(max(u, net[3 + 2 * COUNT + i]), net[3 + 3 * COUNT + i])


@numba.njit(fastmath=True)
def learned_torque(net, push, v, command_velocity, load, x, windup, slow_v, slow_push):  # type: ignore[no-untyped-def]
    """A network's torque [N m]; never more than its bound. net: HEAD numbers and the weights."""
    hidden = int(net[0])
    u0, u1, u2 = scaled(net, 0, push), scaled(net, 1, v), scaled(net, 2, v / (abs(v) + CREEP))
    u3, u4, u5 = scaled(net, 3, command_velocity), scaled(net, 4, load), scaled(net, 5, x)
    u6, u7, u8 = scaled(net, 6, windup), scaled(net, 7, slow_v), scaled(net, 8, slow_push)
    u9, u10 = scaled(net, 9, math.sin(net[2] * x)), scaled(net, 10, math.cos(net[2] * x))
    w = net[HEAD:]
    last = w[(COUNT + 2) * hidden :]
    y = last[COUNT]
    y += last[0] * u0 + last[1] * u1 + last[2] * u2 + last[3] * u3 + last[4] * u4 + last[5] * u5
    y += last[6] * u6 + last[7] * u7 + last[8] * u8 + last[9] * u9 + last[10] * u10
    for h in range(hidden):  # written out, so that the compiler takes several hidden units at once
        s = w[COUNT * hidden + h]
        s += w[h] * u0 + w[hidden + h] * u1 + w[2 * hidden + h] * u2 + w[3 * hidden + h] * u3
        s += w[4 * hidden + h] * u4 + w[5 * hidden + h] * u5 + w[6 * hidden + h] * u6 + w[7 * hidden + h] * u7
        s += w[8 * hidden + h] * u8 + w[9 * hidden + h] * u9 + w[10 * hidden + h] * u10
        y += w[(COUNT + 1) * hidden + h] * (s / (1.0 + abs(s)))
    return net[1] * y / (1.0 + abs(y))


@numba.njit(inline="always")
def _whole(every, start, long, place):  # type: ignore[no-untyped-def]
    """The network in a numeric; nothing where a file was cut, which `must_fit` refuses after the engine's first step."""
    if place < 0 or place >= len(start) or long[place] <= HEAD:
        return every[:0]
    net = every[start[place] : start[place] + long[place]]
    return net if long[place] == HEAD + int(net[0]) * (COUNT + 2) + COUNT + 1 else every[:0]


def applied() -> Any:
    """The compiled part of the engine's callback that adds learned torque to the passive forces."""
    from numba import types

    from gapless.twin.engine_memory import offsets, readers

    in_model = ("nactuator", "nu", "nq", "nv", "njnt", "nnumeric", "nnumericdata", "nuser_actuator", "nuserdata")
    n_act, n_ctrl, n_q, n_v, n_jnt, n_num, n_numbers, n_user, n_memory = offsets("mjModel", in_model)
    (step_at,) = offsets("mjOption", ("timestep",))
    arrays = ("actuator_user", "actuator_trnid", "actuator_ctrladr", "actuator_gainprm", "actuator_biasprm", "jnt_qposadr")
    user_at, joint_at, ctrl_at, gain_at, bias_at, qpos_adr_at = offsets("mjModel", arrays)
    limited_at, range_at, long_at = offsets("mjModel", ("actuator_forcelimited", "actuator_forcerange", "numeric_size"))
    dof_adr_at, adr_at, numbers_at, opt_at = offsets("mjModel", ("jnt_dofadr", "numeric_adr", "numeric_data", "opt"))
    in_data = ("time", "userdata", "ctrl", "qpos", "qvel", "qfrc_bias", "qfrc_passive")
    time_at, memory_at, control_at, qpos_at, qvel_at, load_at, force_at = offsets("mjData", in_data)
    size, _ = readers(numba, types.int64)
    _, integers = readers(numba, types.int32)
    one, numbers = readers(numba, types.float64)
    _, flags = readers(numba, types.uint8)
    columns = int(mujoco.mjNGAIN)

    @numba.njit
    def nets(m, d):  # type: ignore[no-untyped-def]
        width = size(m, n_user)
        if width < 2:
            return
        count, nv = size(m, n_act), size(m, n_v)
        user = numbers(m, user_at, count * width)
        mine = 0
        for a in range(count):
            mine += user[(a + 1) * width - 1] == MARKED or user[(a + 1) * width - 1] == TARGET
        total, count_num = size(m, n_memory), size(m, n_num)
        if mine == 0 or total < 1 + MEMORY * mine:
            return
        memory = numbers(d, memory_at, total)
        at = total - MEMORY * mine
        now, dt = one(d, time_at) + 1.0, one(m, opt_at + step_at)
        fresh, later = memory[at - 1] == 0.0, now > memory[at - 1]
        memory[at - 1] = now
        joint, control_of = integers(m, joint_at, 2 * count), integers(m, ctrl_at, count)
        qpos_adr, dof_adr = integers(m, qpos_adr_at, size(m, n_jnt)), integers(m, dof_adr_at, size(m, n_jnt))
        gain, bias = numbers(m, gain_at, columns * count), numbers(m, bias_at, columns * count)
        control, qpos = numbers(d, control_at, size(m, n_ctrl)), numbers(d, qpos_at, size(m, n_q))
        qvel, load, force = numbers(d, qvel_at, nv), numbers(d, load_at, nv), numbers(d, force_at, nv)
        start, every = integers(m, adr_at, count_num), numbers(m, numbers_at, size(m, n_numbers))
        for a in range(count):
            target = user[(a + 1) * width - 1] == TARGET
            if user[(a + 1) * width - 1] != MARKED and not target:
                continue
            j = joint[2 * a]
            dof = dof_adr[j]
            x, v, command = qpos[qpos_adr[j]], qvel[dof], control[control_of[a]]
            push = gain[columns * a] * command + bias[columns * a] + bias[columns * a + 1] * x
            if fresh or later:
                remember(memory, at, fresh, push, v, command, dt)
            net = _whole(every, start, integers(m, long_at, count_num), int(user[(a + 1) * width - 2]))
            if len(net) == 0:
                continue
            z, slow_v, slow_push, command_v = memory[at], memory[at + 1], memory[at + 2], memory[at + 4]
            torque = learned_torque(net, push, v, command_v, load[dof], x, z, slow_v, slow_push)
            if target:  # the drive gives no more than its limit, wherever it is told to go
                torque *= gain[columns * a]
                if flags(m, limited_at, count)[a]:
                    asked, limit = push + bias[columns * a + 2] * v, numbers(m, range_at, 2 * count)
                    low, high = limit[2 * a], limit[2 * a + 1]
                    torque = min(max(asked + torque, low), high) - min(max(asked, low), high)
            force[dof] += torque
            at += MEMORY

    return nets


def laid_out(bound: float, waves: float, inputs: Array, member: Array) -> Array:
    """A network's numbers in the order of the engine. inputs: centre, spread, low and high, (4, inputs); member: weights."""
    hidden = (len(member) - COUNT - 1) // (COUNT + 2)
    centre, spread, low, high = inputs
    return np.concatenate([[hidden, bound, waves], centre, 1 / spread, low, high, member])
