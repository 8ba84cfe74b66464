"""The formats a log may come in: one file each, with `can_read`, `read` and, where it can be written, `write`."""

from pathlib import Path

from gapless.errors import BadInput
from gapless.logs.formats import bam, csv, lerobot, mcap, npz, pace, rosbag, sage

FORMATS = {module.__name__.rpartition(".")[2]: module for module in (sage, lerobot, rosbag, mcap, npz, pace, bam, csv)}
"""By name, asked in this order. A new format is a new file here and its name in this list."""


def no_log(path: Path) -> BadInput:
    """What to do with a path that no format reads."""
    if not path.exists():
        return BadInput(f"{path}: there is no such log")
    bag = f"a bag of ROS 1 becomes one of ROS 2 by `rosbags-convert --src {path} --dst {path.stem}`"
    way = bag if path.suffix == ".bag" else "export it as CSV, whose mapping `gapless init` drafts"
    return BadInput(f"{path}: not a log of a known format ({', '.join(FORMATS)}): {way}")
