"""BAM's JSON: one servo on a bench, a list of entries with position, speed, load, goal, and constants beside it."""

import json
from array import array
from math import nan
from pathlib import Path
from typing import Any

import numpy as np

from gapless import files as disk
from gapless.errors import BadInput
from gapless.logs.assemble import log_of
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
    log = log_of(path, "bam", [(path, file, raw)], mapping, notes)
    if "kp" in constants:  # the firmware's number, not N m/rad
        constants["firmware"] = {"P": constants.pop("kp")}
        if "duty_per_P" in log.meta:  # then the gain is known in shares of the supply voltage per rad
            constants["kp"] = constants["firmware"]["P"] * log.meta["duty_per_P"]
    return Log(log.signals, log.joints, log.provenance, {**constants, **log.meta})


def _parsed(path: Path, text: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Constants, and the fields of all entries, (n,) each; an entry is taken apart as soon as it is parsed, to save memory."""
    fields: dict[str, array] = {}
    count = 0

    def take(entry: dict[str, Any]) -> dict[str, Any] | None:
        nonlocal count
        if "entries" in entry:  # the log itself, which ends last
            return entry
        if count == 0:
            fields.update({key: array("d") for key in ("timestamp", *COLUMNS) if key in entry})
        for key, values in fields.items():
            value = entry.get(key)
            if value is not None and not isinstance(value, int | float):
                raise BadInput(f"{path}: entry {count}: {key} is {str(value)[:40]!r}, not a number")
            with disk.refusing(f"{path}: entry {count}: {key} is too large a number", OverflowError):
                values.append(nan if value is None else value)
        count += 1
        return None

    with disk.refusing(f"{path}: not JSON", ValueError, RecursionError):
        log = json.loads(text, object_hook=take)
    if not isinstance(log, dict) or not isinstance(log["entries"], list) or len(log["entries"]) != count:
        raise BadInput(f"{path}: a BAM log has constants and a list of entries, each a table of numbers")
    constants = {key: value for key, value in log.items() if isinstance(value, int | float | str)}
    return constants, {key: np.frombuffer(values) for key, values in fields.items()}
