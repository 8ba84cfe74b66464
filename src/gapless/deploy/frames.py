"""What a policy saw and answered in a recorded run."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gapless.arrays import Array
from gapless.errors import BadInput
from gapless.logs import NOT_SIGNALS, ROWS, McapContents, mcap_batches

OBSERVATION, ACTION = NOT_SIGNALS[:2]


@dataclass(frozen=True)
class PolicyFrames:
    """One row an answer."""

    time: Array
    """Of the reading that was answered, on the robot's clock [s]. Shape: (answers,)."""
    observation: Array
    """Shape: (answers, width)."""
    action: Array
    """Shape: (answers, driven joints)."""


def read_policy_frames(path: str | Path) -> PolicyFrames:
    """The observations and actions of a recording, also of one that was cut off."""
    contents, data, columns = McapContents(), b"", dict[str, list[str]]()
    for batches in mcap_batches(Path(path), contents):
        for number, batch in batches.items():
            channel = contents.channels[number]
            told = json.loads(channel.metadata.get("columns", "{}")) if channel.schema == ROWS else {}
            if OBSERVATION in told:
                columns, data = told, data + b"".join(batch.data)
    if not columns:
        raise BadInput(f"{path}: holds no observations of a policy")
    width = len(columns[OBSERVATION])
    rows = np.frombuffer(data, "<f8").reshape(-1, 2 + width + len(columns[ACTION]))
    return PolicyFrames(rows[:, 0], rows[:, 2 : 2 + width], rows[:, 2 + width :])
