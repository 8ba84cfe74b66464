"""The windows of logs that explain looks at, and the errors of twins there: what every hypothesis is judged by."""

from collections.abc import Sequence

import numpy as np

from gapless.arrays import Array
from gapless.logs import Log
from gapless.measure import BLOCK, FREE_WINDOW, Windows, floors, long_enough, moving, must_compare, split_logs, windows
from gapless.twin import Twin

JOINT_SECONDS, SECONDS = 75.0, (10.0, 20.0)  # s: replayed of all logs together, times degrees of freedom; and its bounds
RATE = 100.0  # Hz: samples closer than this tell nothing more
FARTHEST = 1.0  # rad: an error beyond counts as this


def observed(twin: Twin, logs: Sequence[Log]) -> Windows:
    """Windows of logs, evenly spread, that are few enough to be replayed hundreds of times."""
    must_compare(twin, logs)
    long_enough(logs)
    moving(logs)
    split = split_logs(logs, twin.joints)
    used = split.blocks(split.spread(split.logs, float(np.clip(JOINT_SECONDS / twin.model.nv, *SECONDS))))
    length, signals = BLOCK if twin.all_servos else FREE_WINDOW, ("q", "quat") if twin.floating else ("q",)
    return windows(twin, logs, split, used & split.measured, length, signals=signals, rate=RATE)


def errors_of(data: Windows, values: Array) -> Array:
    """Predicted minus measured positions of joints, then the tilt of a free base, for vectors over the twin's space [rad].

    Shape: (k, samples, columns).
    """
    columns = len(data.twin.joints) + 2 * data.twin.floating
    return np.clip(data.errors(values)[:, :, :columns], -FARTHEST, FARTHEST)


def noise_of(data: Windows) -> Array:
    """The noise floor of each column of the errors [rad]. Shape: (columns,)."""
    floor = floors([r.log for r in data.replayers], data.signals)
    joints = floor["q"].size[[floor["q"].columns.index(j) for j in data.twin.joints]]
    return np.concatenate([joints, floor["quat"].size[:2]]) if data.twin.floating else joints
