"""The windows of logs that explain looks at, and the errors of twins there: what every hypothesis is judged by."""

from collections.abc import Sequence

import numpy as np

from gapless.arrays import Array, Ints
from gapless.logs import Log
from gapless.measure import BLOCK, FREE_WINDOW, Windows, admit, floors, long_enough, moving, split_logs, windows
from gapless.robots import base_joint
from gapless.twin import Twin

JOINT_SECONDS, SECONDS = 75.0, (10.0, 20.0)  # s: replayed of all logs together, times degrees of freedom; and its bounds
RATE = 100.0  # Hz: samples closer than this tell nothing more
FARTHEST = 1.0  # rad: an error beyond counts as this


def observed(twin: Twin, logs: Sequence[Log]) -> Windows:
    """Windows of logs, evenly spread, that are few enough to be replayed hundreds of times."""
    admit(twin, logs)
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


def limbs(twin: Twin) -> Ints:
    """Which limb each joint belongs to, by its first link: different limbs hardly move each other. Shape: (joints,)."""
    return np.array([limb_of(twin, int(twin.model.jnt_bodyid[d.joint])) for d in twin.drives])


def limb_of(twin: Twin, body: int) -> int:
    """The first link of the limb that a link is part of; the base itself where it is part of none."""
    model, base = twin.model, base_joint(twin.model)
    root = 0 if base is None else int(model.body_weldid[model.jnt_bodyid[base]])
    while int(model.body_weldid[body]) not in (0, root) and int(model.body_weldid[model.body_parentid[body]]) not in (0, root):
        body = int(model.body_parentid[body])
    return body
