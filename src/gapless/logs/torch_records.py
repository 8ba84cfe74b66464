"""Files that torch saved: a dict of tensors, numpy arrays and numbers, read without torch and without unpickling.

Such a file is a zip container: `data.pkl` describes the dict in the language of pickle, and each storage is a member by itself.
The description is interpreted here by an allow-list of instructions and names, each with a function of this file behind it;
nothing that the file names is imported or called.
"""

import math
import pickletools
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np

from gapless import files as disk
from gapless.errors import BadInput

STORAGES = {"Float": "<f4", "Double": "<f8", "Half": "<f2", "Int": "<i4", "Long": "<i8", "Short": "<i2", "Byte": "u1"}
STORAGES |= {"Char": "i1", "Bool": "?"}
"""The numbers of a storage, by the kind that torch calls it."""
NUMBERS = {"f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1"}
"""Types of numpy arrays that are read."""
STEPS = 50_000
"""Instructions that a description may have; a dict of a hundred arrays has 3,000."""
MARK = object()


@dataclass
class _Numpy:
    """A numpy type, array or scalar that is being described."""

    dtype: str = ""
    array: np.ndarray | None = None


@dataclass(frozen=True)
class _Storage:
    """The numbers of a storage, one after the other."""

    numbers: np.ndarray


@dataclass(frozen=True)
class _Name:
    """A function or class that a description names."""

    name: str


def arrays(path: Path) -> dict[str, np.ndarray]:
    """The tensors, numpy arrays, numbers and lists of numbers of a file by key, as float64; anything else is left out."""
    with disk.check_zip(path) as archive:
        members = archive.infolist()
        if any(m.compress_type != 0 for m in members):
            raise BadInput(f"{path}: this file is compressed, so it was not saved by torch")
        size = path.stat().st_size
        if sum(m.file_size for m in members) > size:
            raise BadInput(f"{path}: its members claim more bytes than the file has")
        descriptions = [m for m in members if m.filename.endswith("data.pkl")]
        if len(descriptions) != 1:
            raise BadInput(f"{path}: not a file that torch saved (no data.pkl)")
        disk.require_memory(path, 4 * size)
        folder = descriptions[0].filename.removesuffix("data.pkl")
        orders = [m for m in members if m.filename == folder + "byteorder"]
        with disk.refusing(f"{path}: data.pkl is damaged", Exception):  # pickletools raises whatever the damage leads to
            if orders and orders[0].file_size < 16 and archive.read(orders[0]) != b"little":
                raise BadInput(f"{path}: its numbers are big-endian; save it on the usual kind of computer")
            content = _Description(path, archive, folder).content(archive.read(descriptions[0]))
            if not isinstance(content, dict):
                raise BadInput(f"{path}: holds a {type(content).__name__}, not a dict of tensors")
            return _numbers(path, content, max(disk.FREE_EXPANSION, 3 * size))


def _numbers(path: Path, content: dict[str, Any], limit: int) -> dict[str, np.ndarray]:
    """What a log can use of a dict; limit: bytes that it may take as float64."""
    out, total = {}, 0
    for key, value in content.items():
        if isinstance(value, list | int | float):
            plain = value if isinstance(value, list) else [value]
            value = np.array(plain, float) if all(isinstance(v, int | float) for v in plain) else None
        value = value.array if isinstance(value, _Numpy) else value
        if not isinstance(value, np.ndarray):
            continue
        total += 8 * value.size
        if total > limit:
            raise BadInput(f"{path}: {key[:40]!r} grows too much as 64-bit numbers; store it as float64")
        out[key] = np.ascontiguousarray(value, np.float64)  # of at least one dimension
    return out


@dataclass
class _Description:
    """Interprets a description: a stack, what was put aside for later (memo), and the storages that were read."""

    path: Path
    archive: ZipFile
    folder: str
    stack: list[Any] = field(default_factory=list)
    memo: dict[int, Any] = field(default_factory=dict)
    storages: dict[str, bytes] = field(default_factory=dict)
    made: int = 0
    """Bytes that were made of texts."""

    def content(self, description: bytes) -> Any:
        """What is left at the end."""
        for step, (code, argument, _) in enumerate(pickletools.genops(description)):
            if step > STEPS:
                raise BadInput(f"{self.path}: data.pkl has more than {STEPS} instructions, which no log needs")
            if code.name == "STOP":
                break
            self._step(code.name, argument)
        return self.stack.pop()

    def _step(self, code: str, argument: Any) -> None:
        stack = self.stack
        if code in PLAIN:
            stack.append(argument)
        elif code in CONSTANTS:
            stack.append(CONSTANTS[code]())
        elif code in ("BINPUT", "LONG_BINPUT", "MEMOIZE"):
            self.memo[len(self.memo) if argument is None else argument] = stack[-1]
        elif code in ("BINGET", "LONG_BINGET"):
            stack.append(self.memo[argument])
        elif code.startswith("TUPLE"):
            stack.append(tuple(self._last(int(code[5:])) if code[5:] else self._marked()))
        elif code in ("SETITEM", "SETITEMS"):
            items = self._last(2) if code == "SETITEM" else self._marked()
            for key, value in zip(items[::2], items[1::2], strict=True):
                if isinstance(key, str):  # others are no names of signals, and may be costly to compare
                    stack[-1][key] = value
        elif code in ("APPEND", "APPENDS"):
            items = self._last(1) if code == "APPEND" else self._marked()
            stack[-1].extend(items)
        elif code in ("GLOBAL", "STACK_GLOBAL"):
            stack.append(self._name(argument if code == "GLOBAL" else " ".join(self._last(2))))
        elif code == "BINPERSID":
            stack.append(self._storage(*stack.pop()))
        elif code == "REDUCE":
            called, arguments = self._last(2)
            stack.append(CALLS[called.name](*arguments))
            self.made += len(stack[-1]) if isinstance(stack[-1], bytes) else 0
            if self.made > self.path.stat().st_size:
                raise BadInput(f"{self.path}: data.pkl makes more bytes than the file has")
        elif code == "BUILD":
            (state,) = self._last(1)
            _build(stack[-1], state)
        elif code not in ("PROTO", "FRAME"):
            raise BadInput(f"{self.path}: data.pkl has the instruction {code}, which no log needs")

    def _last(self, count: int) -> list[Any]:
        """The last things on the stack, which are taken from it."""
        if count > len(self.stack):
            raise IndexError("too little on the stack")
        taken = self.stack[len(self.stack) - count :]
        del self.stack[len(self.stack) - count :]
        return taken

    def _marked(self) -> list[Any]:
        """What was put on the stack since the last mark."""
        last = next(i for i in range(len(self.stack) - 1, -1, -1) if self.stack[i] is MARK)
        taken = self.stack[last + 1 :]
        del self.stack[last:]
        return taken

    def _name(self, name: str) -> _Name:
        if name not in CALLS and name != "numpy ndarray" and not _kind(name):
            raise BadInput(f"{self.path}: data.pkl refers to {name[:80]!r}, which no log needs")
        return _Name(name)

    def _storage(self, what: str, kind: _Name, key: str, *_: Any) -> _Storage:
        """A storage, with its numbers as they are in the file."""
        if what != "storage" or not isinstance(key, str):
            raise ValueError("a storage was expected")
        if key not in self.storages:
            self.storages[key] = self.archive.read(f"{self.folder}data/{key}")
        return _Storage(np.frombuffer(self.storages[key], _kind(kind.name)))


