"""LEAPP, Isaac Lab's export: a YAML that names the raw tensors which enter the network and the targets that leave it."""

from pathlib import Path
from typing import Any

from gapless.errors import BadInput
from gapless.policy.readers.draft import INFERRED, Draft
from gapless.policy.readers.files import PolicyFiles, Yaml
from gapless.policy.readers.leapp_graph import constants, initial_values, join_inputs, remember
from gapless.policy.readers.networks import read_network
from gapless.policy.readers.terms import COMMANDS

STATES = {
    "joint_pos": "q",
    "joint_vel": "dq",
    "root_ang_vel_b": "gyro",
    "root_link_ang_vel_b": "gyro",
    "projected_gravity_b": "gravity",
    "root_lin_vel_b": "velocity",
    "root_quat_w": "quat",
    "root_link_quat_w": "quat",
}
TARGETS = {"position": "position", "velocity": "velocity", "effort": "torque", "torques": "torque"}
GAINS = {"kp": "joints.kp", "kd": "joints.kd"}


def can_read(files: PolicyFiles) -> bool:
    return files.yaml_with("pipeline") is not None


def read(files: PolicyFiles, joints: tuple[str, ...]) -> Draft:
    """One network whose inputs are read in the order of the pipeline; scale, offset, history and last action are inside it."""
    yaml = files.yaml_with("pipeline")
    assert yaml is not None
    nodes = _nodes(yaml.table)
    if len(nodes) != 1:
        raise BadInput(
            f"{yaml.path}: the pipeline has {len(nodes)} networks ({', '.join(nodes) or 'none'}); one is read: "
            "export observation, policy and action as one graph"
        )
    (node, entry), draft = next(iter(nodes.items())), Draft("Isaac Lab (LEAPP)")
    where, fed_back = f"{yaml.path.name}: {node}", _fed_back(yaml)
    terms = [_term(t, yaml, draft, where) for t in entry["inputs"] if str(t["name"]) not in fed_back.values()]
    target, gains = _action(draft, entry["outputs"], yaml, where, set(fed_back))
    first = _find(yaml.table, "initial_values")
    initial = initial_values(_inside(yaml, str(first))) if fed_back and first else {}

    def arrange(proto: Any) -> list[str]:
        for output, values in constants(proto, list(gains)).items():
            draft.put(gains[output], values.tolist(), f"{where}, output {output}")
        notes = remember(proto, fed_back, initial, target)
        return notes + join_inputs(proto, [(t["name"], t["dim"]) for t in terms])

    network = read_network(_model(entry, yaml), arrange)
    object.__setattr__(files, "network", network)  # with its inputs joined
    draft.put("observation.terms", terms, where)
    frequency = _find(yaml.table, "frequency")
    if isinstance(frequency, int | float) and frequency > 0:
        draft.put("timing.control_dt", 1.0 / frequency, f"{yaml.path.name}: frequency")
    if any(t["kind"] == "command" for t in terms):
        draft.put("commands", dict.fromkeys(COMMANDS), where, INFERRED)
    return draft


def _term(tensor: dict[str, Any], yaml: Yaml, draft: Draft, where: str) -> dict[str, Any]:
    """What one input of the network shows."""
    connection = str(tensor.get("isaaclab_connection", "")).split(":")
    names = _names(tensor)
    kind = "command" if connection[0] == "command" else STATES.get(connection[-1]) if connection[0] == "state" else None
    if kind is None:
        raise BadInput(f"{yaml.path}: nothing says what the input {tensor.get('name')!r} is; only connected tensors are read")
    term: dict[str, Any] = {"name": str(tensor["name"]), "kind": kind, "dim": _size(tensor, yaml)}
    if kind in ("q", "dq") and names:
        draft.suppose("joints.names", names, where, "file")
        term["joints"] = names
    if kind == "q":
        term["absolute"] = True  # the default pose is taken off inside the network
    if kind == "quat":
        draft.put("conventions.quaternion", "xyzw" if names[-1:] == ["qw"] else "wxyz", where, "file" if names else INFERRED)
    if kind == "velocity":
        term["provenance"] = "estimated"
    return term


