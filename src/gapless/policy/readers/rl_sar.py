"""rl_sar: base.yaml of the robot and config.yaml of the policy, each under the robot's name."""

from typing import Any

from gapless.checks import listed, number, numbers
from gapless.errors import BadInput
from gapless.policy.readers.draft import INFERRED, OF_JOINTS, Draft
from gapless.policy.readers.files import PolicyFiles, Yaml
from gapless.policy.readers.terms import COMMANDS, OF_NAME, term

SCALES = {"velocity": "lin_vel_scale", "gyro": "ang_vel_scale", "q": "dof_pos_scale", "dq": "dof_vel_scale"}
SCALES |= {"command": "commands_scale"}
CLOCKS = {"g1_phase": (1.25,), "phase": (0.25, 0.125, 0.0625)}
"""Frequencies of its gait clocks, a sine and a cosine each, which stand in its program [Hz]."""
FIELDS = {
    "rl_kp": "joints.kp",
    "rl_kd": "joints.kd",
    "default_dof_pos": "joints.default_pos",
    "torque_limits": "joints.effort_limit",
    "action_scale": "action.scale",
    "dt": "timing.sim_dt",
    "decimation": "timing.decimation",
}


def _policy(files: PolicyFiles) -> tuple[Yaml, str] | None:
    """The configuration of the policy, and the name it stands under."""
    for yaml in files.yamls:
        for name, inner in yaml.table.items():
            if isinstance(inner, dict) and {"observations", "num_observations"} <= set(inner):
                return yaml, name
    return None


def can_read(files: PolicyFiles) -> bool:
    return _policy(files) is not None


def read(files: PolicyFiles, joints: tuple[str, ...]) -> Draft:
    """The policy's configuration over the robot's; joints are named, in the policy's order."""
    found = _policy(files)
    assert found is not None
    policy, name = found
    draft = Draft("rl_sar")
    entries: dict[str, tuple[Any, str]] = {}
    others = [(y, k) for y in files.yamls for k in y.table if k != name and k == name.split("/")[0]]
    for yaml, key in (*others, found):
        inner = yaml.table[key]
        if isinstance(inner, dict):
            entries |= {k: (v, yaml.at(f"{key}.{k}")) for k, v in inner.items()}

    def get(key: str, default: Any = None) -> Any:
        return entries.get(key, (default, ""))[0]

    names = _names(draft, entries, policy)
    for key, field in FIELDS.items():
        if key in entries:
            if field in OF_JOINTS and names and isinstance(entries[key][0], list) and len(entries[key][0]) != names:
                draft.notes.append(f"{key} at {entries[key][1]} has another number of joints than the policy, {names}")
                continue
            draft.put(field, *entries[key])
    if get("wheel_indices"):
        raise BadInput(f"{policy.path}: wheels are commanded in speed and legs in position; a policy of one kind is read")
    draft.suppose("action.offset", draft.get("joints.default_pos"), "targets are offsets from the default pose")
    dt, steps = get("dt"), get("decimation")
    if isinstance(dt, float) and isinstance(steps, int):
        draft.put("timing.control_dt", dt * steps, f"{entries['decimation'][1]} times dt", INFERRED)
    low, high = get("clip_actions_lower"), get("clip_actions_upper")
    if low is not None and high is not None:
        draft.put("action.clip", [low, high], entries["clip_actions_lower"][1])
    _observation(draft, get, entries, policy)
    return draft


def _names(draft: Draft, entries: dict[str, tuple[Any, str]], policy: Yaml) -> int:
    """Joints in the policy's order: the robot's, by `joint_mapping` where there is one; how many."""
    if "joint_names" not in entries:
        return 0
    (names, where), (mapped, by) = entries["joint_names"], entries.get("joint_mapping", (None, ""))
    names = listed(names, where)
    if mapped is not None:
        if not isinstance(mapped, list) or not all(isinstance(i, int) and 0 <= i < len(names) for i in mapped):
            raise BadInput(f"{policy.path}: joint_mapping is not a list of the {len(names)} joints' numbers")
        if mapped != list(range(len(names))):
            where = f"{where}, in the order of joint_mapping at {by}"
        names = [names[i] for i in mapped]
    draft.put("joints.names", names, where)
    return len(names)


def _observation(draft: Draft, get: Any, entries: dict[str, tuple[Any, str]], policy: Yaml) -> None:
    count = len(listed(get("action_scale") or get("default_dof_pos") or [], "action_scale")) or get("num_of_dofs")
    if not isinstance(count, int) or not 0 < count < 1000:
        raise BadInput(f"{policy.path}: does not say how many joints the policy drives")
    frames = listed(get("observations_history") or [], "observations_history")
    history, newest_first = _history(policy, frames)
    bound = get("clip_obs")
    terms: list[dict[str, Any]] = []
    more: dict[str, Any]
    for observed in listed(get("observations"), "observations"):
        if (clocks := CLOCKS.get(str(observed))) is not None:
            # no scale there
            more = {"kind": "clock", "dim": 2, "history": history, "standing": "run"}
            names = [f"{observed}_{i}" for i in range(len(clocks))] if len(clocks) > 1 else [observed]
            terms += [{"name": n, "frequency": f, **more} for n, f in zip(names, clocks, strict=True)]
            continue
        kind = OF_NAME.get(str(observed))
        if kind is None:
            draft.notes.append(f"the term {str(observed)[:40]} is not known, nor how many columns it has")
            return
        scale = get(SCALES.get(kind, ""), 1.0)
        more = {}
        if bound is not None:  # after the scale there, before it here
            limit = number(bound, "clip_obs", low=0.0)
            each = [limit / abs(s) if s else limit for s in (numbers(scale, "scale") if isinstance(scale, list) else [scale])]
            more["clip"] = [[-x for x in each], each] if len(each) > 1 else [-each[0], each[0]]
        terms.append(term(str(observed), count, scale, history=history, **more))
    draft.put("observation.terms", terms, entries["observations"][1])
    draft.put("commands", dict.fromkeys(COMMANDS), "rl_sar states no ranges", INFERRED)
    draft.suppose("observation.last_action", "clipped", "rl_sar shows the action after its clip")
    if history > 1:
        draft.put("observation.order", "newest_first" if newest_first else "oldest_first", entries["observations_history"][1])
        priority = get("observations_history_priority", "time")
        where = entries.get("observations_history_priority", ("", "rl_sar goes by time unless told"))[1]
        draft.put("observation.major", "term" if priority == "term" else "frame", where)
        draft.suppose("observation.warmup", "repeat", "rl_sar fills its history with the first frame")


def _history(policy: Yaml, frames: Any) -> tuple[int, bool]:
    """How many frames, and whether the newest is first; 0 is the newest there."""
    if not frames:
        return 1, False
    ages = [int(f) if isinstance(f, int) else -1 for f in frames]
    if ages == list(range(len(ages))):
        return len(ages), True
    if ages == list(range(len(ages)))[::-1]:
        return len(ages), False
    raise BadInput(f"{policy.path}: observations_history {ages[:8]} leaves out frames; only an unbroken history is read")
