"""Drafts of what is inside a file: the columns of tables and arrays, and the topics of bags."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gapless.errors import BadInput
from gapless.logs import table, torch_records
from gapless.logs.draft import match
from gapless.logs.draft.values import unit_of_time
from gapless.logs.draft.words import COMMAND, MEASURED, Reading, read_name, time_column, time_unit_of, tokens, unit_of
from gapless.logs.formats import lerobot, npz, rosbag
from gapless.logs.inspection.clock import COARSE
from gapless.logs.log import AXES, UNITS
from gapless.logs.mapping import JOINT, Mapping
from gapless.logs.ros2_log import Bag
from gapless.logs.table_head import Head, is_number

LIKELY = 0.7
"""Correlation between a command and a motion from which on they count as one joint's."""


def drafted_files(paths: Sequence[Path], kind: str) -> list[str]:
    """[[file]] for each file of a log."""
    names = [p.name for p in paths]
    start = next((i for i, letters in enumerate(zip(*names, strict=False)) if len(set(letters)) > 1), min(map(len, names)))
    whole = any(_is_command(p) for p in paths)
    lines: list[str] = []
    for path in paths:
        head, arrays = _arrays(path, kind)
        suffix = [f"suffix = {json.dumps(path.name[start:])}"] if len(paths) > 1 else []
        if kind == "npz" and len(paths) == 1:
            lines += _told(path, arrays)
        lines += ["", "[[file]]", *suffix, *_file(path, head, arrays, len(paths) > 1 and whole and _is_command(path))]
    return lines


def _told(path: Path, arrays: dict[str, np.ndarray]) -> list[str]:
    """The joints' names, where a list of texts has as many as an array has columns."""
    widths = {a.shape[1] for a in arrays.values() if a.ndim == 2}
    told = next((n for n in npz.names(path) if len(n) in widths and len({*n}) == len(n)), None)
    return [f"joint_names = {json.dumps(told)}  # the file lists them"] if told else []


def _is_command(path: Path) -> bool:
    """Whether a file is of commands by its name."""
    words = {word for word, _, _ in tokens(path.name.split(".")[0])}
    return bool(words & COMMAND) or any(word.endswith("cmd") for word in words)


def _arrays(path: Path, kind: str) -> tuple[Head | None, dict[str, np.ndarray]]:
    """The numbers of a file by the names that it gives them."""
    if kind == "npz":
        return None, npz.arrays(path)
    if kind == "pace":
        return None, torch_records.arrays(path)
    if kind == "lerobot":
        return None, lerobot.arrays(path)
    head = table.head(path)
    if not head.names:
        raise BadInput(f"{path}: there is no table in it")
    numbers = [n for n, cell in zip(head.names, table.first_row(path), strict=False) if is_number(cell) or not cell]
    if len(set(numbers)) < len(numbers):
        raise BadInput(f"{path}: column {next(n for n in numbers if numbers.count(n) > 1)!r} is there twice; rename one")
    arrays = table.read(path, numbers)
    _one_row_a_time(path, [n for n in head.names if n not in numbers], arrays)
    return head, arrays


def _one_row_a_time(path: Path, worded: list[str], arrays: dict[str, np.ndarray]) -> None:
    """Refuse a table with a row for each joint at each time, or with times in words."""
    named = time_column(list(arrays))
    if worded and named and len(steps := np.diff(arrays[named[0]], axis=0)) and np.mean(steps == 0) > COARSE:
        raise BadInput(
            f"{path}: {named[0]!r} repeats row after row, each for another {worded[0]!r}: make it one row a time with a column "
            f"for each (in pandas: pivot_table(index={named[0]!r}, columns={worded[0]!r}))"
        )
    if not named and (dates := time_column(worded) or [n for n in worded if "date" in n.lower()]):
        raise BadInput(f"{path}: the times in column {dates[0]!r} are words: write seconds instead")


