"""What other frameworks call the terms of an observation, and what each is here."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from gapless.errors import BadInput
from gapless.policy.parts import CLOCKS, SIZES

KINDS = {
    "gyro": ("gyro", "base_ang_vel", "ang_vel", "ang_vel_body", "omega", "base_angular_velocity", "imu_ang_vel"),
    "gravity": ("gravity", "projected_gravity", "gravity_vec", "gravity_orientation", "proj_gravity"),
    "command": ("command", "commands", "cmd", "velocity_commands", "generated_commands", "velocity_command", "twist"),
    "q": ("q", "joint_pos_rel", "joint_pos", "dof_pos", "qj", "joint_angles"),
    "dq": ("dq", "joint_vel_rel", "joint_vel", "dof_vel", "dqj", "joint_velocities"),
    "last_action": ("last_action", "last_actions", "actions", "action", "prev_action", "prev_actions", "last_act"),
    "velocity": ("velocity", "base_lin_vel", "lin_vel", "linvel", "local_linvel"),
    "clock": ("clock", "gait_phase", "phase"),
    "clock_sin": ("clock_sin", "sin_phase"),
    "clock_cos": ("clock_cos", "cos_phase"),
    "acc": ("acc", "accelerometer", "base_lin_acc"),
    "quat": ("quat", "base_quat", "root_quat_w"),
}
OF_NAME = {name: kind for kind, names in KINDS.items() for name in names}
COMMANDS = ("vx", "vy", "yaw_rate")
PARTS = {"command_lin_vel": ("vx", "vy"), "command_ang_vel": ("yaw_rate",)}
"""Terms that show some of the commands only."""
RANGES = {"lin_vel_x": "vx", "lin_vel_y": "vy", "ang_vel_z": "yaw_rate", "ang_vel_yaw": "yaw_rate"}
"""What frameworks call the commands of a velocity task."""


def in_order(ranges: Mapping[str, Any]) -> dict[str, Any]:
    """The commands of a velocity task in their order, with the range of each that is stated."""
    stated = {RANGES[k]: v for k, v in ranges.items() if k in RANGES}
    return {name: stated.get(name) for name in COMMANDS}


def term(name: str, joints: int, scale: Any = 1.0, clip: Any = None, history: int = 1, **more: Any) -> dict[str, Any]:
    """A term by another framework's name. joints: that the policy drives."""
    kind = "command" if name in PARTS else OF_NAME.get(name, name)
    sizes = {"command": len(PARTS.get(name, COMMANDS)), "q": joints, "dq": joints, "last_action": joints}
    table: dict[str, Any] = {"name": name, "kind": kind, "scale": 1.0 if scale is None else scale, "history": max(1, history)}
    if name in PARTS:
        table["commands"] = list(PARTS[name])
    if kind == "velocity":
        table["provenance"] = "estimated"
    if kind in CLOCKS:
        more.setdefault("standing", "run")
        table["dim"] = CLOCKS[kind] * len(more.get("phases", (0.0,)))
    elif (size := sizes.get(kind, SIZES.get(kind))) is not None:
        table["dim"] = size
    if clip is not None:
        table["clip"] = clip
    return table | more


def stated_terms(given: Any, joints: int, default: Mapping[str, Mapping[str, Any]] = {}) -> list[dict[str, Any]]:
    """Terms as a user states them: names such as "base_ang_vel*0.25", or tables of a term's fields."""
    if not isinstance(given, list | tuple) or not given:
        raise BadInput('observation.terms: a list was expected, such as ["gyro*0.25", "gravity", "command", "q"]')
    out = []
    for each in given:
        if isinstance(each, str):
            name, _, factor = each.partition("*")
            scale = [float(x) for x in re.findall(r"-?[\d.]+(?:[eE][+-]?\d+)?", factor)] if factor else [1.0]
            if not scale or not all(map(math.isfinite, scale)):
                raise BadInput(f"observation.terms: {each!r} is not a name, or a name and a factor such as gyro*0.25")
            more = dict(default.get(name.strip(), {}))
            out.append(term(name.strip(), joints, scale if len(scale) > 1 else scale[0], **more))
        elif isinstance(each, Mapping) and isinstance(each.get("name"), str):
            fields = {str(k): v for k, v in each.items() if k != "name"}
            out.append(term(each["name"], joints, **fields))
        else:
            raise BadInput(f"observation.terms: {str(each)[:60]!r} is neither a name nor a table with a name")
    return out


def fill(terms: Sequence[dict[str, Any]], width: int | None) -> bool:
    """Give the one term whose size is not known what is left of the width; whether all sizes are known then."""
    open_ = [t for t in terms if "dim" not in t]
    if len(open_) == 1 and width is not None:
        left = width - sum(t["dim"] * t["history"] for t in terms if "dim" in t)
        if left > 0 and left % open_[0]["history"] == 0:
            open_[0]["dim"] = left // open_[0]["history"]
    return all("dim" in t for t in terms)
