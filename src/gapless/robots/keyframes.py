"""Keyframes: one of a home pose within the joints' ranges, and all of them put away and put back while joints come and go."""

import mujoco
import numpy as np

from gapless.arrays import Array
from gapless.report import few
from gapless.robots.drives import ONE_AXIS

_SIZES = {0: (7, 6), 1: (4, 3), 2: (1, 1), 3: (1, 1)}  # of the positions and velocities of free, ball, slide and hinge joints


def take_keyframes(spec: mujoco.MjSpec) -> mujoco.MjModel:
    """Remove keyframes, since joints may come and go; returns the model that still has them."""
    model = spec.copy().compile()
    for key in list(spec.keys):
        spec.delete(key)
    return model


def put_keyframes(spec: mujoco.MjSpec, before: mujoco.MjModel) -> None:
    """Add a model's keyframes again; new joints are at their zero, and actuator states that changed are left out."""
    model = spec.copy().compile()
    kept = [j for j in range(before.njnt) if spec.joint(before.joint(j).name) is not None]
    for key in range(before.nkey):
        q, v = model.qpos0.copy(), np.zeros(model.nv)
        for j in kept:
            nq, nv = _SIZES[int(before.jnt_type[j])]
            after = model.joint(before.joint(j).name).id
            q[model.jnt_qposadr[after] :][:nq] = before.key_qpos[key, before.jnt_qposadr[j] :][:nq]
            v[model.jnt_dofadr[after] :][:nv] = before.key_qvel[key, before.jnt_dofadr[j] :][:nv]
        added = spec.add_key(name=before.key(key).name, time=float(before.key_time[key]), qpos=q, qvel=v)
        added.ctrl = before.key_ctrl[key] if before.nu == model.nu else np.zeros(model.nu)
        if model.na and before.na == model.na:
            added.act = before.key_act[key]
        if model.nmocap:
            added.mpos, added.mquat = before.key_mpos[key].ravel(), before.key_mquat[key].ravel()


def home_within(model: mujoco.MjModel) -> Array:
    """Every joint at zero, or in the middle of limits that zero is outside of; followers, where their leaders put them."""
    home = model.qpos0.copy()
    for j in (j for j in range(model.njnt) if int(model.jnt_type[j]) in ONE_AXIS and model.jnt_limited[j]):
        low, high = model.jnt_range[j]
        if not low <= home[model.jnt_qposadr[j]] <= high:
            home[model.jnt_qposadr[j]] = (low + high) / 2
    for e in np.flatnonzero((model.eq_type == mujoco.mjtEq.mjEQ_JOINT) & (model.eq_obj2id >= 0)):
        follower, leader = model.jnt_qposadr[[model.eq_obj1id[e], model.eq_obj2id[e]]]
        moved = home[leader] - model.qpos0[leader]
        home[follower] = model.qpos0[follower] + np.polynomial.Polynomial(model.eq_data[e, :5])(moved)
    return home


def moved_home(model: mujoco.MjModel, home: Array) -> list[str]:
    """A sentence on the joints whose home is not where the model has them."""
    leaders = set(range(model.njnt)) - {int(j) for j in model.eq_obj1id[model.eq_type == mujoco.mjtEq.mjEQ_JOINT]}
    moved = [model.joint(j).name for j in sorted(leaders) if home[model.jnt_qposadr[j]] != model.qpos0[model.jnt_qposadr[j]]]
    return [f"zero is outside the limits, so home is in their middle: {few(moved)}"] if moved else []


def put_home(spec: mujoco.MjSpec) -> list[str]:
    """Give a model without keyframes a home pose within its ranges where zero is outside, in place; what was assumed."""
    if list(spec.keys):
        return []
    model = spec.copy().compile()
    home = home_within(model)
    said = moved_home(model, home)
    if said:
        spec.add_key(name="home", qpos=home)
    return said
