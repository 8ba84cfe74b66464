"""Mapping: a small TOML file that says what the columns of a foreign log mean, in which unit, for which joint."""

import tomllib
from collections.abc import Mapping as Table
from dataclasses import dataclass, field
from importlib import resources
from math import pi
from pathlib import Path
from typing import Any

import numpy as np

from gapless import files as disk
from gapless.errors import BadInput, unknown
from gapless.logs.log import UNITS

FACTORS = {
    "s": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9},
    "rad": {"rad": 1.0, "deg": pi / 180, "mrad": 1e-3, "rev": 2 * pi, "m": 1.0, "mm": 1e-3},
    "rad/s": {"rad/s": 1.0, "deg/s": pi / 180, "rev/s": 2 * pi, "rpm": 2 * pi / 60, "m/s": 1.0},
    "N m": {"N m": 1.0, "mN m": 1e-3, "kgf cm": 0.0980665, "N": 1.0},
    "N m/rad": {"N m/rad": 1.0, "N m/deg": 180 / pi},
    "N m s/rad": {"N m s/rad": 1.0, "N m s/deg": 180 / pi},
    "A": {"A": 1.0, "mA": 1e-3},
    "V": {"V": 1.0, "mV": 1e-3},
    "degC": {"degC": 1.0},
    "count": {"count": 1.0},
    "1": {"1": 1.0, "%": 0.01},
    "wxyz": {"wxyz": 1.0, "xyzw": 1.0},
    "m/s^2": {"m/s^2": 1.0, "g": 9.80665},
    "m": {"m": 1.0, "mm": 1e-3},
    "m/s": {"m/s": 1.0, "mm/s": 1e-3},
}
"""Units that a file may use, by the unit a log holds."""

CONVERSION_KEYS = ("unit", "sign", "scale", "offset", "range")
COLUMN_KEYS = ("signal", "joint", "joints", *CONVERSION_KEYS)
FILE_KEYS = ("suffix", "time", "host_time", "time_unit", "columns")
KEYS = ("about", "notes", "time_unit", "joint_names", "rename", "convert", "meta", "file")


@dataclass(frozen=True)
class Conversion:
    """value = raw * factor * sign * scale + offset; `range` turns 0..1 into low..high."""

    unit: str = ""
    sign: float = 1.0
    scale: float = 1.0
    offset: float = 0.0

    def apply(self, signal: str, raw: np.ndarray) -> np.ndarray:
        """raw: (n, k) of one signal. Returns the same shape in the log's unit."""
        if self.unit == "xyzw":
            if raw.shape[1] != 4:
                raise BadInput("unit xyzw is for a column of four numbers; name the axis of single columns instead")
            raw = raw[:, [3, 0, 1, 2]]
        factor = FACTORS[UNITS[signal]][self.unit or UNITS[signal]] * self.sign * self.scale
        return raw if factor == 1.0 and self.offset == 0.0 else raw * factor + self.offset

    def note(self, what: str, unit: str) -> str:
        """What was done, in words; empty where nothing was."""
        done = [f"turned from {self.unit} into {unit}"] if self.unit not in ("", unit) else []
        done += ["sign flipped"] if self.sign < 0 else []
        if self.scale != 1 and self.offset:
            done.append(f"0..1 turned into {self.offset:g}..{self.offset + self.scale:g} {unit}")
        else:
            done += [f"times {self.scale:g}"] if self.scale != 1 else []
            done += [f"plus {self.offset:g} {unit}"] if self.offset else []
        return f"{what}: {', '.join(done)}" if done else ""


@dataclass(frozen=True)
class Column:
    """One column (or array) of a file: which signal it is and for which joints (or axes, w x y z)."""

    source: str
    signal: str
    joints: tuple[str, ...] | None = None
    """None: one a joint, in the order of the file."""
    conversion: Conversion = Conversion()


@dataclass(frozen=True)
class File:
    """One file of a log: its clock and its columns. A log may be several files that differ in their suffix."""

    time: str
    columns: tuple[Column, ...]
    suffix: str = ""
    host_time: str = ""
    time_unit: str = "s"


@dataclass(frozen=True)
class Mapping:
    """What a user states about a log; every field may be left out where the format says it itself."""

    name: str = ""
    about: str = ""
    notes: tuple[str, ...] = ()
    time_unit: str = ""
    joint_names: tuple[str, ...] = ()
    rename: Table[str, str] = field(default_factory=dict)
    convert: Table[str, Conversion] = field(default_factory=dict)
    meta: Table[str, Any] = field(default_factory=dict)
    files: tuple[File, ...] = ()


def built_in() -> dict[str, Path]:
    """The mappings that come with the project, by name."""
    folder = Path(str(resources.files("gapless.logs") / "mappings"))
    return {p.stem: p for p in sorted(folder.glob("*.toml"))}


def load(source: str | Path) -> Mapping:
    """A built-in mapping by name, or a TOML file by path."""
    path = Path(source)
    if path.suffix != ".toml":
        names = built_in()
        if str(source) not in names:
            raise unknown("mapping", str(source), names)
        path = names[str(source)]
    try:
        table = tomllib.loads(disk.text(path, 1 << 20))
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise error if isinstance(error, BadInput) else BadInput(f"{path}: not TOML ({error})") from None
    return _mapping(path, table)


