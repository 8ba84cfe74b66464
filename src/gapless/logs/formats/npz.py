"""NPZ: our own (a JSON header and plain arrays, never pickled), and others' arrays by a mapping."""

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from gapless import files as disk
from gapless.errors import BadInput
from gapless.logs.assemble import log_of
from gapless.logs.log import Log, Provenance, Signal, by_clock
from gapless.logs.mapping import Mapping

HEADER = "gapless.json"
VERSION = 1
MOST_TEXT = 1 << 16
"""Bytes; a longer array of text is no list of joints."""


def can_read(path: Path) -> bool:
    return path.suffix.lower() == ".npz"


def read(path: Path, mapping: Mapping) -> Log:
    stored = arrays(path)
    if HEADER in stored:
        return rebuilt(path, _json(path, stored[HEADER]), stored, "npz")
    if not mapping.files:
        names = ", ".join(sorted(stored))
        raise BadInput(f"{path}: a mapping must say what its arrays are ({names}): `gapless init {path}` drafts one")
    return log_of(path, "npz", [(path, mapping.files[0].spread(list(stored)), stored)], mapping)


def write(log: Log, path: Path) -> None:
    """Every bit of every number survives."""
    header, arrays = described(log)
    arrays[HEADER] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    with disk.atomic(path) as temporary, temporary.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)


def described(log: Log) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """A log as a JSON header and arrays: clocks are stored once, however many signals share them."""
    arrays: dict[str, np.ndarray] = {}
    signals = {}
    for number, group in enumerate(by_clock(log)):
        arrays[f"time{number}"] = group[0].time
        if group[0].host_time is not None:
            arrays[f"host_time{number}"] = group[0].host_time
        for signal in group:
            arrays[signal.name] = signal.values
            signals[signal.name] = {"clock": number, "columns": list(signal.columns)}
    header = {"version": VERSION, "joints": list(log.joints), "meta": dict(log.meta), "signals": signals}
    header["provenance"] = asdict(log.provenance)
    header["order"] = list(log.signals)
    return header, arrays


def rebuilt(path: Path, header: dict[str, Any], arrays: dict[str, np.ndarray], format: str) -> Log:
    """The log that `described` took apart; its provenance says which file it now came from, and its notes stay."""
    damage = KeyError, TypeError, ValueError, AttributeError
    with disk.within(path), disk.refusing(f"{path}: the header does not fit the arrays", *damage):
        if header["version"] != VERSION:
            raise BadInput(f"{path}: version {header['version']!r} is not known; this gapless writes {VERSION}")
        signals = {}
        for name in header["order"]:
            entry = header["signals"][name]
            time = arrays[f"time{int(entry['clock'])}"]
            host = arrays.get(f"host_time{int(entry['clock'])}")
            columns = tuple(str(c) for c in entry["columns"])
            signals[name] = Signal(name, time, arrays[name].reshape(len(time), -1), columns, host)
        notes = tuple(str(n) for n in header["provenance"]["notes"])
        source = Provenance(str(path), disk.sha256(path), format, notes)
        return Log(signals, tuple(str(j) for j in header["joints"]), source, dict(header["meta"]))


def arrays(path: Path) -> dict[str, np.ndarray]:
    """Every array of numbers in the file, after its header was found to fit its size; `names` has those of text."""
    arrays: dict[str, np.ndarray] = {}
    with disk.check_zip(path) as archive:
        stored = sum(m.file_size for m in archive.infolist())
        disk.require_memory(path, 2 * stored)
        for member in archive.infolist():
            name = member.filename.removesuffix(".npy")
            # zipfile, zlib and numpy each have their own errors for damaged data
            with disk.refusing(f"{path}: array {name!r} is damaged", Exception), archive.open(member) as file:
                values = _array(path, name, file, member.file_size)
            if values is not None:
                arrays[name] = values
            if sum(a.nbytes for a in arrays.values()) > max(disk.FREE_EXPANSION, 3 * stored):
                raise BadInput(f"{path}: array {name!r} grows too much as 64-bit numbers; store it as float64")
    return arrays


def names(path: Path) -> list[tuple[str, ...]]:
    """The lists of texts in the file, such as joints' names."""
    out = []
    with disk.check_zip(path) as archive:
        for member in (m for m in archive.infolist() if m.file_size <= MOST_TEXT):
            with disk.refusing(f"{path}: array {member.filename!r} is damaged", Exception), archive.open(member) as file:
                if _header(file)[2].kind == "U":
                    file.seek(0)
                    out.append(tuple(map(str, np.lib.format.read_array(file, allow_pickle=False).ravel().tolist())))
    return out


def _header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether columns come first, and type of an array."""
    version = np.lib.format.read_magic(file)
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read_header(file, max_header_size=4096)
    return shape, fortran, dtype


def _array(path: Path, name: str, file: Any, size: int) -> np.ndarray | None:
    shape, fortran, dtype = _header(file)
    if dtype.kind in "US":
        return None
    if len(shape) > 2:
        raise BadInput(f"{path}: array {name!r} has shape {shape}; (samples,) or (samples, joints) was expected")
    if dtype.kind not in "fiub" or dtype.itemsize > 8:
        raise BadInput(f"{path}: array {name!r} holds {dtype}, not plain numbers")
    count = math.prod(shape)
    if count < 0 or count * dtype.itemsize != size - file.tell():
        raise BadInput(f"{path}: array {name!r} says shape {shape}, which does not fit its {size} bytes")
    values = np.frombuffer(file.read(), dtype)
    values = values.reshape(shape[::-1]).T if fortran else values.reshape(shape)
    return values if name == HEADER else np.ascontiguousarray(values, np.float64)


def _json(path: Path, header: np.ndarray) -> dict[str, Any]:
    with disk.refusing(f"{path}: {HEADER} is damaged", ValueError, RecursionError):
        value = json.loads(header.tobytes().decode())
    if not isinstance(value, dict):
        raise BadInput(f"{path}: {HEADER} is not a table")
    return value
