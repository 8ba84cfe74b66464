"""holosoma: JSON lists in the network's metadata; what goes in, the default pose, scale and period are not in the file."""

import json
import math
from typing import Any

from gapless.files import refusing
from gapless.policy.readers.draft import INFERRED, Draft
from gapless.policy.readers.files import PolicyFiles
from gapless.policy.readers.terms import in_order

LISTS = {
    "kp": "joints.kp",
    "kd": "joints.kd",
    "default_dof_angles": "joints.default_pos",
    "default_joint_angles": "joints.default_pos",
    "action_scale": "action.scale",
    "control_dt": "timing.control_dt",
}
TERMS = {name: {"frequency": 1.0, "phases": [0.0, math.pi], "standing": "stance"} for name in ("sin_phase", "cos_phase")}
"""Its gait clock, one phase a leg with a period of 1 s unless a user states another."""


def can_read(files: PolicyFiles) -> bool:
    return {"dof_names", "kp"} <= set(files.network.metadata)


def read(files: PolicyFiles, joints: tuple[str, ...]) -> Draft:
    """Joints, gains and commands from the metadata, the layout of history from the framework."""
    name, draft = files.network_path.name, Draft("holosoma")
    data: dict[str, Any] = {}
    for key in ("dof_names", "command_ranges", *LISTS):
        if key in files.network.metadata:
            with refusing(f"{name}: its metadata {key} is not JSON", ValueError, RecursionError):
                data[key] = json.loads(files.network.metadata[key])
    draft.put("joints.names", data["dof_names"], f"{name}: dof_names")
    for key, field in LISTS.items():
        draft.put(field, data.get(key), f"{name}: {key}")
    ranges = data.get("command_ranges")
    if isinstance(ranges, dict):
        draft.put("commands", in_order(ranges), f"{name}: command_ranges")
    why = "holosoma shows terms sorted by name, oldest frame first, zeros before the first"
    draft.suppose("observation.major", "term", why)
    draft.suppose("observation.order", "oldest_first", why)
    draft.suppose("observation.warmup", "zeros", why)
    draft.put("normalizer", "baked" if files.network.normalizer else None, "the network's first operation", INFERRED)
    return draft