def _mapping(path: Path, table: dict[str, Any]) -> Mapping:
    _known(path, "the mapping", table, KEYS)
    unit = _text(path, table, "time_unit", "")
    if unit and unit not in FACTORS["s"]:
        raise BadInput(f"{path}: time_unit: {unknown('unit', unit, FACTORS['s'])}")
    convert = {}
    for key, entry in _table(path, table, "convert").items():
        signal = key.split("/", 1)[0]
        if signal not in UNITS:
            raise BadInput(f"{path}: convert: {unknown('signal', signal, UNITS)}")
        convert[key] = _conversion(path, f"convert {key!r}", signal, entry)
    files = table.get("file", [])
    if not isinstance(files, list):
        raise BadInput(f"{path}: write [[file]], not [file]")
    rename = _table(path, table, "rename")
    if not all(isinstance(v, str) for v in rename.values()):
        raise BadInput(f"{path}: rename: every joint needs a name in quotes")
    return Mapping(
        name=path.stem,
        about=_text(path, table, "about", ""),
        notes=_texts(path, "notes", table.get("notes", [])),
        time_unit=unit,
        joint_names=_texts(path, "joint_names", table.get("joint_names", [])),
        rename=rename,
        convert=convert,
        meta=_table(path, table, "meta"),
        files=tuple(_file(path, f, unit) for f in files),
    )


def _file(path: Path, table: Any, time_unit: str) -> File:
    if not isinstance(table, dict):
        raise BadInput(f"{path}: every [[file]] must be a table")
    _known(path, "[[file]]", table, FILE_KEYS)
    if "time" not in table:
        raise BadInput(f'{path}: [[file]] does not say which column is the time (time = "...")')
    unit = _text(path, table, "time_unit", time_unit or "s")
    if unit not in FACTORS["s"]:
        raise BadInput(f"{path}: time_unit: {unknown('unit', unit, FACTORS['s'])}")
    columns = []
    for source, entry in _table(path, table, "columns").items():
        where = f"column {source!r}"
        if not isinstance(entry, dict) or not isinstance(entry.get("signal"), str):
            raise BadInput(f'{path}: {where} needs a signal, as in {{ signal = "q", joint = "knee" }}')
        _known(path, where, entry, COLUMN_KEYS)
        signal = entry["signal"]
        if signal not in UNITS:
            raise BadInput(f"{path}: {where}: {unknown('signal', signal, UNITS)}")
        named = [entry["joint"]] if "joint" in entry else entry.get("joints")
        joints = None if named is None else _texts(path, where, named)
        columns.append(Column(source, signal, joints, _conversion(path, where, signal, entry)))
    return File(
        _text(path, table, "time", ""),
        tuple(columns),
        _text(path, table, "suffix", ""),
        _text(path, table, "host_time", ""),
        unit,
    )


def _conversion(path: Path, where: str, signal: str, entry: Any) -> Conversion:
    if not isinstance(entry, dict):
        raise BadInput(f'{path}: {where} must be a table such as {{ unit = "deg" }}')
    if not where.startswith("column"):
        _known(path, where, entry, CONVERSION_KEYS)
    unit = _text(path, entry, "unit", "")
    if unit and unit not in FACTORS[UNITS[signal]]:
        raise BadInput(f"{path}: {where}: {unknown('unit', unit, FACTORS[UNITS[signal]])}")
    numbers = {k: entry.get(k, d) for k, d in (("sign", 1.0), ("scale", 1.0), ("offset", 0.0))}
    if "range" in entry:
        low, high = entry["range"] if isinstance(entry["range"], list) and len(entry["range"]) == 2 else (None, None)
        if not (isinstance(low, int | float) and isinstance(high, int | float)):
            raise BadInput(f"{path}: {where}: range must be [low, high]")
        numbers |= {"scale": high - low, "offset": low}
    for key, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
            raise BadInput(f"{path}: {where}: {key} must be a number, not {value!r}")
    if numbers["sign"] not in (1, -1):
        raise BadInput(f"{path}: {where}: sign must be 1 or -1, not {numbers['sign']!r}")
    return Conversion(unit, float(numbers["sign"]), float(numbers["scale"]), float(numbers["offset"]))


def _known(path: Path, where: str, table: dict[str, Any], valid: tuple[str, ...]) -> None:
    for key in table:
        if key not in valid:
            raise BadInput(f"{path}: {where}: {unknown('key', key, valid)}")


def _table(path: Path, table: dict[str, Any], key: str) -> dict[str, Any]:
    value = table.get(key, {})
    if not isinstance(value, dict):
        raise BadInput(f"{path}: {key} must be a table")
    return value


def _text(path: Path, table: dict[str, Any], key: str, default: str) -> str:
    value = table.get(key, default)
    if not isinstance(value, str):
        raise BadInput(f"{path}: {key} must be text in quotes, not {value!r}")
    return value


def _texts(path: Path, where: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
        raise BadInput(f"{path}: {where}: a list of names was expected, not {value!r}")
    return tuple(value)
