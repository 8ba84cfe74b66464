"""mjlab and whole_body_tracking: lists in the network's metadata, as text with commas, rounded to three digits."""

import math
from typing import Any

from gapless.errors import BadInput
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
SIZES = {"motion_anchor_pos_b": 3, "motion_anchor_ori_b": 6}


def can_read(files: PolicyFiles) -> bool:
    return {"joint_names", "joint_stiffness"} <= set(files.network.metadata)


def read(files: PolicyFiles, joints: tuple[str, ...]) -> Draft:
    """Names and figures from the metadata; history and scales have no key there."""
    network, name = files.network, files.network_path.name
    data, draft = network.metadata, Draft("mjlab")
    names = [n.strip() for n in data["joint_names"].split(",")]
    draft.put("joints.names", names, f"{name}: joint_names")
    for key, field in LISTS.items():
        if key in data:
            draft.put(field, _numbers(data[key], f"{name}: {key}"), f"{name}: {key} (rounded to 3 digits)")
    draft.put("source.run", data.get("run_path"), f"{name}: run_path")
    draft.suppose("action.offset", draft.get("joints.default_pos"), "targets are offsets from the default pose")
    commands = [c.strip() for c in data.get("command_names", "").split(",") if c.strip()]
    motion = bool(commands) and not any(c in VELOCITY or "vel" in c for c in commands) and set(commands) != set(COMMANDS)
    observed = [t.strip() for t in data.get("observation_names", "").split(",") if t.strip()]
    if observed:
        terms: list[dict[str, Any]] = [
            {"name": t, "kind": "motion", "scale": 1.0, "history": 1}
            if motion and t == "command"
            else term(t, len(names), **({"dim": SIZES[t]} if t in SIZES else {}))
            for t in observed
        ]
        if fill(terms, network.width):
            total = sum(t["dim"] for t in terms)
            if network.width and total != network.width and network.width % total == 0:
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


def _numbers(text: str, what: str) -> list[float]:
    try:
        values = [float(v) for v in text.split(",")]
    except ValueError:
        values = [math.nan]
    if not all(map(math.isfinite, values)):
        raise BadInput(f"{what}: numbers with commas between them were expected, not {text[:40]!r}")
    return values
