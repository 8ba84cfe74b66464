"""unitree_rl_lab and unitree_rl_mjlab: a deploy.yaml beside the network, gains in the SDK's order, the rest in the policy's."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from gapless.checks import listed, mapping, numbers
from gapless.errors import BadInput
from gapless.policy.readers.draft import INFERRED, Draft
from gapless.policy.readers.files import PolicyFiles, Yaml
from gapless.policy.readers.motors import joints_of_motors
from gapless.policy.readers.terms import COMMANDS, OF_NAME, in_order, term

KINDS = {"JointPositionAction": "position", "JointVelocityAction": "velocity", "JointEffortAction": "torque"}
TERM = {"params", "scale", "clip", "history_length"}
"""What the table of a term has."""


def can_read(files: PolicyFiles) -> bool:
    return files.yaml_with("joint_ids_map", "observations") is not None


def read(files: PolicyFiles, joints: tuple[str, ...]) -> Draft:
    """What the yaml says; it counts motors, whose joints are those of the robot's SDK, or of the model's actuators."""
    yaml = files.yaml_with("joint_ids_map", "observations")
    assert yaml is not None
    table, draft = yaml.table, Draft("unitree_rl_lab")
    order = _names(draft, yaml, joints)
    for key, field in (("stiffness", "joints.kp"), ("damping", "joints.kd")):
        if key in table:
            draft.put(field, *_of_motors(draft, yaml, key, order))
    draft.put("joints.default_pos", table.get("default_joint_pos"), yaml.at("default_joint_pos"))
    draft.put("timing.control_dt", table.get("step_dt"), yaml.at("step_dt"))
    _action(draft, yaml)
    _observation(draft, yaml, len(order))
    _commands(draft, yaml)
    draft.put("normalizer", "baked" if files.network.normalizer else None, "the network's first operation", INFERRED)
    return draft


def _names(draft: Draft, yaml: Yaml, joints: tuple[str, ...]) -> list[int]:
    """The motor of each joint of the policy, once its joints are named; a map that holds names names them itself."""
    entries, where = listed(yaml.table["joint_ids_map"], yaml.at("joint_ids_map")), yaml.at("joint_ids_map")
    if entries and all(isinstance(n, str) for n in entries):
        draft.put("joints.names", entries, where)
        return list(range(len(entries)))
    if not entries or not all(isinstance(i, int) and 0 <= i < 1000 for i in entries) or len(set(entries)) != len(entries):
        raise BadInput(f"{yaml.path}: joint_ids_map is not a list of different motor numbers")
    order = [int(i) for i in entries]
    found = joints_of_motors(order, joints)
    if joints and found is None:
        raise BadInput(f"{yaml.path}: drives motor {max(order)}, and the model has {len(joints)}: it is another robot's policy")
    if found is not None and (len(joints) == len(order) or "SDK" in found[1]):
        draft.put("joints.names", found[0], f"{where} {found[1]}", INFERRED)
    elif joints:
        draft.notes.append(f"the model has {len(joints)} driven joints and {yaml.path.name} {len(order)}: state joints.names")
    return order


def _of_motors(draft: Draft, yaml: Yaml, key: str, order: list[int]) -> tuple[list[float], str]:
    """Figures by motor in the order of the policy's joints, and where they are from."""
    values = numbers(yaml.table[key], yaml.at(key))
    if len(values) > max(order):
        return [values[i] for i in order], f"{yaml.at(key)} (in the order of the motors)"
    if len(values) != len(order):
        raise BadInput(
            f"{yaml.path}: {key} has {len(values)} values for {len(order)} joints with motors up to number {max(order)}"
        )
    draft.notes.append(f"{key} leaves out motors that joint_ids_map does not name; its values are taken in their order")
    present = sorted(order)
    return [values[present.index(i)] for i in order], f"{yaml.at(key)} (in the order of the motors that are there)"


def _action(draft: Draft, yaml: Yaml) -> None:
    actions = mapping(yaml.table.get("actions") or {}, yaml.at("actions"))
    if len(actions) != 1 or next(iter(actions)) not in KINDS:
        raise BadInput(
            f"{yaml.path}: actions are {', '.join(map(str, actions)) or 'not stated'}; one of {', '.join(KINDS)} is read"
        )
    kind = next(iter(actions))
    action, where = mapping(actions[kind], yaml.at(f"actions.{kind}")), f"actions.{kind}"
    draft.put("action.kind", KINDS[kind], yaml.at(where))
    draft.put("action.scale", action.get("scale"), yaml.at(f"{where}.scale"))
    draft.put("action.offset", action.get("offset"), yaml.at(f"{where}.offset"))
    if isinstance(ids := action.get("joint_ids"), list) and draft.get("joints.names"):
        names = draft.get("joints.names")
        if all(isinstance(i, int) and 0 <= i < len(names) for i in ids):
            draft.put("action.joints", [names[i] for i in ids], yaml.at(f"{where}.joint_ids"))
    if action.get("clip") is not None:
        _clip(draft, yaml, listed(action["clip"], yaml.at(f"{where}.clip")), f"{where}.clip")


