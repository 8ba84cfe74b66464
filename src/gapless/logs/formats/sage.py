"""SAGE folders: control.csv and state_motor.csv (plain or gzip) with vectors as quoted lists, and joint_list.txt."""

from pathlib import Path

from gapless import files as disk
from gapless.errors import BadInput
from gapless.logs import table
from gapless.logs.assemble import log_of
from gapless.logs.log import Log
from gapless.logs.mapping import Column, File, Mapping

COLUMNS = {
    "control": {"positions": "q_cmd", "velocities": "dq_cmd", "torques": "tau_cmd"},
    "state_motor": {"positions": "q", "velocities": "dq", "torques": "tau", "currents": "current"},
}
TIME_UNIT = "us"
"""SAGE's timestamps are microseconds unless the mapping says otherwise."""


def can_read(path: Path) -> bool:
    return path.is_dir() and _find(path, "state_motor") is not None


def read(path: Path, mapping: Mapping) -> Log:
    joint_list = path / "joint_list.txt"
    joints = tuple(line.strip() for line in disk.text(joint_list, 1 << 16).splitlines() if line.strip())
    if len(set(joints)) != len(joints) or not joints:
        raise BadInput(f"{joint_list}: every joint must be named once, one a line")
    parts = []
    for name, known in COLUMNS.items():
        if file := _find(path, name):
            header = table.header(file)
            columns = tuple(Column(c, s, joints) for c, s in known.items() if c in header)
            spec = File("timestamp", columns, time_unit=mapping.time_unit or TIME_UNIT)
            parts.append((file, spec, table.read(file, spec.sources)))
    return log_of(path, "sage", parts, mapping, more=[joint_list])


def _find(folder: Path, name: str) -> Path | None:
    return next((p for p in (folder / f"{name}.csv", folder / f"{name}.csv.gz") if p.is_file()), None)
