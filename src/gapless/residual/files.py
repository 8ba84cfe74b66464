"""Files of learned torque: weights in a plain NPZ, and an ONNX graph a joint for other programs; nothing is pickled."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from gapless.errors import BadInput
from gapless.files import atomic
from gapless.twin import Net, learned

WEIGHTS, DELTA = "residual.npz", "delta.npz"
LARGEST = 50_000_000  # bytes
ARRAYS = ("centre", "spread", "low", "high", "members")


def save_nets(nets: Sequence[Net], folder: Path, name: str = WEIGHTS) -> None:
    """Write residual.npz (or another file) and JOINT.onnx of the first member of each joint."""
    arrays = {f"{net.joint}/{array}": np.array(getattr(net, array)) for net in nets for array in ARRAYS}
    arrays |= {f"{net.joint}/scalars": np.array([net.timestep, net.bound, net.waves]) for net in nets}
    drives = {f"{net.joint}/drive": np.array(net.drive) for net in nets}
    with atomic(folder / name) as part, open(part, "wb") as file:
        np.savez(file, joints=np.array([net.joint for net in nets]), **(arrays | drives))  # type: ignore[arg-type]
    for net in nets:
        save_onnx(net, onnx_file(folder, net.joint))


def onnx_file(folder: Path, joint: str) -> Path:
    """Of a joint, whose name may have letters that no file's may."""
    return folder / f"{''.join(c if c.isalnum() or c in '-_.' else '_' for c in joint)}.onnx"


def load_nets(path: str | os.PathLike[str]) -> tuple[Net, ...]:
    """What `save_nets` wrote to residual.npz or delta.npz; the file may come from anywhere."""
    path = Path(path)
    try:
        if path.stat().st_size > LARGEST:
            raise BadInput(f"{path}: larger than any file of learned torque")
        with np.load(path, allow_pickle=False) as file:
            out = []
            for joint in file["joints"].tolist():
                timestep, bound, waves = file[f"{joint}/scalars"].astype(float).tolist()
                centre, spread, low, high = (tuple(file[f"{joint}/{n}"].astype(float).ravel().tolist()) for n in ARRAYS[:4])
                members = tuple(tuple(m) for m in np.atleast_2d(file[f"{joint}/members"].astype(float)).tolist())
                drive = str(file[f"{joint}/drive"])
                out.append(Net(str(joint), drive, timestep, bound, waves, centre, spread, low, high, members))
            return tuple(out)
    except FileNotFoundError:
        raise BadInput(
            f"{path}: no such file; a fit writes it to DIR/residual/{WEIGHTS}, a delta action to DIR/{DELTA}"
        ) from None
    except (KeyError, ValueError, TypeError, OSError, EOFError, zipfile.BadZipFile, BadInput) as error:
        raise BadInput(f"{path}: not a file of learned torque ({error})") from None


def save_onnx(net: Net, path: Path) -> None:
    """The first member as an ONNX graph: inputs (n, 11) in the order of `learned.INPUTS`, in SI units, to torque (n,) [N m].

    Of a delta action that output is the shift of the command, in its unit.
    """
    member = np.array(net.members[0])
    hidden = (len(member) - learned.COUNT - 1) // (learned.COUNT + 2)
    inward, rest = member[: learned.COUNT * hidden].reshape(learned.COUNT, hidden), member[learned.COUNT * hidden :]
    constants: dict[str, ArrayLike] = {
        "centre": net.centre,
        "spread": net.spread,
        "low": net.low,
        "high": net.high,
        "inward": inward,
        "offsets": rest[:hidden],
        "outward": rest[hidden : 2 * hidden],
        "linear": rest[2 * hidden : -1],
        "constant": rest[-1:],
        "bound": [net.bound],
    }
    steps = [
        ("Sub", ["inputs", "centre"], "shifted"),
        ("Div", ["shifted", "spread"], "scaled"),
        ("Max", ["scaled", "low"], "above"),
        ("Min", ["above", "high"], "clipped"),
        ("MatMul", ["clipped", "inward"], "products"),
        ("Add", ["products", "offsets"], "sums"),
        ("Softsign", ["sums"], "units"),
        ("MatMul", ["units", "outward"], "bent"),
        ("MatMul", ["clipped", "linear"], "straight"),
        ("Add", ["bent", "straight"], "both"),
        ("Add", ["both", "constant"], "free"),
        ("Softsign", ["free"], "share"),
        ("Mul", ["share", "bound"], "torque"),
    ]
    write_onnx(
        path,
        steps,
        constants,
        learned.COUNT,
        {"joint": net.joint, "inputs": ", ".join(learned.INPUTS), "timestep": repr(net.timestep)},
    )


def write_onnx(
    path: Path,
    steps: Sequence[tuple[str, list[str], str]],
    constants: Mapping[str, ArrayLike],
    width: int,
    properties: Mapping[str, str],
) -> None:
    """A graph from `inputs` (n, width) to `torque` (n,) [N m]. steps: kind, what it takes and what it gives."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    nodes = [helper.make_node(kind, takes, [gives]) for kind, takes, gives in steps]
    tensors = [numpy_helper.from_array(np.asarray(v, dtype=np.float32), name) for name, v in constants.items()]
    seen = helper.make_tensor_value_info("inputs", TensorProto.FLOAT, ["n", width])
    given = helper.make_tensor_value_info("torque", TensorProto.FLOAT, ["n"])
    model = helper.make_model(
        helper.make_graph(nodes, "residual", [seen], [given], tensors), opset_imports=[helper.make_opsetid("", 17)]
    )
    model.ir_version = 9
    helper.set_model_props(model, dict(properties))
    onnx.checker.check_model(model)
    with atomic(path) as part:
        part.write_bytes(model.SerializeToString())
