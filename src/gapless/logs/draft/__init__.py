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
from gapless.logs.formats import FORMATS
from gapless.logs.inspection.finding import Ranges
from gapless.logs.log import Log
from gapless.logs.mapping import Mapping

NEEDED = {"csv", "npz", "pace"}
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
        there = paths[0].exists()
        raise BadInput(
            f"{paths[0]}: " + (f"not a log of a known format ({', '.join(FORMATS)})" if there else "there is no such log")
        )
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
    above, convert = _named(log, ranges, unitree)
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
    if kind == "csv":
        return False
    try:
        FORMATS[kind].read(path, Mapping())
    except BadInput:
        return False
    return True


def _read(path: Path, kind: str, text: str) -> Log:
    return FORMATS[kind].read(path, mappings.parsed(text, "the draft"))


def _named(log: Log, ranges: Ranges, unitree: bool) -> tuple[list[str], list[str]]:
    """Lines on joints and units, and tables on signs."""
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
    units: dict[str, tuple[str, str]] = {}
    stated = {note.split(":")[0].split(" (")[0] for note in log.provenance.notes if "converted from" in note}
    if "q" in log and "q" not in stated:
        units["q"] = values.unit_of_angles(log, "q", ranges)
        if "q_cmd" not in stated and (other := values.unit_of_commands(log, units["q"][0])):
            units["q_cmd"] = other
    if "dq" in log and "q" in log and "dq" not in stated:
        angle = units.get("q", ("rad", ""))[0]
        speed = values.unit_of_speeds(log, angle)
        units |= {"dq": speed} if speed[0] else {}
    if units:
        inside = ", ".join(f"{s} = {json.dumps(u)}" for s, (u, _) in units.items())
        above.append(f"units = {{ {inside} }}  # " + "; ".join(f"{s} is in {u}: {why}" for s, (u, why) in units.items()))
    if not {"q_cmd", "dq_cmd", "tau_cmd"} & {*log.signals}:
        above.append("# no commands were found (q_cmd, dq_cmd or tau_cmd), which replay, gap and fit need")
    if "q" not in log:
        above.append("# no positions were found (q), which inspect, replay, gap and fit need")
    back = {new: old for old, new in changed.items()} if joints else {}
    turned = values.turned(log, units.get("q", ("rad", ""))[0])
    wrong = values.mirrored(log, log.shared("q", "q_cmd") if {"q", "q_cmd"} <= {*log.signals} else [])
    below = ["[convert]"] if wrong or turned else []
    for joint in dict.fromkeys([*turned, *wrong]):
        if joint in turned:
            what = f"offset = {-turned[joint]:.6f}", f"q is {turned[joint] / values.TURN:+.0f} turns from its command"
        else:
            what = "sign = -1", "q goes against its command; if the command is wrong, write q_cmd instead of q"
        below.append(f"{json.dumps(f'q/{back.get(joint, joint)}')} = {{ {what[0]} }}  # {what[1]}")
    return above, below


def _few(names: set[str]) -> str:
    return ", ".join(sorted(names)[:12]) or "none"
