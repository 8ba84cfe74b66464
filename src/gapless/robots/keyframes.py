"""Keyframes while joints come and go: they are put away, and put back with what they say of the joints that are left."""

import mujoco
import numpy as np

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
