"""Surroundings: does the robot touch something that the model knows nothing of? Seen by what holds it up."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from gapless.arrays import Array
from gapless.measure import Trace
from gapless.twin import Table, Twin

HELD_UP = 0.003  # m: by which the robot's end must be above where a free one would be
NEAR = 0.03  # m above the lowest point that the end ever reaches: a table is nowhere else
SHARE = 0.1  # of a block's samples


@dataclass(frozen=True)
class Suspect:
    """A table that would explain what a free robot does not."""

    mechanism: Table
    height: float
    """Where to start looking [m]."""
    blocks: NDArray[np.bool_]
    """In which it seems to be touched."""


def suspected(twin: Twin, traced: Sequence[Trace], left_out: Mapping[str, Sequence[int]], count: int) -> Suspect | None:
    """A table under the robot's end, if some of so many blocks that no model fits have it above where the fit would be."""
    if not left_out or twin.floating:
        return None
    link, point = _end(twin.model)
    odd = np.zeros(count, dtype=bool)
    odd[[b for blocks in left_out.values() for b in blocks]] = True
    rows = [np.flatnonzero(odd[t.block]) for t in traced]
    real = [_height(twin, t.measured[r], link, point) for t, r in zip(traced, rows, strict=True)]
    free = [_height(twin, t.twin[r], link, point) for t, r in zip(traced, rows, strict=True)]
    lowest = min((float(h.min()) for h in real if len(h)), default=0.0)
    held, total = np.zeros(count), np.zeros(count)
    heights = []
    for t, r, high, low in zip(traced, rows, real, free, strict=True):
        up = (high - low > HELD_UP) & (high < lowest + NEAR)
        np.add.at(held, t.block[r], up)
        np.add.at(total, t.block[r], 1)
        heights.append(high[up])
    blocks = held > SHARE * np.maximum(total, 1)
    if blocks.sum() < 2:
        return None
    height = float(np.percentile(np.concatenate(heights), 80))
    return Suspect(Table(twin.model.body(link).name, tuple(point.tolist())), height, blocks)


def _end(model: mujoco.MjModel) -> tuple[int, Array]:
    """The link farthest from the base that has a site, and the site's place on it; else the last link and its centre."""
    depth = np.zeros(model.nbody, dtype=int)
    for b in range(1, model.nbody):
        depth[b] = depth[model.body_parentid[b]] + 1
    sites = [s for s in range(model.nsite) if model.body_weldid[model.site_bodyid[s]] != 0]
    if sites:
        best = max(sites, key=lambda s: depth[model.site_bodyid[s]])
        return int(model.site_bodyid[best]), model.site_pos[best].copy()
    last = int(np.argmax(np.where(model.body_mass > 0, depth, -1)))
    return last, 2 * model.body_ipos[last]


def _height(twin: Twin, q: Array, link: int, point: Array) -> Array:
    """Of a point of a link in the world, for joint positions (n, joints) [m]."""
    model, data = twin.model, mujoco.MjData(twin.model)
    places = [d.qpos for d in twin.drives]
    out = np.empty(len(q))
    for k in range(len(q)):
        data.qpos[places] = q[k]
        mujoco.mj_kinematics(model, data)
        out[k] = data.xpos[link, 2] + data.xmat[link].reshape(3, 3)[2] @ point
    return out
