"""PACE .pt files: a dict of tensors (time, dof_pos, des_dof_pos), read as weights only, never unpickled freely."""

import pickletools
from pathlib import Path
from zipfile import ZipFile

import numpy as np

from gapless import files as disk
from gapless.errors import BadInput
from gapless.logs.assemble import log_of
from gapless.logs.log import Log
from gapless.logs.mapping import Column, File, Mapping

COLUMNS = {
    "dof_pos": "q",
    "des_dof_pos": "q_cmd",
    "dof_vel": "dq",
    "des_dof_vel": "dq_cmd",
    "dof_tau": "tau",
    "des_dof_tau": "tau_cmd",
}
ALLOWED = {"collections OrderedDict", "torch._utils _rebuild_tensor_v2"}
ALLOWED |= {f"torch {kind}Storage" for kind in ("Float", "Double", "Half", "Int", "Long", "Short", "Byte", "Char", "Bool")}
"""What the description of a dict of tensors needs. torch allows more, some of which can be made to fill the memory."""


def can_read(path: Path) -> bool:
    return path.suffix.lower() in (".pt", ".pth")


def read(path: Path, mapping: Mapping) -> Log:
    tensors = _tensors(path)
    if "time" not in tensors or "dof_pos" not in tensors:
        raise BadInput(f"{path}: a PACE log holds time and dof_pos, this one {', '.join(tensors) or 'nothing'}")
    columns = tuple(Column(key, signal) for key, signal in COLUMNS.items() if key in tensors)
    file = File("time", columns, time_unit=mapping.time_unit or "s")
    notes = [] if mapping.joint_names else ["joints: the file has no names; numbered in its order"]
    return log_of(path, "pace", [(path, file, tensors)], mapping, notes)


def _tensors(path: Path) -> dict[str, np.ndarray]:
    with disk.check_zip(path) as archive:
        if any(m.compress_type != 0 for m in archive.infolist()):
            raise BadInput(f"{path}: this file is compressed, so it was not saved by torch")
        _check_names(path, archive)
    with disk.refusing(f"{path}: reading PACE files needs torch: pip install 'gapless[learn]'", ImportError):
        import torch
    with disk.refusing(f"{path}: torch cannot load it", Exception):  # it raises what its parts raise
        content = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(content, dict):
        raise BadInput(f"{path}: holds a {type(content).__name__}, not a dict of tensors")
    arrays = {}
    for key, tensor in content.items():
        if not isinstance(tensor, torch.Tensor) or not isinstance(key, str):
            continue
        if tensor.numel() > tensor.untyped_storage().nbytes() or tensor.ndim > 2 or tensor.is_complex():
            raise BadInput(f"{path}: tensor {key!r} of shape {tuple(tensor.shape)} does not fit its storage")
        arrays[key] = tensor.detach().to(torch.float64).contiguous().numpy()
    return arrays


def _check_names(path: Path, archive: ZipFile) -> None:
    """Refuse a description that names anything but tensors and their storage; nothing is executed here."""
    names = [m for m in archive.infolist() if m.filename.endswith("data.pkl")]
    if len(names) != 1 or names[0].file_size > 1 << 20:
        raise BadInput(f"{path}: not a file that torch saved (no data.pkl of usual size)")
    strings: list[str] = []
    with disk.refusing(f"{path}: data.pkl is damaged", Exception):  # pickletools raises whatever the damage leads to
        for code, argument, _ in pickletools.genops(archive.read(names[0])):
            if isinstance(argument, str):
                strings.append(argument)
            name = argument if code.name == "GLOBAL" else " ".join(strings[-2:]) if code.name == "STACK_GLOBAL" else None
            if name is not None and name not in ALLOWED:
                raise BadInput(f"{path}: data.pkl refers to {name!r}, which no log needs")
