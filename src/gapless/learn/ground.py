"""Ground: a height field of rising hardness that legged robots learn on, the same in all worlds of one model.

    twin = on_terrain(Twin.load("quadruped"), "rough", np.random.default_rng(0))

Strips of square tiles run along x; each is harder than the one before it in y, from flat at the origin to the hardest. Worlds
differ by the tile on whose level middle their episode starts.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from gapless.arrays import Array, Bools
from gapless.compiled import compiled
from gapless.errors import BadInput, must_exist
from gapless.twin import Bound, Mechanism, Twin

KINDS = ("rough", "steps", "slopes")
TERRAINS = ("flat", *KINDS, "mixed")
CELL = {"rough": 0.1, "slopes": 0.1, "steps": 0.05, "mixed": 0.05}
"""Grid spacing [m]. A finer grid makes contacts slower, a coarser one makes steps less steep."""
ROUGH, STEP, SLOPE = 0.05, 0.10, np.deg2rad(20)
"""Of the hardest ground: largest height of bumps [m], height of a step [m], slope [rad]."""
GRAIN = 0.1
"""Between the random heights of rough ground [m]."""
TILE, PAD = 4.0, 0.5
"""Side of a tile, and half the side of its level middle [m]."""
TREADS = (0.3, 0.45)
"""Depth of a step, from and to [m]."""
LEVELS, ACROSS, BORDER = 10, 4, 2
"""Strips, tiles in each that episodes start on, and tiles around all of them: 8 m for a robot to walk away."""
EDGE = 0.5
"""A robot whose base is this close to the edge of the ground has walked off it [m]."""
DEPTH = 1.0
"""Thickness of the ground below its lowest point [m]."""
ARENA = 1 << 20
"""Memory for contacts [bytes]: a robot that lies on a height field touches it in dozens of places."""
RING = 0.7
"""Radius of the ring on a round foot's underside that is checked besides its middle, in foot radii: 45 degree slopes."""
NAME = "gapless_ground"
HIDDEN = 5  # group of geoms that viewers do not show at first


