"""The logs that a command is given."""

from __future__ import annotations

from pathlib import Path


def log_paths(given: tuple[Path, ...]) -> list[Path]:
    """Every log that was named, or is in a folder that was; at least one."""
    from gapless.errors import BadInput
    from gapless.logs import find

    if not given:
        raise BadInput("name at least one log")
    paths = [path for each in given for path in find(each)]
    if not paths:
        raise BadInput(f"there is no log in {', '.join(map(str, given))}")
    return paths
