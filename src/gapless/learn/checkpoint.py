"""The file that a resumed training goes on from; it may come from anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gapless import files as disk
from gapless.errors import BadInput

MAX_CHECKPOINT = 1 << 30  # bytes


def write_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Whole or not at all."""
    import torch

    with disk.refusing(f"{path}: it could not be written: is the disk full?", RuntimeError), disk.atomic(path) as part:
        torch.save(state, part)


def read_checkpoint(path: Path) -> dict[str, Any]:
    """A checkpoint; files from elsewhere may be anything, so nothing in them is run."""
    import torch

    if disk.regular(path).stat().st_size > MAX_CHECKPOINT:
        raise BadInput(f"{path}: larger than {MAX_CHECKPOINT >> 20} MB, which is no checkpoint of such a policy")
    with disk.refusing(f"{path}: not a checkpoint", Exception):  # torch, zipfile and pickle each have their own
        state = torch.load(path, weights_only=True)
    if not isinstance(state, dict) or not {"actor_state_dict", "critic_state_dict", "iteration"} <= set(state):
        raise BadInput(f"{path}: not a checkpoint of a training run")
    return state
