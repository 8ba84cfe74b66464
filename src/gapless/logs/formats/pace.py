"""PACE .pt files: a dict of tensors or numpy arrays (time, dof_pos, des_dof_pos, gains), read without unpickling anything."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from gapless.errors import BadInput
from gapless.logs.assemble import log_of
from gapless.logs.log import Log
from gapless.logs.mapping import Column, File, Mapping
from gapless.logs.torch_records import arrays

COLUMNS = {
    "dof_pos": "q",
    "des_dof_pos": "q_cmd",
    "dof_vel": "dq",
    "des_dof_vel": "dq_cmd",
    "dof_tau": "tau",
    "des_dof_tau": "tau_cmd",
    "dof_torque": "tau",
    "des_dof_torque": "tau_cmd",
}
"""Signals by the names of arrays; a mapping that names the file's time states others."""
GAINS = ("kp", "kd")
"""Arrays of gains: one for each joint, or for each joint and sample."""


def can_read(path: Path) -> bool:
    return path.suffix.lower() in (".pt", ".pth")


def read(path: Path, mapping: Mapping) -> Log:
    found = arrays(path)
    file = next((f for f in mapping.files if f.time in found), None)
    if file is None:
        if "time" not in found or "dof_pos" not in found:
            raise BadInput(f"{path}: a PACE log holds time and dof_pos, this one {', '.join(found)[:400] or 'nothing'}")
        columns = {signal: Column(key, signal) for key, signal in COLUMNS.items() if key in found}
        columns |= {name: Column(name, name) for name in GAINS if name in found and len(found[name]) == len(found["time"])}
        file = File("time", tuple(columns.values()), time_unit=mapping.time_unit or "s")
    notes = [] if mapping.joint_names else ["joints: the file has no names; numbered in its order"]
    log = log_of(path, "pace", [(path, file, found)], mapping, notes)
    fixed = [name for name in GAINS if name in found and len(found[name]) != len(found[file.time])]
    constant = {name: _by_joint(path, name, found[name], log.joints) for name in fixed}
    return replace(log, meta=constant | dict(log.meta))


def _by_joint(path: Path, name: str, values: np.ndarray, joints: tuple[str, ...]) -> float | dict[str, float]:
    """A constant gain: one number for all joints, or one for each in the order of the file."""
    if values.size not in (1, len(joints)) or not np.isfinite(values).all():
        raise BadInput(f"{path}: {name!r} must be a finite number, or one for each of {len(joints)} joints")
    one, *more = (float(v) for v in values.ravel())
    return dict(zip(joints, (one, *more), strict=True)) if more else one
