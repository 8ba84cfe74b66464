"""What a robot touches the floor with, as shapes that a URDF has, and where the floor is."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import mujoco
import numpy as np
from scipy.spatial import ConvexHull

from gapless.arrays import Array
from gapless.rotations import multiply, rotation_matrices

FLOORS = (int(mujoco.mjtGeom.mjGEOM_PLANE), int(mujoco.mjtGeom.mjGEOM_HFIELD))
SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH = (
    int(getattr(mujoco.mjtGeom, f"mjGEOM_{name}")) for name in ("SPHERE", "CAPSULE", "ELLIPSOID", "CYLINDER", "BOX", "MESH")
)
POINTS = 200
"""Of the hull that stands for an ellipsoid."""


@dataclass(frozen=True)
class Shape:
    """A solid that can touch the floor, in the frame of its link."""

    name: str
    link: str
    kind: str
    """sphere, capsule, cylinder, box or mesh."""
    attributes: dict[str, str]
    """As the URDF has them."""
    pos: Array
    quat: Array
    friction: float
    """Sliding friction of the pair that it makes with the floor."""
    vertices: Array = field(default_factory=lambda: np.zeros((0, 3)))
    """Of a mesh, which is convex. Shape: (points, 3)."""

    @property
    def file(self) -> str:
        return f"{self.name}.obj"

    def obj(self) -> str:
        """The mesh as a Wavefront file."""
        hull = ConvexHull(self.vertices)
        inside, lines = self.vertices.mean(axis=0), [f"v {x:.9g} {y:.9g} {z:.9g}" for x, y, z in self.vertices]
        for a, b, c in hull.simplices:
            normal = np.cross(self.vertices[b] - self.vertices[a], self.vertices[c] - self.vertices[a])
            b, c = (b, c) if normal @ (self.vertices[a] - inside) > 0 else (c, b)
            lines.append(f"f {a + 1} {b + 1} {c + 1}")
        return "\n".join(lines) + "\n"


def floor_of(model: mujoco.MjModel) -> tuple[float, list[str]]:
    """Height of the floor [m], and what of the ground other engines do not get."""
    floors = _floors(model)
    planes = [g for g in floors if model.geom_type[g] == FLOORS[0]]
    lost = ["the ground is not flat in the model: other engines get a flat floor"] if len(planes) < len(floors) else []
    return float(model.geom_pos[planes[0], 2]) if len(planes) else 0.0, lost


def shapes_of(
    model: mujoco.MjModel, data: mujoco.MjData, links: Mapping[int, tuple[str, tuple[Array, Array]]]
) -> tuple[tuple[Shape, ...], list[str]]:
    """Shapes that can touch the floor, and what gets lost. links: body to its link's name and frame at the state of data."""
    floors, shapes, lost = _floors(model), [], []
    kind, with_kind = model.geom_contype, model.geom_conaffinity
    solid = [g for g in range(model.ngeom) if int(model.geom_bodyid[g]) in links]
    for g in solid:
        meets = [f for f in floors if (kind[g] & with_kind[f]) | (with_kind[g] & kind[f])]
        if not meets if len(floors) else not (kind[g] | with_kind[g]):
            continue
        link, (pos, quat) = links[int(model.geom_bodyid[g])]
        turned = np.empty(4)
        mujoco.mju_mat2Quat(turned, data.geom_xmat[g])
        at = rotation_matrices(quat[None])[0].T @ (data.geom_xpos[g] - pos)
        shape, attributes, vertices = _shape(model, g)
        if not shape:
            lost.append(f"geom {model.geom(g).name or g} has a shape that no URDF has and is left out")
            continue
        name = f"shape_{g}"
        attributes = attributes or {"filename": f"{name}.obj"}
        facing = np.asarray(multiply(quat * [1, -1, -1, -1], turned))
        shapes.append(Shape(name, link, shape, attributes, at, facing, _friction(model, g, meets), vertices))
    if any((kind[a] & with_kind[b]) | (kind[b] & with_kind[a]) for a in solid for b in solid if a < b):
        lost.append("links that touch each other pass through each other in the other engines")
    return tuple(shapes), lost


def _floors(model: mujoco.MjModel) -> list[int]:
    still = model.body_weldid[model.geom_bodyid] == 0
    return np.flatnonzero(still & np.isin(model.geom_type, FLOORS)).tolist()


def _friction(model: mujoco.MjModel, geom: int, floors: list[int]) -> float:
    """What MuJoCo uses for the pair: the higher priority's, else the larger."""
    if not floors:
        return float(model.geom_friction[geom, 0])
    floor = floors[0]
    mine, other = model.geom_priority[[geom, floor]]
    chosen = [geom, floor] if mine == other else [geom] if mine > other else [floor]
    return float(model.geom_friction[chosen, 0].max())


def _shape(model: mujoco.MjModel, geom: int) -> tuple[str, dict[str, str], Array]:
    """Kind, URDF attributes and the vertices of a mesh."""
    kind, (a, b, c), none = int(model.geom_type[geom]), model.geom_size[geom].tolist(), np.zeros((0, 3))
    if kind == SPHERE:
        return "sphere", {"radius": f"{a:.9g}"}, none
    if kind in (CAPSULE, CYLINDER):
        return ("capsule" if kind == CAPSULE else "cylinder"), {"radius": f"{a:.9g}", "length": f"{2 * b:.9g}"}, none
    if kind == BOX:
        return "box", {"size": f"{2 * a:.9g} {2 * b:.9g} {2 * c:.9g}"}, none
    if kind == ELLIPSOID:
        k = np.arange(POINTS) + 0.5  # Fibonacci's lattice: evenly over the sphere
        polar, turn = np.arccos(1 - 2 * k / POINTS), np.pi * (1 + 5**0.5) * k
        ball = np.stack([np.cos(turn) * np.sin(polar), np.sin(turn) * np.sin(polar), np.cos(polar)], axis=-1)
        return "mesh", {}, ball * [a, b, c]
    if kind == MESH:
        mesh = int(model.geom_dataid[geom])
        first, count = int(model.mesh_vertadr[mesh]), int(model.mesh_vertnum[mesh])
        points = np.asarray(model.mesh_vert[first : first + count], float)
        return "mesh", {}, points[ConvexHull(points).vertices]
    return "", {}, none
