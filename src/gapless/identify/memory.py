"""Memory: what a fit has computed so far, in a file, so that a crash or Ctrl-C loses nothing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gapless.errors import BadInput
from gapless.files import atomic

MOST_BYTES = 200_000_000


@dataclass
class Memory:
    """Results by name, written to a file after each; call it with a name and how to compute."""

    path: Path
    key: str
    """Of the inputs: results of other inputs do not count."""
    done: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def open(cls, path: Path, key: str, resume: bool) -> Memory:
        """A new one, or the one in a file."""
        if not resume:
            return cls(path, key)
        if not path.exists():
            raise BadInput(f"{path}: there is nothing to resume; run without --resume")
        if path.stat().st_size > MOST_BYTES:
            raise BadInput(f"{path}: {path.stat().st_size} bytes are too many for the progress of a fit")
        try:
            stored = json.loads(path.read_text())
            done = dict(stored["done"])
            same = stored["key"] == key
        except (ValueError, KeyError, TypeError) as error:
            raise BadInput(f"{path}: not the progress of a fit ({error}); run without --resume") from None
        if not same:
            raise BadInput(f"{path}: the progress of a fit of other logs or another model; run without --resume")
        return cls(path, key, done)

    def __call__(self, name: str, compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What was computed under a name, now or before."""
        if name not in self.done:
            self.done[name] = compute()
            with atomic(self.path) as part:
                part.write_text(json.dumps({"key": self.key, "done": self.done}))
        return dict(self.done[name])


def key_of(paths: Sequence[Path], words: Sequence[str]) -> str:
    """A hash of files (folders: of the names and sizes in them) and words."""
    digest = hashlib.sha256()
    for path in paths:
        files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
        for file in files:
            digest.update(f"{file.name} {file.stat().st_size} {file.stat().st_mtime_ns}".encode())
    digest.update("\0".join(words).encode())
    return digest.hexdigest()
