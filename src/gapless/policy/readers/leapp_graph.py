"""A network as LEAPP leaves it, made one of one observation, one action and a memory, in place."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gapless import files as disk
from gapless.arrays import Array
from gapless.errors import BadInput

MOST_STATE = 1_000_000
"""Numbers that a network may remember."""
MOST_FILE = 64 << 20


def join_inputs(proto: Any, inputs: Sequence[tuple[str, int]]) -> list[str]:
    """Join several inputs into one observation, in the order in which a format names them, with their widths."""
    import onnx

    names = [i.name for i in proto.graph.input]
    if missing := [name for name, _ in inputs if name not in names]:
        raise BadInput(f"the network has no input {missing[0]!r}, only {', '.join(names)}")
    if len(inputs) < 2:
        return []
    kept = [i for i in proto.graph.input if i.name not in dict(inputs)]
    del proto.graph.input[:]
    width = sum(size for _, size in inputs)
    proto.graph.input.append(onnx.helper.make_tensor_value_info("gapless_obs", onnx.TensorProto.FLOAT, [1, width]))
    proto.graph.input.extend(kept)
    sizes = onnx.helper.make_tensor("gapless_sizes", onnx.TensorProto.INT64, [len(inputs)], [size for _, size in inputs])
    proto.graph.initializer.append(sizes)
    proto.graph.node.insert(
        0, onnx.helper.make_node("Split", ["gapless_obs", "gapless_sizes"], [name for name, _ in inputs], axis=1)
    )
    return [f"the network's inputs {', '.join(name for name, _ in inputs)} are joined into one observation"]


def remember(proto: Any, fed_back: Mapping[str, str], initial: Mapping[str, Array], action: str) -> list[str]:
    """Make what is fed back (output to input) a memory of shape (1, 1, size) that starts at zero; leave out other outputs.

    Args:
        proto: the network.
        fed_back: output to the input that it becomes in the next period.
        initial: what inputs hold at first, by name; it is added inside, and taken off what comes back.
        action: the output that is kept besides.
    """
    import onnx

    floats, graph = onnx.TensorProto.FLOAT, proto.graph
    inputs, outputs = ({p.name: p for p in ports} for ports in (graph.input, graph.output))
    if action not in outputs:
        raise BadInput(f"the network has no output {action!r}, only {', '.join(outputs)}")
    del graph.output[:]
    graph.output.append(outputs[action])
    for out, into in fed_back.items():
        if into not in inputs or out not in outputs:
            raise BadInput(f"the network does not feed {out!r} back into {into!r}: it has no such output or input")
        shape = [d.dim_value for d in inputs[into].type.tensor_type.shape.dim]
        size = math.prod(shape)
        if not 0 < size <= MOST_STATE:
            raise BadInput(f"the state {into!r} has shape {shape}, of which a memory cannot be made")
        start = np.asarray(initial.get(into, np.zeros(shape)), np.float32)
        if list(start.shape) != shape:
            raise BadInput(f"the state {into!r} has shape {shape}, and its initial value {list(start.shape)}")
        whole = onnx.numpy_helper.from_array(np.array(shape), f"gapless_shape_{into}")
        flat = onnx.numpy_helper.from_array(np.array([1, 1, size]), f"gapless_flat_{into}")
        first = onnx.numpy_helper.from_array(start, f"gapless_start_{into}")
        graph.initializer.extend([whole, flat, first])
        held, back = f"{into}_memory", f"{out}_memory"
        before = [
            onnx.helper.make_node("Reshape", [held, whole.name], [f"{held}_shaped"]),
            onnx.helper.make_node("Add", [f"{held}_shaped", first.name], [into]),
        ]
        for k, node in enumerate(before):
            graph.node.insert(k, node)
        graph.node.append(onnx.helper.make_node("Sub", [out, first.name], [f"{back}_shaped"]))
        graph.node.append(onnx.helper.make_node("Reshape", [f"{back}_shaped", flat.name], [back]))
        graph.input.remove(inputs[into])
        for ports, name in ((graph.input, held), (graph.output, back)):
            ports.append(onnx.helper.make_tensor_value_info(name, floats, [1, 1, size]))
    return [f"{', '.join(fed_back.values())} is fed back and became a memory"] if fed_back else []


def constants(proto: Any, names: Sequence[str]) -> dict[str, Array]:
    """Outputs that do not depend on what the network sees, by name; one that does is refused. Shape of each: (columns,)."""
    import onnxruntime

    if not names:
        return {}
    rng, seen = np.random.default_rng(0), []
    with disk.refusing("the network cannot be run", Exception):  # onnxruntime has no common kind of error
        session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
        for _ in range(2):
            feed = {i.name: rng.normal(size=i.shape).astype(np.float32) for i in session.get_inputs()}
            seen.append([np.asarray(value, float).ravel() for value in session.run(list(names), feed)])
    for name, a, b in zip(names, *seen, strict=True):
        if not np.array_equal(a, b):
            raise BadInput(f"the output {name!r} changes with what the network sees; gains that change are not supported")
    return dict(zip(names, seen[0], strict=True))


def initial_values(path: Path) -> dict[str, Array]:
    """Arrays of a safetensors file of 32-bit floats, by name after the last slash."""
    data = disk.regular(path)
    if data.stat().st_size > MOST_FILE:
        raise BadInput(f"{path}: {data.stat().st_size} bytes, but initial values of at most {MOST_FILE} are read")
    content, out = data.read_bytes(), {}
    with disk.refusing(f"{path}: not a whole safetensors file", Exception):
        length = int.from_bytes(content[:8], "little")
        table = json.loads(content[8 : 8 + length])
        for name, entry in table.items():
            if name != "__metadata__":
                low, high = entry["data_offsets"]
                if entry["dtype"] != "F32":
                    raise ValueError("other numbers than F32")
                flat = np.frombuffer(content[8 + length + low : 8 + length + high], "<f4")
                out[str(name).rpartition("/")[2]] = flat.reshape(entry["shape"]).astype(float)
    return out
