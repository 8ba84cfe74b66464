"""Draft: the mapping of a foreign log, guessed from its names and numbers, with the reason beside every line.

print(draft([Path("run.csv")], load_robot("arm.xml").ranges).text)
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gapless.errors import BadInput
from gapless.logs import mapping as mappings
from gapless.logs.draft import match, values
from gapless.logs.draft.files import drafted_files, drafted_topics
from gapless.logs.formats import FORMATS, lerobot, no_log
from gapless.logs.inspection.finding import Ranges
from gapless.logs.log import Log
from gapless.logs.mapping import Mapping

NEEDED = {"csv", "npz", "pace", "lerobot"}
"""Formats whose files name their columns and nothing else."""
BAGS = {"mcap", "rosbag"}


@dataclass(frozen=True)
class Draft:
    """A mapping, and what was guessed."""

    text: str
    """TOML, with the reason of each guess beside it."""
    log: Log
    """What the mapping makes of the files."""
    guesses: tuple[str, ...]
    """In sentences, as they are in the text."""


def draft(paths: Sequence[Path], model: Ranges | None = None) -> Draft:
    """The mapping of one log.

    Args:
        paths: its file or folder; or its files, where it was recorded in several.
        model: joints and ranges of the robot's model, in the order of its drives, to match names and units with.
    """
    paths = _files(paths)
    kind = next((name for name, f in FORMATS.items() if f.can_read(paths[0])), None)
    if kind is None:
        raise no_log(paths[0])
    ranges = model or {}
    if len(paths) > 1 and kind != "csv":
        raise BadInput(f"{paths[1]}: only a log in CSV may be several files; draft the mapping of one log")
    below: list[str] = []
    if kind in BAGS:
        below = drafted_topics(paths[0], FORMATS[kind], list(ranges))
    elif kind in NEEDED and not _speaks(paths[0], kind):
        below = drafted_files(paths, kind)
    log = _read(paths[0], kind, "\n".join(below))
    unitree = any(word in " ".join(below).lower() for word in ("lowstate", "lowcmd", "motor_state", "motor_cmd"))
    stated = {c.signal for f in mappings.parsed("\n".join(below), "the draft").files for c in f.columns if c.conversion.unit}
    above, convert = _named(log, ranges, unitree, stated)
    lines = [f"about = {json.dumps('drafted by gapless init from ' + paths[0].name)}", *above, *below, *convert]
    text = "\n".join(lines) + "\n"
    guesses = [line.split("# ", 1) for line in lines if "  # " in line]
    said = tuple(f"{line.strip()}: {why}" for line, why in guesses)
    return Draft(text, _read(paths[0], kind, text), said)


def _files(paths: Sequence[Path]) -> list[Path]:
    """The files of one run: those named, or the tables in a folder."""
    if len(paths) == 1 and paths[0].is_dir() and not any(f.can_read(paths[0]) for f in FORMATS.values()):
        tables = sorted(p for p in paths[0].iterdir() if FORMATS["csv"].can_read(p) and p.suffix != ".toml")
        if not tables:
            raise BadInput(f"{paths[0]}: there is no log in this folder")
        return tables
    if not paths:
        raise BadInput("name a log")
    return list(paths)


def _speaks(path: Path, kind: str) -> bool:
    """Whether a file says itself what its arrays are."""
    if kind in ("csv", "lerobot"):
        return kind == "lerobot" and lerobot.is_dataset(path)
    try:
        FORMATS[kind].read(path, Mapping())
    except BadInput:
        return False
    return True


def _read(path: Path, kind: str, text: str) -> Log:
    return FORMATS[kind].read(path, mappings.parsed(text, "the draft"))


def _named(log: Log, ranges: Ranges, unitree: bool, stated: set[str]) -> tuple[list[str], list[str]]:
    """Lines on joints and units, and tables on signs. stated: signals whose unit the file says."""
    above: list[str] = []
    joints = list(ranges)
    if joints:
        names = [j for j in log.joints if j not in joints]
        pairs = match.by_name(log.joints, joints)
        how = "alike by name"
        if not pairs:
            pairs, how = match.by_order(log.joints, joints, unitree), "by number, in the order of the model's drives: check it"
            how = "by number, in the order of Unitree's motors (FR, FL, RR, RL): check it" if unitree and pairs else how
        changed = {old: new for old, new in pairs.items() if old != new}
        if changed:
            inside = ", ".join(f"{json.dumps(old)} = {json.dumps(new)}" for old, new in changed.items())
            above.append(f"rename = {{ {inside} }}  # {how}")
        lost = [n for n in names if n not in pairs]
        if lost:
            above.append(
                f"# not matched with a joint of the model: {', '.join(lost)} (free: {_few(set(joints) - {*pairs.values()})})"
            )
        log = log.rename(changed)
    units, degrees = _units(log, ranges, stated)
    if units:
        inside = ", ".join(f"{s} = {json.dumps(u)}" for s, (u, _) in units.items())
        above.append(f"units = {{ {inside} }}  # " + "; ".join(f"{s} is in {u}: {why}" for s, (u, why) in units.items()))
    if not {"q_cmd", "dq_cmd", "tau_cmd"} & {*log.signals}:
        above.append("# no commands were found (q_cmd, dq_cmd or tau_cmd), which replay, gap and fit need")
    if "q" not in log:
        above.append("# no positions were found (q), which inspect, replay, gap and fit need")
    back = {new: old for old, new in changed.items()} if joints else {}
    return above, _converted(log, units.get("q", ("rad", ""))[0], degrees, back)


def _converted(log: Log, unit: str, degrees: dict[str, list[str]], back: dict[str, str]) -> list[str]:
    """[convert]: joints in degrees beside others, turned, or mirrored. back: from a joint's name to that of the file."""
    told = [
        (s, j, 'unit = "deg"', "its numbers are 57 times as large as those of others")
        for s, names in degrees.items()
        for j in names
    ]
    turns = {} if degrees else values.turned(log, unit)
    told += [
        ("q", j, f"offset = {-turn:.6f}", f"q is {turn / values.TURN:+.0f} turns from its command") for j, turn in turns.items()
    ]
    why = "q goes against its command; if the command is wrong, write q_cmd instead of q"
    wrong = values.mirrored(log, log.shared("q", "q_cmd") if {"q", "q_cmd"} <= {*log.signals} else [])
    told += [("q", j, "sign = -1", why) for j in wrong if j not in turns]
    lines: dict[str, list[tuple[str, str]]] = {}
    for signal, joint, entry, reason in told:
        lines.setdefault(json.dumps(f"{signal}/{back.get(joint, joint)}"), []).append((entry, reason))
    written = [
        f"{key} = {{ {', '.join(entry for entry, _ in said)} }}  # {'; '.join(reason for _, reason in said)}"
        for key, said in lines.items()
    ]
    return ["[convert]", *written] if written else []


def _units(log: Log, ranges: Ranges, stated: set[str]) -> tuple[dict[str, tuple[str, str]], dict[str, list[str]]]:
    """The unit of each signal that does not state it, and why; and by signal the joints that are in degrees beside others."""
    units: dict[str, tuple[str, str]] = {}
    degrees = {} if stated & {"q", "q_cmd"} else values.in_degrees(log)
    if degrees:
        units["q"] = "rad", "but the joints that are converted below, whose numbers are in degrees: check them"
    elif "q" in log:
        units |= {} if "q" in stated else {"q": values.unit_of_angles(log, "q", ranges)}
        if "q_cmd" not in stated and (other := values.unit_of_commands(log, units.get("q", ("rad", ""))[0])):
            units["q_cmd"] = other
    if "dq" in log and "q" in log and "dq" not in stated:
        whole = units.get("q", ("rad", ""))[0] == "deg"
        speed = values.unit_of_speeds(log, log["q"].columns if whole else degrees.get("q", ()))
        units |= {"dq": speed} if speed[0] else {}
    return units, degrees


def _few(names: set[str]) -> str:
    return ", ".join(sorted(names)[:12]) or "none"
