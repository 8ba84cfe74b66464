"""MuJoCo's structs in memory: where their fields are, and compiled functions that read them from within a callback."""

import ctypes
import functools
import math
from collections.abc import Sequence
from typing import Any

import mujoco

from gapless.errors import BadInput


def readers(numba: Any, kind: Any) -> tuple[Any, Any]:
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


def offsets(struct: str, fields: Sequence[str]) -> list[int]:
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
