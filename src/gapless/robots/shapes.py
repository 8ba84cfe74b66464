"""Shapes: what a robot looks like as plain data, for a page that draws it itself; meshes become rough hulls, to stay small."""

from typing import Any

import mujoco
import numpy as np
from scipy.spatial import ConvexHull, QhullError

from gapless.arrays import Array

KINDS = {
    mujoco.mjtGeom.mjGEOM_BOX: "box",
    mujoco.mjtGeom.mjGEOM_CYLINDER: "cylinder",
    mujoco.mjtGeom.mjGEOM_CAPSULE: "capsule",
    mujoco.mjtGeom.mjGEOM_SPHERE: "ellipsoid",
    mujoco.mjtGeom.mjGEOM_ELLIPSOID: "ellipsoid",
    mujoco.mjtGeom.mjGEOM_MESH: "mesh",
}
DIRECTIONS = 48  # in which a hull is exact
MOST = 400  # shapes of a robot that are shown
THICK = 0.12  # of its length: a bone that stands for a link without shapes


def shapes(model: mujoco.MjModel) -> list[dict[str, Any]]:
    """The visible geoms of a model, and a bone for each link that has none, as `gapless.report.Film` takes them."""
    own = model.geom_bodyid > 0
    visible = own & (model.geom_group < 3) if (model.geom_group[own] < 3).any() else own
    out = [made for geom in np.flatnonzero(visible) if (made := _shape(model, int(geom)))]
    bare = set(range(1, model.nbody)) - {shape["body"] for shape in out}
    for body in range(1, model.nbody):
        parent, length = int(model.body_parentid[body]), float(np.linalg.norm(model.body_pos[body]))
        if parent in bare and length > 1e-3:
            quat = np.empty(4)
            mujoco.mju_quatZ2Vec(quat, model.body_pos[body])
            size = [THICK * length, (0.5 - THICK) * length, 0.0]
            out.append(_plain(parent, "capsule", size, model.body_pos[body] / 2, quat, [0.6, 0.6, 0.62]))
    return out[:MOST]


def ground(model: mujoco.MjModel) -> float | None:
    """Height of the first plane or height field that belongs to no link [m]; None where there is none."""
    flat = np.isin(model.geom_type, [int(mujoco.mjtGeom.mjGEOM_PLANE), int(mujoco.mjtGeom.mjGEOM_HFIELD)])
    fixed = np.flatnonzero(flat & (model.geom_bodyid == 0))
    return float(model.geom_pos[fixed[0], 2]) if len(fixed) else None


def _shape(model: mujoco.MjModel, geom: int) -> dict[str, Any] | None:
    kind, size, colour = KINDS.get(mujoco.mjtGeom(int(model.geom_type[geom]))), model.geom_size[geom], model.geom_rgba[geom]
    if kind is None or colour[3] == 0:
        return None
    if (material := int(model.geom_matid[geom])) >= 0:
        colour = model.mat_rgba[material]
    if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_SPHERE:
        size = np.repeat(size[0], 3)
    # darker than this a face cannot be told from the next
    out = _plain(int(model.geom_bodyid[geom]), kind, size, model.geom_pos[geom], model.geom_quat[geom], 0.2 + 0.75 * colour[:3])
    return out if kind != "mesh" else _hull(model, int(model.geom_dataid[geom]), out)


def _plain(body: int, kind: str, size: Any, pos: Any, quat: Any, colour: Any) -> dict[str, Any]:
    numbers = {"size": size, "pos": pos, "quat": quat, "colour": colour}
    return {"body": body, "kind": kind} | {name: np.round(values, 4).tolist() for name, values in numbers.items()}


def _hull(model: mujoco.MjModel, mesh: int, shape: dict[str, Any]) -> dict[str, Any] | None:
    """The convex hull of the points of a mesh that are outermost in some directions; none of a mesh that is flat."""
    first = int(model.mesh_vertadr[mesh])
    points = np.asarray(model.mesh_vert[first : first + int(model.mesh_vertnum[mesh])], float)
    points = points[np.unique((points @ _sphere().T).argmax(axis=0))]
    try:
        hull = ConvexHull(points)
    except (QhullError, ValueError):
        return None
    a, b, c = (points[hull.simplices[:, k]] for k in range(3))
    inward = ((np.cross(b - a, c - a) * hull.equations[:, :3]).sum(axis=1) < 0)[:, None]
    faces = np.where(inward, hull.simplices[:, ::-1], hull.simplices)  # counter-clockwise from outside
    return shape | {"points": np.round(points, 4).tolist(), "faces": faces.tolist()}


def _sphere() -> Array:
    """Directions, evenly spread (Fibonacci). Shape: (directions, 3)."""
    k = np.arange(DIRECTIONS) + 0.5
    height, turn = 1 - 2 * k / DIRECTIONS, np.pi * (1 + np.sqrt(5)) * k
    return np.column_stack([np.sqrt(1 - height**2) * np.cos(turn), np.sqrt(1 - height**2) * np.sin(turn), height])
