"""unitree_rl_lab and unitree_rl_mjlab: a deploy.yaml beside the network, gains in the SDK's order, the rest in the policy's."""

from typing import Any

from gapless.checks import listed, mapping, numbers
from gapless.errors import BadInput
from gapless.policy.readers.draft import INFERRED, Draft
from gapless.policy.readers.files import PolicyFiles, Yaml
from gapless.policy.readers.terms import OF_NAME, RANGES, term

KINDS = {"JointPositionAction": "position", "JointVelocityAction": "velocity", "JointEffortAction": "torque"}


def can_read(files: PolicyFiles) -> bool:
    return files.yaml_with("joint_ids_map", "observations") is not None


def read(files: PolicyFiles, joints: tuple[str, ...]) -> Draft:
    """What the yaml says; names of joints are those of the model, whose order is taken for the SDK's."""
    yaml = files.yaml_with("joint_ids_map", "observations")
    assert yaml is not None
    table, draft = yaml.table, Draft("unitree_rl_lab")
    order = _order(yaml)
    if joints:
        if len(joints) <= max(order):
            raise BadInput(
                f"{yaml.path}: drives motor {max(order)}, and the model has {len(joints)}: it is another robot's policy"
            )
        if len(joints) == len(order):
            why = f"{yaml.at('joint_ids_map')} counts motors; the order of the model's actuators is taken for theirs"
            draft.put("joints.names", [joints[i] for i in order], why, INFERRED)
        else:
            draft.notes.append(
                f"the model has {len(joints)} driven joints and {yaml.path.name} {len(order)}: state joints.names"
            )
    for key, field in (("stiffness", "joints.kp"), ("damping", "joints.kd")):
        if key in table:
            values = numbers(table[key], yaml.at(key))
            if len(values) != len(order):
                raise BadInput(f"{yaml.path}: {key} has {len(values)} values for {len(order)} joints")
            draft.put(field, [values[i] for i in order], f"{yaml.at(key)} (in the order of the motors)")
    draft.put("joints.default_pos", table.get("default_joint_pos"), yaml.at("default_joint_pos"))
    draft.put("timing.control_dt", table.get("step_dt"), yaml.at("step_dt"))
    _action(draft, yaml)
    _observation(draft, yaml, len(order))
    _commands(draft, yaml)
    draft.put("normalizer", "baked" if files.network.normalizer else None, "the network's first operation", INFERRED)
    return draft


def _order(yaml: Yaml) -> list[int]:
    order = listed(yaml.table["joint_ids_map"], yaml.at("joint_ids_map"))
    if not order or not all(isinstance(i, int) and 0 <= i < 1000 for i in order) or len(set(order)) != len(order):
        raise BadInput(f"{yaml.path}: joint_ids_map is not a list of different motor numbers")
    return [int(i) for i in order]


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
    if action.get("clip") is not None:
        pairs = [numbers(p, yaml.at(f"{where}.clip")) for p in listed(action["clip"], yaml.at(f"{where}.clip"))]
        if pairs and all(len(p) == 2 for p in pairs):
            # it bounds the targets there, and the network's output here
            draft.notes.append("actions.clip bounds the targets after scale and offset; it is not applied here")
    if isinstance(ids := action.get("joint_ids"), list) and draft.get("joints.names"):
        names = draft.get("joints.names")
        if all(isinstance(i, int) and 0 <= i < len(names) for i in ids):
            draft.put("action.joints", [names[i] for i in ids], yaml.at(f"{where}.joint_ids"))


def _observation(draft: Draft, yaml: Yaml, joints: int) -> None:
    observed = dict(mapping(yaml.table["observations"], yaml.at("observations")))
    frame_major = observed.pop("use_gym_history", False)
    terms, unknown = [], []
    for name, entry in observed.items():
        entry = mapping(entry or {}, yaml.at(f"observations.{name}"))
        history = entry.get("history_length") or 1
        if not isinstance(history, int):
            raise BadInput(f"{yaml.at(f'observations.{name}')}: history_length is not a whole number")
        more: dict[str, Any] = {}
        scale = entry.get("scale")
        if OF_NAME.get(name) == "clock":
            period = mapping(entry.get("params") or {}, name).get("period")
            if not isinstance(period, int | float) or not 0 < period < 100:
                raise BadInput(f"{yaml.at(f'observations.{name}')}: a gait phase needs its period [s]")
            more["frequency"] = 1.0 / period
        elif name not in OF_NAME and isinstance(scale, list):
            more["dim"] = len(scale)
        elif name not in OF_NAME:
            unknown.append(name)
        clip = entry.get("clip")
        terms.append(term(name, joints, scale, clip, history, **more))
    if unknown:
        draft.notes.append(f"the terms {', '.join(unknown)} are not known, nor how many columns they have")
        return
    draft.put("observation.terms", terms, yaml.at("observations"))
    why = "Isaac Lab shows each term with all its frames, oldest first, the first frame repeated"
    if frame_major:
        draft.put("observation.major", "frame", yaml.at("observations.use_gym_history"))
    draft.suppose("observation.major", "term", why)
    draft.suppose("observation.order", "oldest_first", why)
    draft.suppose("observation.warmup", "repeat", why)


def _commands(draft: Draft, yaml: Yaml) -> None:
    commands = yaml.table.get("commands")
    velocity = commands.get("base_velocity") if isinstance(commands, dict) else None
    ranges = velocity.get("ranges") if isinstance(velocity, dict) else None
    if isinstance(ranges, dict):
        found = {RANGES[k]: v for k, v in ranges.items() if k in RANGES}
        draft.put("commands", found, yaml.at("commands.base_velocity.ranges"))
