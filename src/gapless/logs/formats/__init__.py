"""The formats a log may come in: one file each, with `can_read`, `read` and, where it can be written, `write`."""

from types import ModuleType

from gapless.logs.formats import bam, csv, lerobot, mcap, npz, pace, sage

FORMATS: tuple[ModuleType, ...] = (sage, lerobot, mcap, npz, pace, bam, csv)
"""Asked in this order. A new format is a new file here and its name in this tuple."""
