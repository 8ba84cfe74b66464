"""Friction that depends on speed, load and angle: a compiled `mjcb_control` that sets each joint's dry friction every step.

Its per-world parameters live in the last columns of `jnt_user`, so a saved twin carries them. The callback does nothing to
joints (or models) that are not marked there, so it can stay installed while other models run.
"""

import ctypes
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import mujoco

from gapless.errors import BadInput

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


def needed(model: mujoco.MjModel) -> bool:
    """Whether a model has joints marked for the callback."""
    return bool(model.nuser_jnt >= COLUMNS and (model.jnt_user[:, -1] == MARKED).any())


def install() -> None:
    """Install the callback in this process. Call it before stepping a twin saved with `Friction(full=True)`."""
    ours = _compiled()
    now = mujoco.get_mjcb_control()
    if now is not None and now != _installed.get("object"):
        raise BadInput("another mjcb_control is installed, and speed- or load-dependent friction needs that place: remove it")
    if now is None:
        _installed["object"] = ours.ctypes
        mujoco.set_mjcb_control(ours.ctypes)


_installed: dict[str, Any] = {}  # what was handed to the engine, kept alive


@functools.cache
def _compiled() -> Any:
    """The callback, compiled on first use (about a second)."""
    import numba
    from numba import cfunc, types

    from gapless.twin.mechanisms.friction import dry_friction

    in_model = ("njnt", "nuser_jnt", "nv", "jnt_user", "jnt_qposadr", "dof_jntid", "dof_frictionloss")
    n_jnt, n_user, n_v, user_at, qpos_adr_at, dof_joint_at, loss_at = _offsets("mjModel", in_model)
    in_data = ("ne", "nf", "efc_type", "efc_id", "efc_frictionloss", "qpos", "qvel", "qfrc_actuator")
    ne_at, nf_at, type_at, id_at, efc_at, qpos_at, qvel_at, torque_at = _offsets("mjData", in_data)
    friction_dof = int(mujoco.mjtConstraint.mjCNSTR_FRICTION_DOF)
    actuate: Callable[[Any, Any], None] = library().mj_fwdActuation
    read_size, _ = _readers(numba, types.int64)
    read_int, integers = _readers(numba, types.int32)
    _, numbers = _readers(numba, types.float64)

    @cfunc(types.void(types.voidptr, types.voidptr))
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

    return friction


def _readers(numba: Any, kind: Any) -> tuple[Any, Any]:
    """Compiled functions that read one value of a kind at an offset into a struct, and the array that a pointer there is of."""
    pointer, carray, address_type = _cast(), numba.carray, numba.types.int64

    @numba.njit(inline="always")
    def one(base, offset):  # type: ignore[no-untyped-def]
        return carray(pointer(base, offset), 1, dtype=kind)[0]

    @numba.njit(inline="always")
    def several(base, offset, size):  # type: ignore[no-untyped-def]
        address = carray(pointer(base, offset), 1, dtype=address_type)[0]
        return carray(pointer(address, 0), size, dtype=kind)

    return one, several


def _cast() -> Any:
    """An intrinsic that makes a pointer from an address (or another pointer) and an offset in bytes."""
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    @intrinsic
    def pointer(typingctx, base, offset):  # type: ignore[no-untyped-def]
        def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
            value, by = args
            if not isinstance(signature.args[0], types.Integer):
                value = builder.ptrtoint(value, cgutils.intp_t)
            by = context.cast(builder, by, signature.args[1], types.intp)
            return builder.inttoptr(builder.add(value, by), cgutils.voidptr_t)

        return types.voidptr(base, offset), codegen

    return pointer


@functools.cache
def library() -> ctypes.CDLL:
    """MuJoCo's own shared library, already loaded by the bindings."""
    import glob
    import os

    files = glob.glob(os.path.join(os.path.dirname(mujoco.__file__), "libmujoco.*"))
    if not files:
        raise BadInput("MuJoCo's shared library was not found beside its Python package; reinstall mujoco")
    lib = ctypes.CDLL(files[0])
    lib.mj_fwdActuation.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    lib.mj_fwdActuation.restype = None
    lib._mjPRIVATE__set_xml_precision.argtypes = [ctypes.c_int]
    return lib


@functools.cache
def _struct(name: str) -> Any:
    """One of MuJoCo's structs as C lays it out."""
    from mujoco.introspect import structs

    return _laid_out(structs.STRUCTS[name].fields)


def _offsets(struct: str, fields: Sequence[str]) -> list[int]:
    """Where fields of one of MuJoCo's structs are in it [bytes]."""
    return [getattr(_struct(struct), name).offset for name in fields]


def _laid_out(fields: Any) -> Any:
    return type("Struct", (ctypes.Structure,), {"_fields_": [(f.name, _type_of(f.type)) for f in fields]})


def _type_of(kind: Any) -> Any:
    """A ctypes type as large and as aligned as a C type that MuJoCo's introspection describes."""
    from mujoco.introspect import structs

    name = str(kind)
    if name.endswith("*"):
        return ctypes.c_void_p
    if name.endswith("]"):
        return _type_of(kind.inner_type) * math.prod(kind.extents)
    if hasattr(kind, "fields"):
        return _laid_out(kind.fields)
    if name in structs.STRUCTS:
        return _struct(name)
    small = {"int": ctypes.c_int, "float": ctypes.c_float, "mjtBool": ctypes.c_uint8, "mjtByte": ctypes.c_uint8}
    return small.get(name, ctypes.c_int64)  # the rest: mjtNum, mjtSize, size_t
