"""Logs: what a robot was commanded and what it measured, read from any of the field's formats.

log = read("recording.mcap")                        # the format is recognised
log = read("motions/chirp_sweep", mapping="so101")  # a mapping states what a file does not
log["q"].values, log["q"].time                      # (samples, joints) in rad, (samples,) in s
write(log, "recording.npz")
"""

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gapless.errors import BadInput
from gapless.files import refusing, within
from gapless.logs.draft import Draft, draft
from gapless.logs.formats import FORMATS, no_log
from gapless.logs.formats.mcap import OTHERS as NOT_SIGNALS, ROWS
from gapless.logs.inspection import Inspection, inspect
from gapless.logs.inspection.clock import SHORTEST, clock_findings
from gapless.logs.inspection.finding import ERROR, INFO, WARNING, Finding
from gapless.logs.inspection.joints import joint_findings
from gapless.logs.log import HELD, UNITS, Log, Provenance, Signal
from gapless.logs.mapping import Mapping, load as load_mapping
from gapless.logs.mcap_records import RECORDER, Contents as McapContents, batches as mcap_batches
from gapless.logs.sensor import STILL, chatter, quantum, travel

STRETCH = re.compile(r"(.+)@(\d+\.?\d*)?:(\d+\.?\d*)?")
"""A path, and from when to when."""


def read(path: str | Path, mapping: str | Path | Mapping | None = None) -> Log:
    """Read a log of any known format.

    Args:
        path: a file or folder, or a stretch of one, in seconds since its first sample: `swing.csv@0.2:2`, `swing.csv@0.2:`.
        mapping: the name of a built-in one, a TOML file, or what `load_mapping` gave.
    """
    path = Path(path)
    stretch = STRETCH.fullmatch(str(path))
    if stretch is not None and not path.exists():
        return _stretch(read(stretch[1], mapping), str(path), stretch[2], stretch[3])
    stated = mapping if isinstance(mapping, Mapping) else load_mapping(mapping) if mapping is not None else Mapping()
    source = _format(path)
    if source is None and any(Path(f"{path}{f.suffix}").is_file() for f in stated.files):
        source = _format(Path(f"{path}{stated.files[0].suffix}"))
    if source is None:
        raise no_log(path)
    with within(path), refusing(f"{path}: cannot be read", OSError, MemoryError):
        return source.read(path, stated)


def _stretch(log: Log, name: str, first: str | None, last: str | None) -> Log:
    """The samples of a log between two times since its start [s]; its name says so."""
    start = log.start
    cut = log.slice(start + float(first or 0), start + float(last) if last else math.inf)
    if any(len(signal.time) == 0 for signal in cut.signals.values()):
        raise BadInput(f"{name}: there are no samples in this stretch; the log lasts {log.duration:.3g} s")
    notes = (*log.provenance.notes, f"only {first or 0} to {last or format(log.duration, '.3g')} s of the file are used")
    return replace(cut, provenance=replace(log.provenance, source=name, notes=notes))


def read_all(paths: Sequence[Path], mapping: Mapping | None = None) -> tuple[list[Log], list[str]]:
    """Those of several logs that can be read, and a sentence for each that cannot; one that does not exist was mistyped."""
    logs, refused = [], []
    for path in paths:
        try:
            logs.append(read(path, mapping))
        except BadInput as error:
            if len(paths) == 1 or not path.exists():
                raise
            refused.append(str(error))
    if not logs:
        raise BadInput(f"none of the {len(paths)} logs can be read; {refused[0]}")
    return logs, refused


def write(log: Log, path: str | Path) -> None:
    """Write a log as .npz, .mcap or .csv (with its mapping beside it). The file appears whole or not at all."""
    path = Path(path)
    target: Any = FORMATS.get(path.suffix[1:])
    if not hasattr(target, "write"):
        raise BadInput(f"{path}: a log is written as .npz, .mcap or .csv, not as {path.suffix or 'a file without a suffix'}")
    target.write(log, path)


def find(path: str | Path) -> list[Path]:
    """The path itself if it is a log; else every log in that folder, in order of name."""
    path = Path(path)
    if not path.is_dir() or _format(path):
        return [path]
    return [log for child in sorted(path.iterdir()) if child.is_dir() or _format(child) for log in find(child)]


def _format(path: Path) -> Any:
    """The format that reads a path; None where none does."""
    return next((f for f in FORMATS.values() if f.can_read(path)), None)