def _file(path: Path, head: Head | None, arrays: dict[str, np.ndarray], commands: bool) -> list[str]:
    """The clock and the columns of one file."""
    flat = {n: a.reshape(len(a), -1) for n, a in arrays.items() if a.size and a.dtype.kind == "f"}
    row = dict(zip(head.names, head.units, strict=False)) if head else {}
    clock, why = _clock(path, flat)
    lines = [f"time = {json.dumps(clock)}  # {why}"]
    unit, guess = time_unit_of(clock, row.get(clock, "")), unit_of_time(flat[clock][:, 0])
    if unit:
        lines.append(f"time_unit = {json.dumps(unit)}  # the file says so")
    elif guess:
        lines.append(f"time_unit = {json.dumps(guess[0])}  # gives {guess[1]:.3g} samples a second")
    else:
        lines.append('time_unit = "s"  # not told by the numbers: check it')
    readings: dict[str, Reading] = {}
    for name, values in flat.items():
        reading = read_name(name, commands)
        if reading and name != clock and len(values) == len(flat[clock]):
            readings[name] = reading
    readings = readings or _by_file(path, [n for n, v in flat.items() if n != clock and len(v) == len(flat[clock])])
    if not any(r.signal == "q_cmd" for r in readings.values()):
        readings = _desired(readings, flat)
    if not readings and head and head.names == [str(i) for i in range(len(head.names))]:
        raise BadInput(f"{path}: has no line of names: write one on top, such as time,hip_pos,hip_cmd")
    if not readings:
        uneven = "; ".join(line.removeprefix("# ") for line in _uneven(flat, clock))
        raise BadInput(
            f"{path}: no column is known by its name ({', '.join(list(flat)[:12])})"
            + (f": {uneven}" if uneven else "; write its mapping by hand, as docs/logs.md shows")
        )
    lines.append("[file.columns]")
    return lines + _columns(readings, flat, row) + _left(readings, flat, clock) + _uneven(flat, clock)


def _by_file(path: Path, names: list[str]) -> dict[str, Reading]:
    """Columns that are called as their joints, of a file that is called as its signal."""
    stem = path.name.partition(".")[0]
    reading = read_name(stem)
    measured = any(word in MEASURED for word, _, _ in tokens(stem))
    signal = reading.signal if reading else "q" if measured else ""
    return {name: Reading(signal, name) for name in names if name} if signal else {}


def _desired(readings: dict[str, Reading], flat: dict[str, np.ndarray]) -> dict[str, Reading]:
    """qd may be a velocity or the desired position: the latter where it is like q, and not like its slope."""
    q = {r.joint: flat[n][:, 0] for n, r in readings.items() if r.signal == "q"}
    said = {n: r for n, r in readings.items() if r.signal == "dq" and r.joint in q and "qd" in {w for w, *_ in tokens(n)}}
    pairs = [(flat[n][:, 0], q[r.joint]) for n, r in said.items() if np.std(q[r.joint]) > 0 < np.std(flat[n])]
    alike = [np.abs(np.corrcoef([u, v, np.gradient(v)])[0, 1:]) for u, v in pairs if len(u) > 1]
    if not alike or not LIKELY < np.median(alike, axis=0)[0] > np.median(alike, axis=0)[1]:
        return readings
    return readings | {n: replace(r, signal="q_cmd", unit=r.unit.removesuffix("/s")) for n, r in said.items()}


def _clock(path: Path, flat: dict[str, np.ndarray]) -> tuple[str, str]:
    """The column of times, and why."""

    def rises(name: str) -> bool:
        steps = np.diff(flat[name][:, 0]) if flat[name].shape[1] == 1 else np.empty(0)
        return len(steps) > 0 and bool(np.mean(steps >= 0) > 0.99 and np.nanmax(steps) > 0)

    named = [n for n in time_column(list(flat)) if flat[n].shape[1] == 1]
    if named:
        best = next((n for n in named if rises(n)), named[0])
        return best, "by its name, and it rises" if rises(best) else "by its name, although it does not rise throughout"
    if rising := [n for n in flat if rises(n)]:
        return rising[0], "it rises throughout"
    columns = ", ".join(list(flat)[:12])
    raise BadInput(f"{path}: no column is a time by its name, and none rises: add one of times; its columns: {columns}")


