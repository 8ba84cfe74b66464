"""Our own policies: the contract in the network's metadata, a readable copy beside it, and golden frames."""

from typing import Any

import numpy as np

from gapless import files as disk
from gapless.checks import mapping
from gapless.plain import read_json
from gapless.policy.contract import VERSION
from gapless.policy.folder import CONTRACT, GOLDEN, LIMITS
from gapless.policy.onnx import KEY
from gapless.policy.readers.draft import Draft
from gapless.policy.readers.files import PolicyFiles

PARTS = ("joints", "action", "observation", "timing", "source", "robot", "conventions")


def can_read(files: PolicyFiles) -> bool:
    return (files.folder / CONTRACT).is_file() or KEY in files.network.metadata


def read(files: PolicyFiles, joints: tuple[str, ...]) -> Draft:
    """What the contract says; where the copy beside the network differs from it, the copy counts and that is noted."""
    import json

    draft, beside, inside = Draft("gapless"), files.folder / CONTRACT, files.network.metadata.get(KEY)
    table: dict[str, Any] | None = None
    if inside is not None:
        with disk.refusing(f"{files.network_path}: its contract is not JSON", ValueError, RecursionError):
            table = dict(mapping(json.loads(inside), "the contract"))
    where = f"metadata of {files.network_path.name}"
    if beside.is_file():
        copy = read_json(beside, LIMITS[CONTRACT])
        hashes = copy.pop("files", {})
        for name, digest in hashes.items() if isinstance(hashes, dict) else ():
            path = files.folder / str(name)
            if path.parent == files.folder and path.is_file() and disk.sha256(path) != digest:
                draft.notes.append(f"{name} is not the file that {CONTRACT} was written with")
        if table is not None and copy != table:
            draft.notes.append(f"{CONTRACT} differs from the contract inside {files.network_path.name}; {CONTRACT} counts")
        table, where = copy, CONTRACT
    assert table is not None
    if table.pop("version", VERSION) != VERSION:
        draft.notes.append(f"the contract is of another version than {VERSION}, which this gapless writes")
    for part, value in table.items():
        if part in PARTS:
            for name, field in mapping(value, part).items():
                draft.put(f"{part}.{name}", field, where)
        else:
            draft.put(part, value, where)
    return draft


def golden(files: PolicyFiles) -> tuple[np.ndarray, np.ndarray] | None:
    """The golden frames in the folder, of any framework that writes `observation` and `action` into golden.npz."""
    path = files.folder / GOLDEN
    if not path.is_file():
        return None
    disk.check_zip(path).close()
    # zipfile, zlib and numpy each have their own errors for damaged data
    with disk.refusing(f"{path}: the golden frames are damaged", Exception), np.load(path, allow_pickle=False) as arrays:
        observation, action = np.asarray(arrays["observation"], np.float32), np.asarray(arrays["action"], np.float32)
    return observation, action
