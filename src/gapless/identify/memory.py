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
from gapless.logs import Log
from gapless.plain import read_json
from gapless.twin import Twin, recipe_of

MOST_BYTES = 200_000_000


@dataclass
class Memory:
    """Results by name, written to a file after each; call it with a name and how to compute."""

    path: Path | None
    """None keeps nothing."""
    key: str
    """Of the inputs: results of other inputs do not count."""
    done: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def open(cls, path: Path | None, key: str, resume: bool) -> Memory:
        """A new one, or the one in a file."""
        if not resume:
            return cls(path, key)
        if path is None or not path.exists():
            raise BadInput(f"{path or 'no file of progress'}: there is nothing to resume; run without --resume")
        stored = read_json(path, MOST_BYTES)
        if not isinstance(stored.get("done"), dict):
            raise BadInput(f"{path}: not the progress of a fit; run without --resume")
        if stored.get("key") != key:
            raise BadInput(f"{path}: the progress of a fit to other logs or of another model; run without --resume")
        return cls(path, key, stored["done"])

    def __call__(self, name: str, compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What was computed under a name, now or before."""
        if name not in self.done:
            self.done[name] = compute()
            if self.path is not None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                with atomic(self.path) as part:
                    part.write_text(json.dumps({"key": self.key, "done": self.done}))
        return dict(self.done[name])


def key_of(twin: Twin, logs: Sequence[Log], words: Sequence[str]) -> str:
    """A hash of a twin, of all that logs hold, and of words."""
    digest = hashlib.sha256("\0".join([twin.spec.to_xml(), json.dumps(recipe_of(twin)), *words]).encode())
    for signal in (s for log in logs for s in log.signals.values()):
        digest.update(" ".join((signal.name, *signal.columns)).encode())
        digest.update(signal.time.tobytes() + signal.values.tobytes())
    return digest.hexdigest()
