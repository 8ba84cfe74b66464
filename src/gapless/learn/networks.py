"""Networks in a plain file: actor and critic of a training, and what the critic's columns mean, for another to start from."""

from pathlib import Path
from typing import Any

import numpy as np

from gapless import files as disk
from gapless.arrays import Array
from gapless.errors import BadInput

FILE = "best.npz"
PARTS = ("actor", "critic")
MAX_FILE = 256 << 20  # bytes
FIRST = ("mlp.0.weight", "rnn.rnn.weight_ih_l0")
"""What reads a critic's columns: the first layer of a plain network, and of one with a memory."""
NORMALISER = "obs_normalizer."
STILL = 1e-6
"""Variance of a column that did not change; all are scaled to be about 1."""


def save_networks(path: Path, state: dict[str, Any], columns: tuple[str, ...]) -> None:
    """Write the networks of a learner's state, whole or not at all; `columns` are what the critic sees."""
    arrays = {f"{part}/{name}": t.numpy() for part in PARTS for name, t in state[f"{part}_state_dict"].items()}
    with disk.atomic(path) as part, part.open("wb") as file:
        np.savez(file, allow_pickle=False, columns=np.array(columns), **arrays)


def load_networks(path: Path) -> tuple[dict[str, dict[str, Array]], tuple[str, ...]]:
    """Arrays of actor and critic by name, and what the critic's columns are; the file may come from anywhere."""
    disk.check_zip(path).close()
    if path.stat().st_size > MAX_FILE:
        raise BadInput(f"{path}: larger than {MAX_FILE >> 20} MB, which no such networks are")
    # zipfile, zlib and numpy each have their own errors for damaged data
    with disk.refusing(f"{path}: not networks of a training", Exception), np.load(path, allow_pickle=False) as found:
        columns = tuple(map(str, found["columns"].tolist()))
        named = {part: {k.partition("/")[2]: found[k] for k in found.files if k.startswith(f"{part}/")} for part in PARTS}
    if not all(named.values()) or not all(np.isfinite(a).all() for part in named.values() for a in part.values()):
        raise BadInput(f"{path}: actor or critic are missing, or have numbers that are not finite")
    return named, columns


def by_columns(critic: dict[str, Array], old: tuple[str, ...], new: tuple[str, ...]) -> dict[str, Array]:
    """A critic that saw some columns, for others: what it knows of a column goes with its name.

    Columns that it never saw, or never saw change, it ignores until it learns about them.
    """
    moves = critic.get(f"{NORMALISER}_var", np.ones((1, len(old)))).reshape(-1) > STILL
    if len(moves) != len(old):
        raise BadInput(f"its critic sees {len(moves)} columns and names {len(old)}")
    known = [(i, old.index(name)) for i, name in enumerate(new) if name in old and moves[old.index(name)]]
    to, of = np.array(known, int).reshape(-1, 2).T

    def moved(name: str, array: Array) -> Array:
        if name not in FIRST and not (name.startswith(NORMALISER) and array.ndim):
            return array
        if array.shape[-1] != len(old):
            raise BadInput(f"its critic sees {array.shape[-1]} columns and names {len(old)}")
        fill = 1.0 if name.endswith(("_var", "_std")) else 0.0
        out = np.full((*array.shape[:-1], len(new)), fill, array.dtype)
        out[..., to] = array[..., of]
        return out

    return {name: moved(name, array) for name, array in critic.items()}
