"""What goes wrong by itself or by a user: physics that break, and bad input, with help for names that nearly exist."""

import difflib
from collections.abc import Collection, Iterable


class BadInput(ValueError):
    """Something the user gave cannot be used; the message is one sentence that says what to do. The CLI exits with 2."""


class PhysicsError(RuntimeError):
    """The physics of a model broke; the message says what, when, in which log, and what to change. The CLI exits with 1."""


def must_exist(kind: str, names: Iterable[str], valid: Collection[str]) -> None:
    """Raise for the first of some names that is not valid."""
    for name in names:
        if name not in valid:
            raise unknown(kind, name, valid)


def unknown(kind: str, name: str, valid: Iterable[str]) -> BadInput:
    """The error for a name that does not exist: the nearest names first, else a short list of the valid ones."""
    names = sorted(set(valid))
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    if close:
        hint = "did you mean " + " or ".join(repr(c) for c in close) + "?"
    elif names:
        shown = ", ".join(names[:12]) + (f", ... ({len(names)} in all)" if len(names) > 12 else "")
        hint = f"available: {shown}"
    else:
        hint = "there are none"
    return BadInput(f"unknown {kind} {name!r}: {hint}")
