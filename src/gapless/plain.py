"""Results as plain data: what JSON can hold of a dataclass, and back into the types that it had."""

import dataclasses
import json
import math
import os
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from gapless.errors import BadInput
from gapless.files import atomic, refusing, text

T = TypeVar("T")

NOT_SAVED = {"saved": False}
"""Metadata of a field that JSON leaves out: what has a file of its own, or is too large."""
MOST_BYTES = 64 << 20


def plain(value: Any) -> Any:
    """Nested data as JSON has it: dataclasses as tables, arrays as lists, None for what is not finite."""
    if dataclasses.is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value) if f.metadata.get("saved", True)}
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if hasattr(value, "tolist"):  # numpy's arrays and numbers
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def write_json(path: str | os.PathLike[str], data: Any) -> None:
    """Write data as JSON; the file appears whole or not at all."""
    with atomic(Path(path)) as part:
        part.write_text(json.dumps(plain(data), indent=1, allow_nan=False))


def read_json(path: str | os.PathLike[str], limit: int = MOST_BYTES) -> dict[str, Any]:
    """The table in a JSON file of at most `limit` bytes; the file may come from anywhere."""
    with refusing(f"{path}: not valid JSON", ValueError, RecursionError):
        data = json.loads(text(Path(path), limit))
    if not isinstance(data, dict):
        raise BadInput(f"{path}: expected a JSON table, not {type(data).__name__}")
    return data


def typed(kind: type[T], data: Mapping[str, Any], **given: Any) -> T:
    """The dataclass that `plain` made a table of. given: fields that the table does not have. Other keys are ignored."""
    hints = typing.get_type_hints(kind)
    values = dict(given)
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        if field.name not in given and field.metadata.get("saved", True):
            if field.name not in data:
                raise BadInput(f"it has no {field.name}")
            values[field.name] = _value(hints[field.name], data[field.name], field.name)
    return kind(**values)


def _value(hint: Any, value: Any, name: str) -> Any:
    """A value of a type. value: what JSON has of it, which may be anything."""
    origin, of = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return None if value is None else _value(of[0], value, name)
    if hint is float and value is None:
        return math.nan
    if hint is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if dataclasses.is_dataclass(hint) and isinstance(value, dict):
        return typed(hint, value)  # type: ignore[arg-type]
    if origin is dict and isinstance(value, dict):
        return {of[0](k): _value(of[1], v, name) for k, v in value.items()}
    if origin in (list, tuple) and isinstance(value, list):
        kinds = [of[0]] * len(value) if origin is list or of[-1] is ... else list(of)
        if len(kinds) == len(value):
            return origin(_value(h, v, name) for h, v in zip(kinds, value, strict=True))
    if getattr(origin, "__name__", "") == "ndarray" and isinstance(value, list):
        import numpy as np

        return np.array(value, dtype=typing.get_args(of[1])[0])  # None becomes NaN
    if isinstance(hint, type) and isinstance(value, hint) and hint is not float and isinstance(value, bool) == (hint is bool):
        return value
    raise BadInput(f"{name}: {str(value)[:40]!r} is not of type {getattr(hint, '__name__', hint)}")