def _columns(readings: dict[str, Reading], flat: dict[str, np.ndarray], row: dict[str, str]) -> list[str]:
    """One line a pattern or column; the same signal is not given twice."""
    lines: list[str] = []
    if any(r.signal == "q_cmd" for r in readings.values()):  # beside a position, a commanded torque is one fed forward
        forward = {n: replace(r, signal="tau_ff") for n, r in readings.items() if r.signal == "tau_cmd"}
        readings = {**readings, **forward}
    taken: dict[tuple[str, str], str] = {}
    patterns: dict[tuple[str, str], dict[str, list[str]]] = {}
    for name, r in list(readings.items()):
        if (r.signal, r.joint) in taken or (r.signal in AXES and flat[name].shape[1] == 1 and not r.joint):
            lines.append(
                f"# {name}: left out, as {taken.get((r.signal, r.joint), 'its axis is not told')} is {r.signal} already"
            )
            continue
        taken[r.signal, r.joint] = name
        r = readings[name] = replace(r, unit=r.unit or unit_of(row.get(name, ""), r.signal))
        patterns.setdefault((r.signal, r.pattern or name), {}).setdefault(r.unit, []).append(name)
    stated = {r.signal for r in readings.values() if r.unit}
    for (signal, pattern), by_unit in patterns.items():
        most = max(by_unit.values(), key=len)
        for unit, names in by_unit.items():
            tail = f", unit = {json.dumps(unit)}" if unit else ""
            doubt = f"; no unit is stated, {UNITS[signal]} is assumed" if signal in stated and not unit else ""
            if len(names) > 1 and names is most and JOINT in pattern:
                inside = f"signal = {json.dumps(signal)}{tail}"
                lines.append(f"{json.dumps(pattern)} = {{ {inside} }}  # {len(names)} columns by their names{doubt}")
                continue
            for name in names:
                joint = readings[name].joint if flat[name].shape[1] == 1 else ""
                inside = f"signal = {json.dumps(signal)}" + (f", joint = {json.dumps(joint)}" if joint else "") + tail
                lines.append(f"{json.dumps(name)} = {{ {inside} }}  # by its name{doubt}")
    return lines


def _uneven(flat: dict[str, np.ndarray], clock: str) -> list[str]:
    """A line for each array that would be known by its name, but has not as many rows as there are times."""
    n = len(flat[clock])
    return [
        f"# {name}: left out, as it has {len(values)} rows and there are {n} times"
        for name, values in flat.items()
        if len(values) != n and read_name(name)
    ]


def _left(readings: dict[str, Reading], flat: dict[str, np.ndarray], clock: str) -> list[str]:
    rest = [n for n in flat if n and n not in readings and n != clock]
    return [f"# not known by their names: {', '.join(rest[:20])}"] if rest else []


def drafted_topics(path: Path, source: Any, joints: list[str]) -> list[str]:
    """[topics] of a bag; numbers without names are matched with the joints that move as they say."""
    bag: Bag = rosbag.collected(path, Mapping())
    if not bag.topics:
        return []  # our own file, or one that reading will refuse with its topics
    notes: list[str] = []
    lines, uses = ["", "[topics]"], bag.chosen(notes, first=True)
    for name, topic in bag.topics.items():
        fields = uses.get(name, {})
        inside = ", ".join(f"{_key(path)} = {json.dumps(signal)}" for path, signal in fields.items())
        if fields:
            lines.append(f"{json.dumps(name)} = {{ {inside} }}  # by its type, {topic.kind}")
        elif not topic.use.fields:
            lines.append(_unnamed(bag, name, uses))
        else:
            lines.append(f"# {json.dumps(name)}: {topic.kind}, not used, as others hold the same")
    lines += [f"# {json.dumps(name)}: {kind}, not read" for name, kind in sorted(bag.others.items())]
    return lines


def _key(path: str) -> str:
    return path if path.replace("_", "").isalnum() else json.dumps(path)


def _unnamed(bag: Bag, name: str, uses: dict[str, dict[str, str]]) -> str:
    """A line on a topic of bare numbers, as commands of the joints that they explain."""
    group = bag.topics[name].main
    data = group.numbers("data")
    state = next((n for n, fields in uses.items() if "q" in fields.values()), None)
    line = f'{json.dumps(name)} = {{ data = "q_cmd", joints = '
    if state is None or "position" not in bag.topics[state].use.fields:
        names = [f"joint{i}" for i in range(data.shape[1])]
        return f"{line}{json.dumps(names)} }}  # numbers without names: name the joints in their order"
    moved = bag.topics[state].main
    q, names = moved.numbers("position"), list(moved.names)
    times, sent = (np.array(g.log_times, np.int64) for g in (moved, group))
    held = data[np.maximum(np.searchsorted(sent, times, side="right") - 1, 0)]
    rate = 1e9 / max(float(np.median(np.diff(times))), 1.0) if len(times) > 1 else 1.0
    if data.shape[1] > len(names):
        return f"# {json.dumps(name)}: {data.shape[1]} numbers without names, and {len(names)} joints are measured"
    places, least = match.by_motion(held, q, rate)
    if least < LIKELY:
        places, why = list(range(data.shape[1])), f"no motion follows these numbers clearly: in the order of {state}, check it"
    else:
        why = f"by which joint moves as each number says (correlation {least:.2f} and more)"
    return f"{line}{json.dumps([names[i] for i in places])} }}  # {why}"
