"""BAM's JSON: one servo on a bench, a list of entries with position, speed, load, goal, and constants beside it."""

import json
import re
from array import array
from math import nan
from pathlib import Path
from typing import Any

import numpy as np

from gapless import files as disk
from gapless.errors import BadInput
from gapless.logs.assemble import assemble, finish
from gapless.logs.log import Log
from gapless.logs.mapping import Column, File, Mapping

COLUMNS = {
    "position": "q",
    "speed": "dq",
    "goal_position": "q_cmd",
    "load": "load",
    "input_volts": "voltage",
    "temp": "temperature",
    "torque_enable": "enabled",
    "current": "current",
    "pwm": "duty",
}
MAX_ENTRY = 1 << 16
"""Characters of one entry or constant; a real entry has about 200."""
DECODER = json.JSONDecoder()
BLANK = re.compile(r"[ \t\r\n]*")


def can_read(path: Path) -> bool:
    return path.suffix.lower() == ".json"


def read(path: Path, mapping: Mapping) -> Log:
    disk.require_memory(path, 3 * disk.regular(path).stat().st_size)
    constants, raw = _parsed(path, disk.text(path, path.stat().st_size))
    if "timestamp" not in raw:
        raise BadInput(f"{path}: a BAM log has a list of entries with a timestamp each")
    notes = []
    if "load" in raw and np.any(raw["load"] > 32767):
        raw["load"] = np.where(raw["load"] > 32767, raw["load"] - 65536, raw["load"])
        notes.append("load: unsigned 16-bit numbers above 32767 read as negative")
    joint = mapping.joint_names or ("servo",)
    columns = tuple(Column(key, signal, joint) for key, signal in COLUMNS.items() if key in raw)
    file = File("timestamp", columns, time_unit=mapping.time_unit or "s")
    signals, more = assemble(path, file, raw, mapping, "entry")
    log = finish(path, "bam", signals, notes + more, mapping, [path])
    if "kp" in constants:  # the firmware's number, not N m/rad
        constants["firmware"] = {"P": constants.pop("kp")}
        if "duty_per_P" in log.meta:  # then the gain is known in shares of the supply voltage per rad
            constants["kp"] = constants["firmware"]["P"] * log.meta["duty_per_P"]
    return Log(log.signals, log.joints, log.provenance, {**constants, **log.meta})


def _parsed(path: Path, text: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Constants, and the fields of all entries, (n,) each. Entry by entry, since JSON takes many times its size in memory."""
    constants: dict[str, Any] = {}
    fields: dict[str, array] = {}
    place = _after(path, text, 0, "{")
    while text[place : place + 1] != "}":
        key, place = _value(path, text, place)
        place = _after(path, text, place, ":")
        if key == "entries":
            place = _entries(path, text, place, fields)
        else:
            value, place = _value(path, text, place)
            if isinstance(value, int | float | str):
                constants[str(key)] = value
        place = _next(path, text, place, "}")
    return constants, {key: np.frombuffer(values) for key, values in fields.items()}


def _entries(path: Path, text: str, place: int, fields: dict[str, array]) -> int:
    """Read the list of entries; returns the place behind it."""
    place, number = _after(path, text, place, "["), 0
    while text[place : place + 1] != "]":
        end = text.find("}", place, place + MAX_ENTRY) + 1
        try:
            entry = json.loads(text[place:end])
        except (ValueError, RecursionError) as error:
            raise BadInput(f"{path}: entry {number}, character {place}: not JSON ({error})") from None
        if number == 0:
            fields.update({key: array("d") for key in ("timestamp", *COLUMNS) if key in entry})
        for key, values in fields.items():
            value = entry.get(key) if isinstance(entry, dict) else "?"
            if value is not None and not isinstance(value, int | float):
                raise BadInput(f"{path}: entry {number}: {key} is {str(value)[:40]!r}, not a number")
            try:
                values.append(nan if value is None else value)
            except OverflowError:
                raise BadInput(f"{path}: entry {number}: {key} is too large a number") from None
        place, number = _next(path, text, end, "]"), number + 1
    return place + 1


def _value(path: Path, text: str, place: int) -> tuple[Any, int]:
    """A text or a number, and the place behind it."""
    try:
        if text[place : place + 1] in "[{":
            raise ValueError("a list or table where text or a number was expected")
        value, length = DECODER.raw_decode(text[place : place + MAX_ENTRY])
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path}: character {place}: not JSON of BAM ({error})") from None
    return value, place + length


def _after(path: Path, text: str, place: int, mark: str) -> int:
    """The place behind a mark that must come next."""
    place = BLANK.match(text, place).end()  # type: ignore[union-attr]
    if text[place : place + 1] != mark:
        raise BadInput(f"{path}: character {place}: {mark!r} was expected, not {text[place : place + 10]!r}")
    return BLANK.match(text, place + 1).end()  # type: ignore[union-attr]


def _next(path: Path, text: str, place: int, end: str) -> int:
    """The place of the next member, or of the mark that ends the list."""
    place = BLANK.match(text, place).end()  # type: ignore[union-attr]
    return place if text[place : place + 1] == end else _after(path, text, place, ",")
