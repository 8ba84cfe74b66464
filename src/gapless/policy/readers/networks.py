"""Networks in others' containers, looked into before they are opened: ONNX with its data beside it, and TorchScript."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gapless import files as disk
from gapless.errors import BadInput
from gapless.policy.onnx import onnx_of, recurrent_of
from gapless.policy.parts import Recurrent

MOST_BYTES = 256 << 20
"""A network of a walking robot has 0.1 to 10 MB."""
MOST_ELEMENTS = 100_000_000
"""Numbers of one tensor that a network may make out of a shape."""
POINTER = b"version https://git-lfs.github.com/spec/"
SHAPES = ("ConstantOfShape", "Expand", "Tile", "Reshape", "Resize", "RandomNormal", "RandomUniform", "Pad", "EyeLike", "Range")
ACTIONS = ("actions", "action", "continuous_actions")
PARITY = 1e-4
"""Largest difference between TorchScript and its copy in ONNX, relative where an action is above 1."""


@dataclass(frozen=True)
class Network:
    """A network as ONNX of one observation and one action, and what is known of it without running it."""

    model: bytes
    width: int | None
    outputs: int | None
    metadata: dict[str, str]
    recurrent: Recurrent | None = None
    normalizer: bool = False
    """Whether its inputs are shifted and scaled before the first layer."""
    notes: tuple[str, ...] = ()


def read_network(path: Path, arrange: Callable[[Any], list[str]] = lambda proto: []) -> Network:
    """A network file. arrange: gives an ONNX graph one observation and one action, in place, and tells what it did."""
    size = disk.regular(path).stat().st_size
    with path.open("rb") as file:
        if file.read(len(POINTER)) == POINTER:
            raise BadInput(f"{path}: is a Git LFS pointer, not the network; run `git lfs pull` where it was cloned")
    if size > MOST_BYTES:
        raise BadInput(f"{path}: {size} bytes, but networks of at most {MOST_BYTES} are read")
    if path.suffix.lower() in (".pt", ".pth", ".jit"):
        return _torchscript(path)
    return _onnx(path, arrange)


def _onnx(path: Path, arrange: Callable[[Any], list[str]]) -> Network:
    import onnx

    with disk.refusing(f"{path}: not a whole ONNX file", Exception):  # protobuf has kinds of its own
        proto = onnx.load_model_from_string(path.read_bytes())
    nodes, tensors = _everything(proto)
    total = sum(_inlined(path, tensor) for _, tensor in tensors)
    if total > MOST_BYTES:
        raise BadInput(f"{path}: its tensors have {total} bytes, but at most {MOST_BYTES} are read")
    _refuse_shapes(path, nodes, tensors)
    notes = arrange(proto)
    ports = {p.name: _shape(p) for p in (*proto.graph.input, *proto.graph.output)}
    weights = {t.name for t in proto.graph.initializer}
    entering = [i.name for i in proto.graph.input if i.name not in weights]
    memory = _memory(path, entering, [o.name for o in proto.graph.output], ports)
    results = [o.name for o in proto.graph.output if not memory or o.name not in memory.outputs]
    action = next((r for name in ACTIONS for r in results if r == name), results[0] if len(results) == 1 else None)
    if action is None:
        raise BadInput(
            f"{path}: the network gives {', '.join(results) or 'nothing'}; call the action one of {', '.join(ACTIONS)}"
        )
    notes += _without_the_rest(proto, {action, *(memory.outputs if memory else ())})
    observed = [i.name for i in proto.graph.input if i.name not in weights and (not memory or i.name not in memory.inputs)]
    if len(observed) != 1:
        raise BadInput(
            f"{path}: the network takes {', '.join(observed) or 'nothing'}; a policy takes one observation, and memory in "
            "pairs of input and output. Export the policy alone, or join encoder and policy into one network"
        )
    first = next((n.op_type for n in proto.graph.node if observed[0] in n.input), "")
    metadata = {p.key: p.value for p in proto.metadata_props}
    width, outputs = (ports[name][-1] if ports[name] else None for name in (observed[0], action))
    with disk.refusing(f"{path}: not a whole ONNX file", Exception):
        model = proto.SerializeToString()
    return Network(model, width, outputs, metadata, memory, first in ("Sub", "Mul", "Div"), tuple(notes))


def _everything(proto: Any) -> tuple[list[Any], list[tuple[str, Any]]]:
    """All nodes of a network, and all tensors with the names that nodes take them by, those in branches and functions too."""
    graphs, nodes, done = [proto.graph], [n for f in proto.functions for n in f.node], 0
    tensors: list[tuple[str, Any]] = []
    while graphs or done < len(nodes):
        for graph in graphs:
            nodes += graph.node
            tensors += [(t.name, t) for t in graph.initializer]
            tensors += [(t.name, t) for s in graph.sparse_initializer for t in (s.values, s.indices)]
        new, done = nodes[done:], len(nodes)
        attributes = [a for n in new for a in n.attribute]
        tensors += [
            (n.output[0] if n.output else "", t)
            for n in new
            for a in n.attribute
            for t in ((a.t,) if a.HasField("t") else a.tensors)
        ]
        graphs = [g for a in attributes for g in ((a.g,) if a.HasField("g") else a.graphs)]
    return nodes, tensors


def _without_the_rest(proto: Any, wanted: set[str]) -> list[str]:
    """Leave out outputs that are not wanted, and inputs that only those need; what was left out, in sentences."""
    needed = set(wanted)
    for node in reversed(proto.graph.node):
        if needed & set(node.output):
            needed |= set(node.input)
    spare_outputs = [o.name for o in proto.graph.output if o.name not in wanted]
    spare_inputs = [i.name for i in proto.graph.input if i.name not in needed]
    if not spare_outputs:
        return []
    for ports, spare in ((proto.graph.output, spare_outputs), (proto.graph.input, spare_inputs)):
        kept = [p for p in ports if p.name not in spare]
        del ports[:]
        ports.extend(kept)
    nodes = [n for n in proto.graph.node if needed & set(n.output)]
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)
    without = f", and so is the input {', '.join(spare_inputs)}" if spare_inputs else ""
    return [f"the network also gives {', '.join(spare_outputs)}, which is left out{without}"]


def _inlined(path: Path, tensor: Any) -> int:
    """Bytes of a tensor, after data beside the file was put into it; what leaves the folder or claims too much is refused."""
    import onnx

    if any(d < 0 for d in tensor.dims) or (count := math.prod(tensor.dims)) > MOST_ELEMENTS:
        raise BadInput(f"{path}: tensor {tensor.name[:60]!r} claims the shape {list(tensor.dims)[:6]}")
    if tensor.data_location != onnx.TensorProto.EXTERNAL:
        return tensor.ByteSize()
    entry = {e.key: e.value for e in tensor.external_data}
    location = entry.get("location", "")
    beside = path.parent / location
    if not location or Path(location).name != location or beside.is_symlink() or not beside.is_file():
        raise BadInput(f"{path}: its weights are in {location[:80]!r}, which is no file beside it; nothing outside is read")
    with disk.refusing(f"{path}: the place of tensor {tensor.name[:60]!r} in {location} is damaged", ValueError):
        offset, length = int(entry.get("offset", 0)), int(entry.get("length", 0))
        kind = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
    needed = count * kind.itemsize
    if length not in (0, needed) or offset < 0 or offset + needed > beside.stat().st_size or needed > MOST_BYTES:
        raise BadInput(f"{path}: tensor {tensor.name[:60]!r} does not fit into {location}; is the file whole?")
    with beside.open("rb") as file:
        file.seek(offset)
        tensor.raw_data = file.read(needed)
    del tensor.external_data[:]
    tensor.data_location = onnx.TensorProto.DEFAULT
    return needed


def _refuse_shapes(path: Path, nodes: Sequence[Any], tensors: Sequence[tuple[str, Any]]) -> None:
    """Refuse a network that would make a huge tensor of a few numbers, as it is opened or run."""
    import onnx

    if not any(n.op_type in SHAPES for n in nodes):
        return
    uses = [(name, n.op_type, i) for n in nodes for i, name in enumerate(n.input)]
    # sizes of the parts of what is there already
    parts = {name for name, *use in uses if use == ["Split", 1]} - {name for name, *use in uses if use != ["Split", 1]}
    for name, tensor in tensors:
        if name not in parts and tensor.data_type == onnx.TensorProto.INT64 and 0 < math.prod(tensor.dims) <= 16:
            with disk.refusing(f"{path}: tensor {tensor.name[:60]!r} is damaged", Exception):
                sizes = [abs(int(v)) for v in onnx.numpy_helper.to_array(tensor).ravel() if v not in (0, 2**63 - 1, -(2**63))]
            if math.prod(sizes) > MOST_ELEMENTS:
                raise BadInput(f"{path}: makes a tensor of shape {sizes[:6]}, which no policy needs")


def _shape(port: Any) -> list[int | None]:
    return [d.dim_value or None for d in port.type.tensor_type.shape.dim]


def _memory(path: Path, inputs: list[str], outputs: list[str], ports: dict[str, list[int | None]]) -> Recurrent | None:
    """Pairs of input and output of three axes and equal shape, as exporters of recurrent networks leave them."""
    state = [n for n in inputs if len(ports[n]) == 3]
    returned = [n for n in outputs if len(ports[n]) == 3]
    if not state:
        return None
    if len(state) != len(returned) or any(
        ports[a][-1] is not None and ports[b][-1] not in (None, ports[a][-1]) for a, b in zip(state, returned, strict=True)
    ):
        raise BadInput(f"{path}: the memory {', '.join(state)} does not come back as {', '.join(returned) or 'any output'}")
    return Recurrent(tuple(state), tuple(returned))


def _torchscript(path: Path) -> Network:
    """TorchScript as ONNX; a memory that it hides inside becomes inputs and outputs."""
    with disk.check_zip(path) as archive:
        names = archive.namelist()
    if not any(name.endswith("constants.pkl") for name in names) or not any("/code/" in name for name in names):
        raise BadInput(f"{path}: holds weights without their network; export the policy as TorchScript or ONNX")
    try:
        import torch
    except ImportError:
        raise BadInput(f"{path}: TorchScript needs torch: pip install gapless[learn], or export the policy as ONNX") from None
    # torch has a kind of error for each cause and no common one
    with disk.refusing(f"{path}: cannot be opened as TorchScript", Exception):
        script = torch.jit.load(str(path), map_location="cpu").eval()
        buffers = {name: tuple(b.shape) for name, b in script.named_buffers() if name in ("hidden_state", "cell_state")}
        width = _width_of(script)
    if width is None:
        raise BadInput(f"{path}: the width of its observation cannot be told; export the policy as ONNX")
    memory = {n[0]: (s[0], s[2]) for n, s in buffers.items() if len(s) == 3}
    with disk.refusing(f"{path}: cannot be put into ONNX; export the policy as ONNX", Exception):
        model = onnx_of(_unrolled(script) if memory else script, width, memory)
        outputs = _prove(path, script, model, width, memory)
    return Network(model, width, outputs, {}, recurrent_of(memory), hasattr(script, "normalizer") and _scales(script))


def _scales(script: Any) -> bool:
    return any(True for _ in script.normalizer.buffers()) or any(True for _ in script.normalizer.parameters())


def _width_of(script: Any) -> int | None:
    """Columns of the first weight matrix that meets the observation."""
    for name, weight in script.named_parameters():
        if weight.ndim == 2 and ("weight_ih" in name or name.endswith("weight")):
            if any("memory" in n for n, _ in script.named_parameters()) and "memory" not in name:
                continue
            return int(weight.shape[1])
    return None


def _unrolled(script: Any) -> Any:
    """A script whose memory goes in and out, of one that keeps it in buffers (rsl_rl's and legged_gym's exporters)."""
    import torch

    class Unrolled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.memory = _cell(script.memory)
            self.actor = _layers(script.actor)
            self.before = _layers(script.normalizer) if hasattr(script, "normalizer") else torch.nn.Identity()

        def forward(self, obs: Any, *state: Any) -> Any:
            out, state = self.memory(self.before(obs).unsqueeze(0), state if len(state) > 1 else state[0])
            return self.actor(out.squeeze(0)), *(state if isinstance(state, tuple) else (state,))

    return Unrolled()


def _layers(script: Any) -> Any:
    """The same layers as plain modules: the exporter cannot look into scripts that were loaded."""
    import torch

    inner = dict(script.named_children())
    if inner:
        return torch.nn.Sequential(*map(_layers, inner.values()))
    weights = dict(script.named_parameters())
    if script.original_name == "Linear":
        layer = torch.nn.Linear(weights["weight"].shape[1], weights["weight"].shape[0], bias="bias" in weights)
        layer.load_state_dict({name: w.detach() for name, w in weights.items()})
        return layer
    if script.original_name in ("ELU", "ReLU", "Tanh", "SELU", "LeakyReLU", "Sigmoid", "SiLU", "GELU", "Identity"):
        return getattr(torch.nn, script.original_name)()
    raise BadInput(f"the layer {script.original_name!r} is not known")


def _cell(script: Any) -> Any:
    """An LSTM or GRU with a script's weights: the exporter knows modules, not their scripts."""
    import torch

    weights = dict(script.named_parameters())
    layers = sum(name.startswith("weight_ih_l") for name in weights)
    hidden = weights["weight_hh_l0"].shape[1]
    gates = weights["weight_hh_l0"].shape[0] // hidden
    cell = {4: torch.nn.LSTM, 3: torch.nn.GRU}[gates](weights["weight_ih_l0"].shape[1], hidden, layers)
    cell.load_state_dict({name: w.detach() for name, w in weights.items()})
    return cell.eval()


def _prove(path: Path, script: Any, model: bytes, width: int, memory: dict[str, tuple[int, int]]) -> int:
    """Refuse a copy that acts unlike its original over a few periods; the number of its actions."""
    import onnxruntime
    import torch

    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    state = {f"{n}_in": np.zeros((layers, 1, size), np.float32) for n, (layers, size) in memory.items()}
    rng, action = np.random.default_rng(0), np.zeros((1, 0))
    for buffer in ("hidden_state", "cell_state"):
        if hasattr(script, buffer):
            getattr(script, buffer).zero_()
    for _ in range(5):
        observation = rng.normal(size=(1, width)).astype(np.float32)
        with torch.no_grad():
            expected = script(torch.from_numpy(observation)).numpy()
        action, *after = session.run(None, {"obs": observation, **state})
        state = dict(zip(state, after, strict=True))
        if not np.allclose(action, expected, rtol=PARITY, atol=PARITY):
            raise BadInput(f"{path}: its copy in ONNX acts differently; export the policy as ONNX yourself")
    return int(action.shape[1])