def _fed_back(yaml: Yaml) -> dict[str, str]:
    """Outputs that the next period takes as inputs, by name; one goes to one."""
    table = _find(yaml.table, "feedback_flow") or {}
    out: dict[str, str] = {}
    for source, targets in table.items() if isinstance(table, dict) else ():
        if not isinstance(targets, list) or len(targets) != 1:
            raise BadInput(f"{yaml.path}: {str(source)[:60]!r} is fed back into {targets}; one input is expected")
        out[str(source).rpartition("/")[2]] = str(targets[0]).rpartition("/")[2]
    return out


def _action(
    draft: Draft, outputs: list[dict[str, Any]], yaml: Yaml, where: str, fed_back: set[str]
) -> tuple[str, dict[str, str]]:
    """The output that is the target of joints, and those that are gains with the field of each."""
    written = [o for o in outputs if str(o["name"]) not in fed_back]
    gains = {str(o["name"]): GAINS[o["kind"]] for o in written if o.get("kind") in GAINS}
    targets = [o for o in written if str(o["name"]) not in gains]
    if len(targets) != 1:
        named = ", ".join(str(o["name"]) for o in targets) or "none"
        raise BadInput(f"{yaml.path}: {len(targets)} outputs are for the robot ({named}); a policy with one is read")
    meant = f"{targets[0].get('kind', '')} {str(targets[0].get('isaaclab_connection', '')).split(':')[-1]}"
    kind = next((k for word, k in TARGETS.items() if word in meant), None)
    if kind is None:
        raise BadInput(f"{yaml.path}: the output goes to {meant.strip()!r}, which is no target of joints")
    draft.put("action.kind", kind, where)
    draft.put("action.joints", _names(targets[0]) or None, where)
    draft.suppose("joints.names", _names(targets[0]) or None, where, "file")
    draft.put("action.scale", 1.0, "the network gives targets as they are", INFERRED)
    draft.put("action.offset", 0.0, "the network gives targets as they are", INFERRED)
    return str(targets[0]["name"]), gains


def _nodes(table: Any, name: str = "", depth: int = 0) -> dict[str, dict[str, Any]]:
    """Every table with lists of inputs and outputs, wherever the version of the format keeps it."""
    if not isinstance(table, dict) or depth > 6:
        return {}
    if all(
        isinstance(table.get(k), list) and all(isinstance(t, dict) and "name" in t for t in table[k])
        for k in ("inputs", "outputs")
    ):
        return {name: table}
    return {k: v for key, inner in table.items() for k, v in _nodes(inner, str(key), depth + 1).items()}


def _find(table: Any, key: str, depth: int = 0) -> Any:
    if not isinstance(table, dict) or depth > 6:
        return None
    return (
        table[key] if key in table else next((v for t in table.values() if (v := _find(t, key, depth + 1)) is not None), None)
    )


def _names(tensor: dict[str, Any]) -> list[str]:
    names = tensor.get("element_names")
    names = names[0] if isinstance(names, list) and len(names) == 1 and isinstance(names[0], list) else names
    return [str(n) for n in names] if isinstance(names, list) and all(isinstance(n, str) for n in names) else []


def _size(tensor: dict[str, Any], yaml: Yaml) -> int:
    shape = tensor.get("shape")
    if not isinstance(shape, list) or not shape or not isinstance(shape[-1], int) or not 0 < shape[-1] < 100_000:
        raise BadInput(f"{yaml.path}: the input {str(tensor.get('name'))[:40]!r} has no shape")
    return shape[-1]


def _model(entry: dict[str, Any], yaml: Yaml) -> Path:
    """The network of a node, which the format's versions name in the node itself or among its parameters."""
    inner = entry.get("parameters")
    values = [*entry.values(), *(inner.values() if isinstance(inner, dict) else ())]
    return _inside(yaml, next((v for v in values if isinstance(v, str) and v.endswith((".onnx", ".pt"))), ""))


def _inside(yaml: Yaml, name: str) -> Path:
    """A file beside the YAML."""
    folder = yaml.path.parent.resolve()
    path = (folder / name).resolve()
    if not name or not path.is_relative_to(folder) or not path.is_file():
        raise BadInput(f"{yaml.path}: its file {name[:80]!r} is not in the folder")
    return path
