"""How a policy becomes an ONNX file: `onnx_of` writes the network, `with_contract` puts the contract into its metadata."""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gapless.files import refusing
from gapless.policy.contract import Contract
from gapless.policy.parts import Recurrent

if TYPE_CHECKING:
    import torch

KEY = "gapless_contract"
"""The metadata entry that holds the whole contract as JSON."""
OPSET = 17
"""Of ONNX: read by every onnxruntime since 1.12."""
MJLAB_NAMES = {
    "gyro": "base_ang_vel",
    "velocity": "base_lin_vel",
    "gravity": "projected_gravity",
    "q": "joint_pos",
    "dq": "joint_vel",
    "last_action": "actions",
    "command": "command",
}
"""What mjlab calls the kinds of terms; runtimes made for its files know these names."""


def recurrent_of(memory: Mapping[str, tuple[int, int]]) -> Recurrent | None:
    """How `onnx_of` names a network's memory."""
    return Recurrent(tuple(f"{m}_in" for m in memory), tuple(f"{m}_out" for m in memory)) if memory else None


def onnx_of(network: torch.nn.Module, width: int, memory: Mapping[str, tuple[int, int]] | None = None) -> bytes:
    """The network as ONNX for any number of robots: `obs` (n, width) in, `actions` (n, joints) out.

    Args:
        network: called as `network(obs)`, or as `network(obs, *memory)`, which returns the action and the new memory.
        width: numbers of an observation.
        memory: name of each part of a recurrent network's memory, and its layers and width: {"h": (1, 64), "c": (1, 64)} of
            an LSTM. Each is an input `h_in` and an output `h_out` of shape (layers, n, width).
    """
    import torch

    parts = dict(memory or {})
    recurrent = recurrent_of(parts)
    inputs = ["obs", *(recurrent.inputs if recurrent else ())]
    outputs = ["actions", *(recurrent.outputs if recurrent else ())]
    # two robots, so that nothing of shape one is taken for granted
    examples = (torch.zeros(2, width), *(torch.zeros(layers, 2, size) for layers, size in parts.values()))
    axes = {name: {0 if name in ("obs", "actions") else 1: "n"} for name in (*inputs, *outputs)}
    file: Any = io.BytesIO()
    # the older exporter: the same numbers in 0.3 s instead of 5 s; it warns of its age and of the batch, which is tested
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network,
            examples,
            file,
            input_names=inputs,
            output_names=outputs,
            dynamic_axes=axes,
            opset_version=OPSET,
            dynamo=False,
        )
    return file.getvalue()


def with_contract(model: bytes, contract: Contract) -> bytes:
    """The ONNX file with the contract in its metadata, whole under one key and in part under mjlab's flat keys."""
    import onnx

    with refusing("the network is not a whole ONNX file", Exception):  # protobuf has kinds of its own
        proto = onnx.load_model_from_string(model)
    entries = {p.key: p.value for p in proto.metadata_props} | {KEY: contract.json()} | mjlab_keys(contract)
    onnx.helper.set_model_props(proto, entries)
    return proto.SerializeToString()


def mjlab_keys(contract: Contract) -> dict[str, str]:
    """What mjlab and whole_body_tracking write, at full precision; scales, clips and history have no key there."""
    joints, action = contract.joints, contract.action
    scale = action.scale if isinstance(action.scale, tuple) or action.scale is None else (action.scale,) * len(action.joints)
    torque = joints.gain_unit == "Nm"  # there is no other unit there
    lists = {
        "joint_names": joints.names,
        "joint_stiffness": joints.kp if torque else None,
        "joint_damping": joints.kd if torque else None,
        "default_joint_pos": joints.default_pos,
        "action_scale": scale,
        "observation_names": [MJLAB_NAMES.get(t.kind, t.name) for t in contract.observation.terms],
        "command_names": list(contract.commands),
    }
    proto = {key: ",".join(str(v) for v in values) for key, values in lists.items() if values is not None}
    return {"run_path": contract.source.run, **proto}
