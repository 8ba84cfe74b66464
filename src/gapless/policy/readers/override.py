"""What no file says, stated by the user: a TOML or YAML file in the words of the contract, or single NAME=VALUE pairs."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml as pyyaml

from gapless import files as disk
from gapless.errors import BadInput
from gapless.policy.readers.draft import FILE, USER, Draft, matching
from gapless.policy.readers.terms import COMMANDS, fill, stated_terms
from gapless.policy.readers.yaml_lines import MOST_BYTES, read_yaml

PARTS = ("joints", "action", "observation", "timing", "source", "robot", "conventions")
WHOLE = ("commands", "normalizer", "recurrent")


def read_override(path: Path) -> dict[str, Any]:
    """The fields that a file states, by dotted name."""
    if path.suffix.lower() in (".yaml", ".yml"):
        return _flat(read_yaml(path)[0], str(path))
    with disk.refusing(f"{path}: not valid TOML", tomllib.TOMLDecodeError, RecursionError):
        return _flat(tomllib.loads(disk.text(path, MOST_BYTES)), str(path))


def read_settings(given: Sequence[str]) -> dict[str, Any]:
    """Fields as NAME=VALUE, such as timing.control_dt=0.02; a value is written as in YAML."""
    out: dict[str, Any] = {}
    for pair in given:
        name, sign, value = pair.partition("=")
        if not sign:
            raise BadInput(f"--set {pair}: expected NAME=VALUE, such as timing.control_dt=0.02")
        with disk.refusing(f"--set {pair}: the value is not valid YAML", pyyaml.YAMLError, RecursionError, ValueError):
            parsed = pyyaml.safe_load(value)
        out |= _flat(_nested(name.strip().split("."), parsed), "--set")
    return out


def _nested(parts: list[str], value: Any) -> dict[str, Any]:
    return {parts[0]: value if len(parts) == 1 else _nested(parts[1:], value)}


def _flat(table: Mapping[str, Any], where: str) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for part, value in table.items():
        if part in WHOLE:
            out[part] = value
        elif part in PARTS and isinstance(value, Mapping):
            out |= {f"{part}.{name}": field for name, field in value.items()}
        else:
            raise BadInput(f"{where}: {part!r} is no part of a contract; the parts are {', '.join((*PARTS, *WHOLE))}")
    return out


def apply(
    draft: Draft,
    stated: Mapping[str, Any],
    where: str,
    joints: tuple[str, ...],
    defaults: Mapping[str, Any],
    wins: bool = False,
) -> None:
    """Put what a user states into a draft.

    Args:
        draft: of the contract.
        stated: by dotted name.
        where: it was stated.
        joints: of the robot, for patterns of joint names.
        defaults: what the framework knows of terms by name.
        wins: whether it counts against what a file says; else a contradiction is refused.
    """
    # names first, as figures by joint need them
    for name in sorted(stated, key=lambda n: n not in ("joints.names", "action.joints")):
        value = stated[name]
        if name in ("joints.names", "action.joints"):
            value = matching(value, draft.get("joints.names") or joints if name == "action.joints" else joints)
        if name == "observation.terms":
            count = len(draft.get("action.joints") or draft.get("joints.names") or ()) or draft.outputs or 0
            value = stated_terms(value, count, defaults)
            if not fill(value, draft.width):
                raise BadInput(
                    f"{where}: the size of term {next(t['name'] for t in value if 'dim' not in t)!r} is not stated: dim"
                )
        origin = draft.origins.get(name)
        if origin and origin.kind == FILE and draft.values[name] != value and not wins:
            raise BadInput(
                f"{where} contradicts the policy's file: it states {name} = {str(value)[:60]}, and {origin.where} says "
                f"{str(draft.values[name])[:60]}; remove the line, or use --set to try it"
            )
        draft.put(name, value, where, USER)
    if any(t["kind"] == "command" for t in draft.get("observation.terms") or ()) and not draft.get("commands"):
        draft.put("commands", dict.fromkeys(COMMANDS), "a velocity task", "framework default")
