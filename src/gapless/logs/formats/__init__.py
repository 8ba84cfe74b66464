"""The formats a log may come in: one file each, with `can_read`, `read` and, where it can be written, `write`."""

from gapless.logs.formats import bam, csv, lerobot, mcap, npz, pace, rosbag, sage

FORMATS = {module.__name__.rpartition(".")[2]: module for module in (sage, lerobot, rosbag, mcap, npz, pace, bam, csv)}
"""By name, asked in this order. A new format is a new file here and its name in this list."""