def _clip(draft: Draft, yaml: Yaml, bounds: Any, where: str) -> None:
    """Bounds of the targets, one pair a joint, as bounds of the network's output, which the contract has."""
    pairs = np.array([numbers(p, yaml.at(where)) for p in bounds if isinstance(p, list) and len(p) == 2])
    added = draft.get("action.offset") or (None if draft.get("action.joints") else draft.get("joints.default_pos"))
    scale, offset = (np.atleast_1d(np.nan if v is None else v) for v in (draft.get("action.scale"), added))
    if len(pairs) != len(bounds) or any(len(v) not in (1, len(pairs)) for v in (scale, offset)):
        raise BadInput(f"{yaml.at(where)}: clip was expected to be a pair of numbers for each of the action's joints")
    if not scale.all() or not np.isfinite([*scale, *offset]).all():
        draft.notes.append("actions.clip bounds the targets after scale and offset, which are not known, and is left out")
        return
    ends = (pairs.T - offset) / scale
    clip = [ends.min(axis=0).tolist(), ends.max(axis=0).tolist()]
    draft.put("action.clip", clip, f"{yaml.at(where)} (of the targets, put before scale and offset)")


def _group(yaml: Yaml) -> tuple[dict[str, Any], str]:
    """The terms of the one observation, which stand by themselves or under the name of their group."""
    table = dict(mapping(yaml.table["observations"], yaml.at("observations")))
    inner = {k: v for k, v in table.items() if isinstance(v, dict) and not TERM & set(v) and any(map(_is_table, v.values()))}
    if not inner:
        return table, "observations"
    if len(table) > 1:
        raise BadInput(
            f"{yaml.path}: the groups {', '.join(map(str, table))} are for several inputs; a policy with one is read"
        )
    name = next(iter(inner))
    return dict(inner[name]), f"observations.{name}"


def _is_table(value: Any) -> bool:
    return isinstance(value, dict)


def _observation(draft: Draft, yaml: Yaml, joints: int) -> None:
    observed, place = _group(yaml)
    frame_major, scale_first = (observed.pop(key, False) is True for key in ("use_gym_history", "scale_first"))
    terms, unknown = [], []
    for name, entry in observed.items():
        entry, where = mapping(entry or {}, yaml.at(f"{place}.{name}")), yaml.at(f"{place}.{name}")
        history = entry.get("history_length") or 1
        if not isinstance(history, int):
            raise BadInput(f"{where}: history_length is not a whole number")
        more, scale = _shown(draft, mapping(entry.get("params") or {}, where)), entry.get("scale")
        kind = OF_NAME.get(name)
        if kind == "clock":
            period = mapping(entry.get("params") or {}, name).get("period")
            if isinstance(period, int | float) and 0 < period < 100:
                more |= {"frequency": 1.0 / period}
            else:
                draft.notes.append(f"{where}: the period of {name} is not stated")
                unknown.append(name)
        elif isinstance(scale, list) and (kind is None or (kind in ("q", "dq", "last_action") and "joints" not in more)):
            more["dim"] = len(scale)
            if kind == "last_action" and draft.get("action.joints") is None and len(scale) != joints:
                draft.notes.append(f"{where}: {len(scale)} columns for {joints} joints")
        elif kind is None:
            unknown.append(name)
        clip = entry.get("clip")
        if clip is not None and scale_first and scale is not None:
            each = np.atleast_1d(scale)
            clip = [[b / s if s else b for s in each.tolist()] for b in numbers(clip, where)]
        terms.append(term(name, joints, scale, clip, history) | more)
    if unknown:
        draft.notes.append(f"the terms {', '.join(unknown)} are not known, or how many columns they have")
        return
    draft.put("observation.terms", terms, yaml.at(place))
    why = "Isaac Lab shows each term with all its frames, oldest first, the first frame repeated"
    if frame_major:
        draft.put("observation.major", "frame", yaml.at(f"{place}.use_gym_history"))
    draft.suppose("observation.major", "term", why)
    draft.suppose("observation.order", "oldest_first", why)
    draft.suppose("observation.warmup", "repeat", why)


def _shown(draft: Draft, params: Mapping[str, Any]) -> dict[str, Any]:
    """The joints that a term shows, where it shows some of them only."""
    asset, names = params.get("asset_cfg"), draft.get("joints.names")
    ids = asset.get("joint_ids") if isinstance(asset, dict) else None
    if not isinstance(ids, list) or not names or not all(isinstance(i, int) and 0 <= i < len(names) for i in ids):
        return {}
    return {"joints": [names[i] for i in ids], "dim": len(ids)}


def _commands(draft: Draft, yaml: Yaml) -> None:
    commands = yaml.table.get("commands")
    velocity = commands.get("base_velocity") if isinstance(commands, dict) else None
    ranges = velocity.get("ranges") if isinstance(velocity, dict) else None
    if isinstance(ranges, dict):
        draft.put("commands", in_order(ranges), yaml.at("commands.base_velocity.ranges"))
    elif any(t["kind"] == "command" for t in draft.get("observation.terms") or ()):
        draft.put("commands", dict.fromkeys(COMMANDS), f"{yaml.at('commands')} states no ranges", INFERRED)
