"""Files of learned torque and drives: weights in a plain NPZ, an ONNX graph a joint for other programs; nothing is pickled."""

from __future__ import annotations

import dataclasses
import os
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from gapless.errors import BadInput
from gapless.files import atomic
from gapless.twin import DRIVE_LAGS, DriveNet, Net, learned, mechanism_from

T = TypeVar("T")

WEIGHTS, DELTA, DRIVES = "residual.npz", "delta.npz", "actuator.npz"
LARGEST = 50_000_000  # bytes
FOREIGN = (KeyError, ValueError, TypeError, OSError, EOFError, NotImplementedError, RuntimeError, zipfile.BadZipFile, BadInput)
"""What numpy and zipfile raise of a file that is none of ours."""
ARRAYS = ("centre", "spread", "low", "high", "members")


def save_nets(nets: Sequence[Net], folder: Path, name: str = WEIGHTS) -> None:
    """Write residual.npz (or another file) and JOINT.onnx of the first member of each joint."""
    arrays = {f"{net.joint}/{array}": np.array(getattr(net, array)) for net in nets for array in ARRAYS}
    arrays |= {f"{net.joint}/scalars": np.array([net.timestep, net.bound, net.waves]) for net in nets}
    drives = {f"{net.joint}/drive": np.array(net.drive) for net in nets}
    _write(folder / name, [net.joint for net in nets], arrays | drives)
    for net in nets:
        save_onnx(net, onnx_file(folder, net.joint))


def onnx_file(folder: Path, joint: str) -> Path:
    """Of a joint, whose name may have letters that no file's may."""
    return folder / f"{''.join(c if c.isalnum() or c in '-_.' else '_' for c in joint)}.onnx"


def save_drives(nets: Sequence[DriveNet], folder: Path) -> None:
    """Write actuator.npz, and JOINT.onnx of each drive."""
    names = [f.name for f in dataclasses.fields(DriveNet)]
    arrays = {f"{net.joint}/{name}": np.array(getattr(net, name)) for net in nets for name in names}
    _write(folder / DRIVES, [net.joint for net in nets], arrays)
    for net in nets:
        _save_drive_onnx(net, onnx_file(folder, net.joint))


def _write(path: Path, joints: Sequence[str], arrays: Mapping[str, Any]) -> None:
    with atomic(path) as part, open(part, "wb") as file:
        np.savez(file, joints=np.array(joints), **arrays)


def load_nets(path: str | os.PathLike[str]) -> tuple[Net, ...]:
    """What `save_nets` wrote to residual.npz or delta.npz; the file may come from anywhere."""

    def made(joint: str, read: Callable[[str], Any]) -> Net:
        timestep, bound, waves = read("scalars").astype(float).tolist()
        centre, spread, low, high = (tuple(read(n).astype(float).ravel().tolist()) for n in ARRAYS[:4])
        members = tuple(tuple(m) for m in np.atleast_2d(read("members").astype(float)).tolist())
        return Net(joint, str(read("drive")), timestep, bound, waves, centre, spread, low, high, members)

    return _read(Path(path), made, f"a fit writes it to DIR/residual/{WEIGHTS}, a delta action to DIR/{DELTA}")


def load_drives(path: str | os.PathLike[str]) -> tuple[DriveNet, ...]:
    """What `save_drives` wrote to actuator.npz; the file may come from anywhere."""
    names = [f.name for f in dataclasses.fields(DriveNet)]

    def made(joint: str, read: Callable[[str], Any]) -> DriveNet:
        net: DriveNet = mechanism_from(f"drive network of {joint}", DriveNet, {name: read(name).tolist() for name in names})
        return net

    return _read(Path(path), made, f"`gapless actuator` writes it to DIR/{DRIVES}")


def _read(path: Path, made: Callable[[str, Callable[[str], Any]], T], whence: str) -> tuple[T, ...]:
    """A network for each joint of a file. made: from the joint's name and what gives its arrays by name."""
    try:
        if path.stat().st_size > LARGEST:
            raise BadInput(f"{path}: larger than any file of learned torque")
        with np.load(path, allow_pickle=False) as file:
            joints = [str(joint) for joint in file["joints"].tolist()]
            if not joints or len(set(joints)) < len(joints):
                raise BadInput("it names no joint, or one twice")
            return tuple(made(joint, lambda name, of=joint: file[f"{of}/{name}"]) for joint in joints)  # type: ignore[misc]
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file; {whence}") from None
    except FOREIGN as error:
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


def _save_drive_onnx(net: DriveNet, path: Path) -> None:
    """An ONNX graph from the history (n, 6) in SI units to torque (n,) [N m]."""
    weights = dict(zip(("in", "in_bias", "middle", "middle_bias", "out", "out_bias"), net.layers, strict=True))
    constants: dict[str, ArrayLike] = {
        **weights,
        "centre": net.centre,
        "spread": net.spread,
        "low": net.low,
        "high": net.high,
        "out": net.layers[4][:, 0],
        "mean": net.scale[:1],
        "size": net.scale[1:],
    }
    steps = [
        ("Sub", ["inputs", "centre"], "shifted"),
        ("Div", ["shifted", "spread"], "scaled"),
        ("Max", ["scaled", "low"], "above"),
        ("Min", ["above", "high"], "clipped"),
        ("MatMul", ["clipped", "in"], "a"),
        ("Add", ["a", "in_bias"], "b"),
        ("Softsign", ["b"], "c"),
        ("MatMul", ["c", "middle"], "d"),
        ("Add", ["d", "middle_bias"], "e"),
        ("Softsign", ["e"], "f"),
        ("MatMul", ["f", "out"], "g"),
        ("Add", ["g", "out_bias"], "h"),
        ("Mul", ["h", "size"], "i"),
        ("Add", ["i", "mean"], "torque"),
    ]
    told = "torque told" if net.drive == "tau" else "position told less position"
    named = ", ".join(f"{what} {1000 * lag:g} ms ago" for lag in DRIVE_LAGS for what in (told, "velocity"))
    write_onnx(path, steps, constants, len(net.centre), {"joint": net.joint, "inputs": named})


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
