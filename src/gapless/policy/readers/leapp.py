"""LEAPP, Isaac Lab's export: a YAML that names the raw tensors which enter the network and the targets that leave it."""

from pathlib import Path
from typing import Any

from gapless.errors import BadInput
from gapless.policy.readers.draft import INFERRED, Draft
from gapless.policy.readers.files import PolicyFiles, Yaml
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
TARGETS = {"position": "position", "velocity": "velocity", "effort": "torque"}


def can_read(files: PolicyFiles) -> bool:
    return files.yaml_with("pipeline") is not None


def read(files: PolicyFiles, joints: tuple[str, ...]) -> Draft:
    """One network whose inputs are read in the order of the pipeline; scale and offset are inside it."""
    yaml = files.yaml_with("pipeline")
    assert yaml is not None
    nodes = _nodes(yaml.table)
    if len(nodes) != 1:
        raise BadInput(
            f"{yaml.path}: the pipeline has {len(nodes)} networks ({', '.join(nodes) or 'none'}); one is read: "
            "export observation, policy and action as one graph"
        )
    (node, entry), draft = next(iter(nodes.items())), Draft("Isaac Lab (LEAPP)")
    terms, inputs = [], []
    where = f"{yaml.path.name}: {node}"
    for tensor in entry["inputs"]:
        connection = str(tensor.get("isaaclab_connection", "")).split(":")
        size = _size(tensor, yaml)
        names = _names(tensor)
        kind = "command" if connection[0] == "command" else STATES.get(connection[-1]) if connection[0] == "state" else None
        if kind is None:
            raise BadInput(
                f"{yaml.path}: nothing says what the input {tensor.get('name')!r} is; only connected tensors are read"
            )
        term: dict[str, Any] = {"name": str(tensor["name"]), "kind": kind, "dim": size}
        if kind in ("q", "dq") and names:
            draft.suppose("joints.names", names, where, "file")
            term["joints"] = names
        if kind == "velocity":
            term["provenance"] = "estimated"
        terms.append(term)
        inputs.append((str(tensor["name"]), size))
    _action(draft, entry["outputs"], yaml, where)
    network = read_network(_model(entry, yaml), inputs)
    object.__setattr__(files, "network", network)  # with its inputs joined
    draft.put("observation.terms", terms, where)
    count = len(draft.get("joints.names") or ())
    draft.put("joints.default_pos", [0.0] * count if count else None, "the network takes positions as they are", INFERRED)
    frequency = _find(yaml.table, "frequency")
    if isinstance(frequency, int | float) and frequency > 0:
        draft.put("timing.control_dt", 1.0 / frequency, f"{yaml.path.name}: frequency")
    if any(t["kind"] == "command" for t in terms):
        draft.put("commands", dict.fromkeys(COMMANDS), where, INFERRED)
    return draft


def _action(draft: Draft, outputs: list[dict[str, Any]], yaml: Yaml, where: str) -> None:
    written = [o for o in outputs if str(o.get("isaaclab_connection", "")).startswith("write:")]
    if len(written) != 1:
        raise BadInput(f"{yaml.path}: {len(written)} outputs are written to the robot; a policy with one is read")
    method = str(written[0]["isaaclab_connection"]).split(":")[-1]
    kind = next((k for word, k in TARGETS.items() if word in method), None)
    if kind is None:
        raise BadInput(f"{yaml.path}: the output goes to {method!r}, which is no target of joints")
    draft.put("action.kind", kind, where)
    draft.put("action.joints", _names(written[0]) or None, where)
    draft.suppose("joints.names", _names(written[0]) or None, where, "file")
    draft.put("action.scale", 1.0, "the network gives targets as they are", INFERRED)
    draft.put("action.offset", 0.0, "the network gives targets as they are", INFERRED)


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
    names = [v for v in entry.values() if isinstance(v, str) and v.endswith((".onnx", ".pt"))]
    folder = yaml.path.parent.resolve()
    path = (folder / names[0]).resolve() if names else None
    if path is None or not path.is_relative_to(folder) or not path.is_file():
        raise BadInput(f"{yaml.path}: its network {names[0] if names else ''!r} is not in the folder")
    return path
