"""Finding: one thing that is wrong (or worth knowing) about a log, in a sentence, with its place and its figure."""

from collections.abc import Mapping
from dataclasses import dataclass

INFO, WARNING, ERROR = "info", "warning", "error"
Ranges = Mapping[str, tuple[float, float]]
"""The joints of a model and their ranges, infinite where they have none [rad or m]."""


@dataclass(frozen=True)
class Finding:
    """`error`: the log says something false; `warning`: a user must know; `info`: true and harmless."""

    code: str
    severity: str
    sentence: str
    signal: str = ""
    joint: str = ""
    start: float | None = None
    """First moment it concerns, in s."""
    end: float | None = None
    value: float | None = None
    """The figure behind it, in `unit`."""
    unit: str = ""
