"""mjlab and whole_body_tracking: lists in the network's metadata, as text with commas, rounded to three digits."""

import math
from typing import Any

from gapless.errors import BadInput
from gapless.policy.parts import CLOCKS
from gapless.policy.readers.draft import INFERRED, Draft
from gapless.policy.readers.files import PolicyFiles
from gapless.policy.readers.terms import COMMANDS, fill, term

LISTS = {
    "joint_stiffness": "joints.kp",
    "joint_damping": "joints.kd",
    "default_joint_pos": "joints.default_pos",
    "action_scale": "action.scale",
}
VELOCITY = ("twist", "base_velocity", "velocity", "vel")
OTHERS = {"history_length": "observation_history_lengths"}
"""Keys that copies of whole_body_tracking have instead."""
SIZES = {"motion_anchor_pos_b": 3, "motion_anchor_ori_b": 6}


def can_read(files: PolicyFiles) -> bool:
    return {"joint_names", "joint_stiffness"} <= set(files.network.metadata)


def read(files: PolicyFiles, joints: tuple[str, ...]) -> Draft:
    """Names and figures from the metadata; scale, clip and history of terms where mjlab wrote them, as 1.6 does."""
    network, name = files.network, files.network_path.name
    data, draft = network.metadata, Draft("mjlab")
    names = [n.strip() for n in data["joint_names"].split(",")]
    draft.put("joints.names", names, f"{name}: joint_names")
    for key, field in LISTS.items():
        if key in data:
            numbers = _numbers(data[key], f"{name}: {key}")
            draft.put(field, numbers if len(numbers) > 1 else numbers[0], f"{name}: {key} (rounded to 3 digits)")
    draft.put("source.run", data.get("run_path"), f"{name}: run_path")
    draft.suppose("action.offset", draft.get("joints.default_pos"), "targets are offsets from the default pose")
    commands = [c.strip() for c in data.get("command_names", "").split(",") if c.strip()]
    motion = bool(commands) and not any(c in VELOCITY or "vel" in c for c in commands) and set(commands) != set(COMMANDS)
    observed = [t.strip() for t in data.get("observation_names", "").split(",") if t.strip()]
    if observed:
        stated = _stated(data, name, observed)
        terms: list[dict[str, Any]] = [
            {"name": t, "kind": "motion", "scale": 1.0, "history": 1} | more
            if motion and t == "command"
            else term(t, len(names), **({"dim": SIZES[t]} if t in SIZES else {}), **more)
            for t, more in zip(observed, stated, strict=True)
        ]
        clocks = [t["name"] for t in terms if t.get("kind") in CLOCKS]
        if clocks:
            draft.notes.append(f"the period of {', '.join(clocks)} is not stated: state observation.terms")
        elif fill(terms, network.width):
            total = sum(t["dim"] for t in terms)
            told = any("history" in more for more in stated)
            if not told and network.width and total != network.width and network.width % total == 0:
                for t in terms:
                    t["history"] = network.width // total
                draft.notes.append(
                    f"{network.width} inputs are {network.width // total} frames of {total}: history is inferred"
                )
            draft.put("observation.terms", terms, f"{name}: observation_names")
            draft.suppose("observation.major", "term", "mjlab's history is by term, oldest first, the first frame repeated")
        else:
            draft.notes.append(f"the sizes of {', '.join(t['name'] for t in terms if 'dim' not in t)} are not stated")
    if any(t.get("kind") == "command" for t in draft.get("observation.terms") or ()):
        draft.put("commands", dict.fromkeys(COMMANDS), f"{name}: command_names without ranges", INFERRED)
    return draft


def _stated(data: dict[str, str], file: str, terms: list[str]) -> list[dict[str, Any]]:
    """Scale, clip and history of each term, where the metadata has them: with commas between terms, semicolons within."""
    out: list[dict[str, Any]] = [{} for _ in terms]
    for key, field in (("scale", "scale"), ("history_length", "history"), ("clip", "clip")):
        entries = data.get(f"observation_terms_{key}", data.get(OTHERS.get(key, ""), "")).split(",")
        if entries == [""]:
            continue
        if len(entries) != len(terms):
            raise BadInput(f"{file}: observation_terms_{key} has {len(entries)} entries for {len(terms)} terms")
        for more, entry in zip(out, entries, strict=True):
            what = f"{file}: observation_terms_{key}"
            if field == "clip" and "inf" in entry:
                continue  # mjlab writes -inf;inf for none
            values = _numbers(entry.replace(";", ","), what)
            more[field] = max(1, round(values[0])) if field == "history" else values if len(values) > 1 else values[0]
    return out


def _numbers(text: str, what: str) -> list[float]:
    try:
        values = [float(v) for v in text.split(",")]
    except ValueError:
        values = [math.nan]
    if not all(map(math.isfinite, values)):
        raise BadInput(f"{what}: numbers with commas between them were expected, not {text[:40]!r}")
    return values
