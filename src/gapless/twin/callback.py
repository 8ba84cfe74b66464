"""What is computed within the engine's step: a compiled `mjcb_control` for dry friction, learned torque and drives.

Friction's per-world parameters live in the last columns of `jnt_user`, so a saved twin carries them; `learned` and `drive_law`
say where those of networks live. The callback does nothing to joints (or models) that are not marked, so it can stay installed
while other models run.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import mujoco

from gapless.errors import BadInput
from gapless.twin import drive_law, learned
from gapless.twin.engine_memory import library, offsets, readers

LEAST = 1e-9  # N m: the smallest dry friction that still makes a constraint row
COLUMNS = 8  # stribeck, stribeck_speed, load, load2, angle, angle2, home angle, mark
HOME, MARK = 6, 7
MARKED = 0.6180339887  # in the last column: this joint's friction is ours


def prepare(spec: mujoco.MjSpec, home: Mapping[str, float]) -> None:
    """Mark joints (name to home angle [rad]) in a spec and make room for their parameters."""
    width = max(0, spec.nuser_jnt) + (0 if centres(spec) else COLUMNS)
    spec.nuser_jnt = width
    for name, angle in home.items():
        joint = spec.joint(name)
        user = list(joint.userdata)
        if len(user) == width and user[-1] == MARKED:
            continue  # saved by us, with its values
        user = user[: width - COLUMNS]
        joint.userdata = user + [0.0] * (width - COLUMNS - len(user)) + [0.0, 0.1, 0.0, 0.0, 0.0, 0.0, angle, MARKED]
        joint.frictionloss = max(float(joint.frictionloss), LEAST)
    # islands copy the friction before the callback runs
    spec.option.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_ISLAND)


def recentre(spec: mujoco.MjSpec, angles: Mapping[str, float]) -> None:
    """Count the angle of joints that are marked from other angles [rad]."""
    for name, angle in angles.items():
        if name in centres(spec):
            user = list(spec.joint(name).userdata)
            user[HOME - COLUMNS] = angle
            spec.joint(name).userdata = user


def centres(spec: mujoco.MjSpec) -> dict[str, float]:
    """Where the angle of each joint that is marked is counted from [rad]."""
    return {j.name: float(list(j.userdata)[HOME - COLUMNS]) for j in spec.joints if list(j.userdata)[-1:] == [MARKED]}


def slot(model: mujoco.MjModel) -> int:
    """The first of the callback's columns in `jnt_user`."""
    return int(model.nuser_jnt) - COLUMNS


def frictional(model: mujoco.MjModel) -> bool:
    """Whether dry friction of some joints depends on speed, load or angle."""
    return bool(model.nuser_jnt >= COLUMNS and (model.jnt_user[:, -1] == MARKED).any())


def install(networks: bool = True, laws: bool = True) -> None:
    """Install the callback in this process. Call it before stepping a twin saved with `Friction(full=True)` or networks.

    Compiling networks takes most of the time.

    Args:
        networks: whether it computes learned torque too.
        laws: whether it computes drives' networks too.
    """
    now = mujoco.get_mjcb_control()
    if now is not None and now != _installed.get("object"):
        raise BadInput(
            "another mjcb_control is installed, and speed- or load-dependent friction and learned torque need that place: "
            "remove it"
        )
    before = _installed.get("parts", (False, False))
    parts = networks or before[0], laws or before[1]
    if now is None or parts != before:
        _installed.update(object=_compiled(*parts).ctypes, parts=parts)
        mujoco.set_mjcb_control(_installed["object"])


def install_for(model: mujoco.MjModel) -> None:
    """Install what a model needs, if anything."""
    if frictional(model) or learned.marked(model):
        install(learned.marked(model, (learned.MARKED, learned.TARGET)), bool(drive_law.rows(model)))


_installed: dict[str, Any] = {}  # what was handed to the engine, and whether it has networks and laws


@functools.cache
def _compiled(networks: bool, laws: bool) -> Any:
    """The callback, compiled on first use, and kept alive."""
    import numba
    from numba import cfunc, types

    from gapless.twin.mechanisms.friction import dry_friction

    in_model = ("njnt", "nuser_jnt", "nv", "jnt_user", "jnt_qposadr", "dof_jntid", "dof_frictionloss")
    n_jnt, n_user, n_v, user_at, qpos_adr_at, dof_joint_at, loss_at = offsets("mjModel", in_model)
    in_data = ("ne", "nf", "efc_type", "efc_id", "efc_frictionloss", "qpos", "qvel", "qfrc_actuator")
    ne_at, nf_at, type_at, id_at, efc_at, qpos_at, qvel_at, torque_at = offsets("mjData", in_data)
    friction_dof = int(mujoco.mjtConstraint.mjCNSTR_FRICTION_DOF)
    actuate: Callable[[Any, Any], None] = library().mj_fwdActuation
    read_size, _ = readers(numba, types.int64)
    read_int, integers = readers(numba, types.int32)
    _, numbers = readers(numba, types.float64)

    @numba.njit
    def friction(m, d):  # type: ignore[no-untyped-def]
        columns = read_size(m, n_user)
        if columns < COLUMNS:
            return
        n = read_size(m, n_jnt)
        user = numbers(m, user_at, n * columns)
        nv = read_size(m, n_v)
        dof_joint, loss = integers(m, dof_joint_at, nv), numbers(m, loss_at, nv)
        qpos_adr = integers(m, qpos_adr_at, n)
        first, count = read_int(d, ne_at), read_int(d, nf_at)
        kind, dof = integers(d, type_at, first + count), integers(d, id_at, first + count)
        limit = numbers(d, efc_at, first + count)
        actuated = False
        for row in range(first, first + count):
            if kind[row] != friction_dof:
                continue
            v = dof[row]
            j = dof_joint[v]
            start = (j + 1) * columns - COLUMNS
            if user[start + MARK] != MARKED:
                continue
            loaded = user[start + 2] != 0.0 or user[start + 3] != 0.0
            if loaded and not actuated:  # actuator forces of this very step, which the engine computes after this callback
                actuate(m, d)
                actuated = True
            torque = numbers(d, torque_at, nv)[v] if loaded else 0.0
            angle = numbers(d, qpos_at, qpos_adr[j] + 1)[qpos_adr[j]] - user[start + HOME]
            rest = user[start], user[start + 1], user[start + 2], user[start + 3], user[start + 4], user[start + 5]
            limit[row] = max(dry_friction(numbers(d, qvel_at, nv)[v], torque, angle, loss[v], *rest), LEAST)

    @numba.njit
    def nothing(m, d):  # type: ignore[no-untyped-def]
        pass

    law = drive_law.applied() if laws else nothing
    nets = learned.applied() if networks else nothing

    @cfunc(types.void(types.voidptr, types.voidptr))
    def all_of_it(m, d):  # type: ignore[no-untyped-def]
        law(m, d)  # before friction, which may ask what torque drives give
        friction(m, d)
        nets(m, d)

    return all_of_it