def _kind(name: str) -> str:
    """The type of the numbers in a storage that torch calls by this name; empty where there is none."""
    return STORAGES.get(name.removeprefix("torch ").removesuffix("Storage"), "") if name.startswith("torch ") else ""


def _tensor(storage: _Storage, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], *_: Any) -> np.ndarray:
    """A view of a storage, if all of it lies inside and it has no more numbers than the storage."""
    if not isinstance(storage, _Storage):
        raise ValueError("a tensor without a storage")
    if len(shape) > 2 or not all(type(n) is int and n >= 0 for n in (offset, *shape, *strides)):
        raise ValueError(f"a tensor of {len(shape)} dimensions, or with a size that is none")
    end = offset + sum((n - 1) * step for n, step in zip(shape, strides, strict=True)) + 1
    if min(shape, default=1) == 0:
        return np.zeros(shape)
    numbers = storage.numbers
    if math.prod(shape) > numbers.size or end > numbers.size:
        raise ValueError(f"a tensor of shape {shape} does not fit its storage")
    steps = [step * numbers.itemsize for step in strides]
    return np.lib.stride_tricks.as_strided(numbers[offset:], shape, steps, writeable=False)


def _encoded(text: str, encoding: str) -> bytes:
    """Bytes as older pickles write them."""
    if encoding != "latin1":
        raise ValueError("bytes are written as latin1")
    return text.encode("latin1")


def _dtype(name: str, *_: Any) -> _Numpy:
    if name not in NUMBERS:
        raise ValueError(f"an array of {name[:20]!r} is not one of plain numbers")
    return _Numpy(name)


def _filled(kind: _Numpy, shape: tuple[int, ...], content: bytes, columns_first: bool = False) -> np.ndarray:
    """An array of numbers from its bytes."""
    if len(shape) > 2 or not all(type(n) is int and n >= 0 for n in shape):
        raise ValueError(f"an array of {len(shape)} dimensions, or with a size that is none")
    dtype = np.dtype("<" + kind.dtype)
    if not isinstance(content, bytes) or math.prod(shape) * dtype.itemsize != len(content):
        raise ValueError(f"an array of shape {shape} does not fit its bytes")
    return np.frombuffer(content, dtype).reshape(shape, order="F" if columns_first else "C")


def _build(made: Any, state: tuple[Any, ...]) -> None:
    """State the rest of a numpy type (its byte order) or array (shape, type, order, bytes); other states are of no use here."""
    if not isinstance(made, _Numpy):
        return
    if made.dtype:
        if state[1] not in ("<", "|"):
            raise ValueError("an array that is not little-endian")
    else:
        _, shape, kind, columns_first, content = state
        made.array = _filled(kind, shape, content, bool(columns_first))


PLAIN = {"BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"}
PLAIN |= {"BINBYTES", "SHORT_BINBYTES", "BINBYTES8"}
"""Instructions that put a text, a number or bytes on the stack."""
CONSTANTS: dict[str, Callable[[], Any]] = {"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple, "MARK": lambda: MARK}
CONSTANTS |= {"NONE": lambda: None, "NEWTRUE": lambda: True, "NEWFALSE": lambda: False}
CALLS: dict[str, Callable[..., Any]] = {
    "collections OrderedDict": lambda: {},
    "torch._utils _rebuild_tensor_v2": _tensor,
    "_codecs encode": _encoded,
    "numpy dtype": _dtype,
}
for _module in ("numpy._core.multiarray", "numpy.core.multiarray"):
    CALLS[f"{_module} _reconstruct"] = lambda *_: _Numpy()
    CALLS[f"{_module} scalar"] = lambda kind, content: _Numpy(array=_filled(kind, (1,), content))
"""What a description may call, and what is called in its place."""