@dataclass(frozen=True, eq=False)
class Ground(Mechanism):
    """A mechanism without parameters that turns the floor of a model into a height field."""

    heights: Array
    """At the corners of square cells. Shape: (rows along y, columns along x) [m]."""
    cell: float
    corner: tuple[float, float]
    """Where heights[0, 0] is [m]."""
    starts: Array
    """Middles of level places, by hardness from 0 to 1. Shape: (levels, places, 2) [m]."""

    def install(self, spec: mujoco.MjSpec, home: Mapping[str, float]) -> None:
        """Replace the floor, which keeps its name, friction and looks."""
        floors = [g for g in spec.geoms if g.type == mujoco.mjtGeom.mjGEOM_PLANE and (g.contype or g.conaffinity)]
        if not floors:
            raise BadInput('terrain replaces the floor, and the model has none: add <geom type="plane" size="0 0 1"/>')
        floors.sort(key=lambda g: g.quat[1] ** 2 + g.quat[2] ** 2)  # level ones first
        for other in floors[1:]:  # would cover every pit, but contact pairs and sensors may name it
            other.contype, other.conaffinity, other.group = 0, 0, HIDDEN
        rows, columns = self.heights.shape
        x, y = self.cell * (columns - 1) / 2, self.cell * (rows - 1) / 2
        low = float(self.heights.min())
        size = [x, y, max(float(np.ptp(self.heights)), 1e-6), DEPTH]
        spec.add_hfield(name=NAME, nrow=rows, ncol=columns, size=size, userdata=self.heights.ravel())
        floor = floors[0]
        if floor.parent.name != "world" or floor.frame is not None:
            raise BadInput("terrain replaces the floor, which must be directly in the worldbody and not in a frame")
        floor.type, floor.hfieldname = mujoco.mjtGeom.mjGEOM_HFIELD, NAME
        floor.pos, floor.quat = [self.corner[0] + x, self.corner[1] + y, low], [1, 0, 0, 0]
        if 0 <= spec.memory < ARENA:
            spec.memory = ARENA

    def bind(self, model: mujoco.MjModel) -> Bound:
        return Bound((), lambda fields, values: None)

    def height(self, x: ArrayLike, y: ArrayLike) -> Array:
        """Height of the ground at places, on the triangles that the engine collides with; outside, that of the edge [m]."""
        x, y = np.broadcast_arrays(np.asarray(x, float), np.asarray(y, float))
        out = np.empty(x.shape)
        _heights(x.ravel(), y.ravel(), self.heights, *self.corner, self.cell, out.reshape(-1))
        return out

    def below(self, position: Array, heading: Array, feet: Array) -> Array:
        """Mean height of the ground below robots, taken where their feet would be at home. Shape: (n,).

        Args:
            position: of the base, (n, 2 or 3).
            heading: its direction as a vector, (n, 2).
            feet: in the base's frame, (feet, 2 or 3).
        """
        cos, sin = heading[:, :1], heading[:, 1:]
        x = position[:, :1] + cos * feet[:, 0] - sin * feet[:, 1]
        y = position[:, 1:2] + sin * feet[:, 0] + cos * feet[:, 1]
        return np.asarray(self.height(x, y).mean(axis=1))

    def clearance(self, points: Array, radius: Array, quat: Array, position: Array) -> Array:
        """The least vertical distance of each foot to the ground below it [m]. Shape: (n, feet).

        Args:
            points: of each foot in the base's frame, (n, feet, points, 3).
            radius: of the balls around them, (feet, points).
            quat: of the base, (n, 4).
            position: of the base, (n, 3).
        """
        out = np.empty(points.shape[:2])
        place = np.ascontiguousarray(position)
        _clearance(points, radius, np.ascontiguousarray(quat), place, self.heights, *self.corner, self.cell, out)
        return out

    def start(self, hardness: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """Level places on ground of a wanted hardness, 0 to 1, and how hard it is there. Shapes: (k, 2), (k,)."""
        levels, places, _ = self.starts.shape
        level = np.minimum((np.asarray(hardness) * levels).astype(int), levels - 1)
        return self.starts[level, rng.integers(places, size=len(level))], level / (levels - 1)

    def beyond(self, position: Array) -> Bools:
        """Which robots (n, 2 or 3) have reached the edge of the ground. Shape: (n,)."""
        low = np.array(self.corner) + EDGE
        high = np.array(self.corner) + self.cell * (np.array(self.heights.shape[::-1]) - 1) - EDGE
        place = position[:, :2]
        return np.asarray(((place < low) | (place > high)).any(axis=1))


def on_terrain(twin: Twin, terrain: str, rng: np.random.Generator) -> Twin:
    """A robot on ground of a kind of `TERRAINS`; the same twin for flat ground."""
    must_exist("terrain", [terrain], TERRAINS)
    if terrain == "flat":
        return twin
    if not twin.floating:
        raise BadInput(f"{twin.name} has a fixed base, and terrain is for robots that move: use flat")
    grounded = twin.plus(make(terrain, rng))
    # cameras look at the robot, not at the whole ground
    grounded.model.stat.extent, grounded.model.stat.center[:] = twin.model.stat.extent, twin.model.stat.center
    return grounded


def ground_of(twin: Twin) -> Ground | None:
    """The ground that a robot stands on; None for a floor."""
    return next((m for m in twin.mechanisms if isinstance(m, Ground)), None)


def make(terrain: str, rng: np.random.Generator) -> Ground:
    """Ground of one of `KINDS`, or of all of them."""
    cell, strips, across = CELL[terrain], LEVELS + 2 * BORDER, ACROSS + 2 * BORDER
    side = round(TILE / cell)
    heights = np.zeros((strips * side + 1, across * side + 1))
    for strip in range(strips):
        hardness = min(max(strip - BORDER, 0), LEVELS - 1) / (LEVELS - 1)
        for tile in range(across):
            kind = str(rng.choice(KINDS)) if terrain == "mixed" else terrain
            rows, columns = slice(strip * side, (strip + 1) * side), slice(tile * side, (tile + 1) * side)
            heights[rows, columns] = _tile(kind, hardness, cell, rng)
    # the origin is in the middle of the flat strip, so that a robot at home stands there
    corner = (-across * TILE / 2, -(BORDER + 0.5) * TILE)
    y, x = np.mgrid[BORDER : BORDER + LEVELS, BORDER : BORDER + ACROSS] + 0.5
    return Ground(heights, cell, corner, np.stack([x * TILE + corner[0], y * TILE + corner[1]], axis=-1))


def _tile(kind: str, hardness: float, cell: float, rng: np.random.Generator) -> Array:
    """One tile with a level middle, level with the others at its rim. Steps and slopes make a pyramid or a pit."""
    side, pad = round(TILE / cell), round(PAD / cell)
    across = np.abs(np.arange(side) - side // 2)
    away = np.maximum(across[:, None], across)  # cells from the middle
    if kind == "rough":
        fade = np.clip(np.minimum(away - pad, side // 2 - away) / pad, 0.0, 1.0)
        return np.asarray(ROUGH * hardness * _noise(side, cell, rng) * fade)
    up, inwards = rng.choice((-1.0, 1.0)), side // 2 - away
    if kind == "slopes":
        return np.asarray(up * np.tan(SLOPE * hardness) * cell * np.minimum(inwards, side // 2 - pad))
    tread = round(rng.uniform(*TREADS) / cell)
    return np.asarray(up * STEP * hardness * np.minimum(-(-inwards // tread), (side // 2 - pad) // tread))


def _noise(side: int, cell: float, rng: np.random.Generator) -> Array:
    """Random heights every `GRAIN`, smoothed by the weights 1, 2, 1 and linear in between; from -1 to 1."""
    places, knots = cell * np.arange(side), GRAIN * np.arange(-1, round(side * cell / GRAIN) + 2)
    weight = np.maximum(0.0, 1 - np.abs(places[:, None] - knots) / (2 * GRAIN)) / 2
    rough = weight @ rng.uniform(-1, 1, (len(knots), len(knots))) @ weight.T
    return np.clip(2 * rough, -1, 1)  # smoothing leaves 0.22 of a standard deviation: one place in fifty is clipped


@compiled
def _height(x, y, heights, x0, y0, cell):  # type: ignore[no-untyped-def]
    """On the triangles of each cell, which MuJoCo divides from its corner of least x and y to the opposite one."""
    rows, columns = heights.shape
    u, v = (x - x0) / cell, (y - y0) / cell
    u = min(u, columns - 1.0) if u > 0.0 else 0.0  # so written that a place that is not a number stays inside, too
    v = min(v, rows - 1.0) if v > 0.0 else 0.0
    c, r = min(int(u), columns - 2), min(int(v), rows - 2)
    a, b = u - c, v - r
    low, high = heights[r, c], heights[r + 1, c + 1]
    if a > b:
        side = heights[r, c + 1]
        return low + a * (side - low) + b * (high - side)
    side = heights[r + 1, c]
    return low + b * (side - low) + a * (high - side)


@compiled
def _heights(x, y, heights, x0, y0, cell, out):  # type: ignore[no-untyped-def]
    for i in range(len(x)):
        out[i] = _height(x[i], y[i], heights, x0, y0, cell)


@compiled
def _clearance(points, radius, quat, position, heights, x0, y0, cell, out):  # type: ignore[no-untyped-def]
    """A ball touches the ground where its underside is no higher: looked at below its centre and on a ring around that."""
    ring = np.empty((8, 2))
    for k in range(8):
        ring[k] = RING * np.cos(k * np.pi / 4), RING * np.sin(k * np.pi / 4)
    under = np.sqrt(1 - RING**2)
    n, feet, count, _ = points.shape
    for i in range(n):
        w, qx, qy, qz = quat[i]
        for f in range(feet):
            least = np.inf
            for k in range(count):
                px, py, pz = points[i, f, k]
                # v + 2 w (q x v) + 2 q x (q x v)
                tx, ty, tz = 2 * (qy * pz - qz * py), 2 * (qz * px - qx * pz), 2 * (qx * py - qy * px)
                x = position[i, 0] + px + w * tx + qy * tz - qz * ty
                y = position[i, 1] + py + w * ty + qz * tx - qx * tz
                z = position[i, 2] + pz + w * tz + qx * ty - qy * tx
                r = radius[f, k]
                least = min(least, z - r - _height(x, y, heights, x0, y0, cell))
                if r > 0:
                    for m in range(8):
                        ground = _height(x + r * ring[m, 0], y + r * ring[m, 1], heights, x0, y0, cell)
                        least = min(least, z - under * r - ground)
            out[i, f] = least
