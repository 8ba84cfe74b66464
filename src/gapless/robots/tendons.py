"""Drives on tendons whose joints move as one: they are drives of one of these joints, and are made such."""

import mujoco
import numpy as np


def drive_joints(spec: mujoco.MjSpec) -> list[str]:
    """Let actuators of fixed tendons whose joints are coupled to one of them drive that joint, in place; a sentence for each.

    A fixed tendon is as long as the sum of its joints' positions times their coefficients. Where each follows the first
    driven one by an equality (q = a + b q1), pulling the tendon is driving that joint with a gear of the sum of coefficients
    times b: grippers whose fingers close together are such.
    """
    model = spec.copy().compile()
    said = []
    for a in range(model.nactuator):
        tendon = int(model.actuator_trnid[a, 0])
        if model.actuator_trntype[a] != mujoco.mjtTrn.mjTRN_TENDON or model.tendon_num[tendon] == 0:
            continue
        wraps = slice(int(model.tendon_adr[tendon]), int(model.tendon_adr[tendon] + model.tendon_num[tendon]))
        if (model.wrap_type[wraps] != mujoco.mjtWrap.mjWRAP_JOINT).any():
            continue
        joints, pulls = model.wrap_objid[wraps].tolist(), model.wrap_prm[wraps]
        lead = joints[0]
        motion = _coupled(model, lead)
        if not set(joints) <= set(motion) or sum(pull * motion[j][0] for j, pull in zip(joints, pulls, strict=True)):
            continue  # they do not move as one, or the command would count from another zero
        length = sum(pull * motion[j][1] for j, pull in zip(joints, pulls, strict=True))
        name, actuator = model.joint(lead).name, spec.actuators[a]
        gear = np.zeros(6)
        gear[0] = model.actuator_gear[a, 0] * length
        actuator.trntype, actuator.target, actuator.gear = mujoco.mjtTrn.mjTRN_JOINT, name, gear
        said.append(f"actuator {actuator.name!r} pulls a tendon whose joints move as one: it drives joint {name!r}")
    return said


def _coupled(model: mujoco.MjModel, lead: int) -> dict[int, tuple[float, float]]:
    """Joints that equalities let follow one, also by way of others, to offset and ratio: q = offset + ratio q1."""
    motion, edges = {lead: (0.0, 1.0)}, []
    for e in np.flatnonzero((model.eq_type == mujoco.mjtEq.mjEQ_JOINT) & (model.eq_active0 != 0)):
        offset, ratio, *higher = model.eq_data[e, :5].tolist()
        follower, leader = int(model.eq_obj1id[e]), int(model.eq_obj2id[e])
        if ratio and not any(higher) and leader >= 0:
            edges += [(follower, leader, offset, ratio), (leader, follower, -offset / ratio, 1 / ratio)]
    for _ in edges:  # as far as the longest chain can go
        for follower, leader, offset, ratio in edges:
            if leader in motion and follower not in motion:
                shift, turn = motion[leader]
                motion[follower] = (offset + ratio * shift, ratio * turn)
    return motion
