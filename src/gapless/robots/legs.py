"""Legs: where a robot's feet are and how they move, from joint angles, and the velocity of the base from feet that stand."""

from dataclasses import dataclass, replace
from itertools import pairwise

import mujoco
import numpy as np

from gapless.arrays import Array, Bools, Ints
from gapless.compiled import compiled
from gapless.errors import BadInput
from gapless.robots.drives import driven_joints
from gapless.robots.model import RobotModel
from gapless.rotations import cross, up_of

STANCE = 0.01
"""Height above the lowest foot at which a foot's weight in the velocity estimate falls to 1/e [m]."""
SOLE = 0.01
"""Points of a foot no higher than this above its lowest one at home are part of its sole [m]."""

_HINGE = int(mujoco.mjtJoint.mjJNT_HINGE)
_BOX = int(mujoco.mjtGeom.mjGEOM_BOX)
_LONG = (int(mujoco.mjtGeom.mjGEOM_CAPSULE), int(mujoco.mjtGeom.mjGEOM_CYLINDER))


@dataclass(frozen=True)
class Legs:
    """Kinematic chains from the base to each foot, as flat arrays for compiled code; see `legs_of`."""

    names: tuple[str, ...]
    """Bodies of the feet."""
    start: Ints
    """First row of each foot's chain in the arrays below, and the end of the last. Shape: (feet + 1,)."""
    place: Array
    """Position and orientation (w first) of each link in its parent. Shape: (rows, 7)."""
    joint: Array
    """Axis and anchor of each link's joint, and its angle at qpos0; a row without a joint has a zero axis. Shape: (rows, 7)."""
    column: Ints
    """Column of each row's joint in the joint signals, -1 for none. Shape: (rows,)."""
    hinge: Bools
    centre: Array
    """Middle of each foot in its link. Shape: (feet, 3)."""
    points: Array
    """Points of each foot that touch the ground, in its link, and their radius. Shape: (feet, points, 4)."""
    home: Array
    """Feet in the base's frame at home. Shape: (feet, 3)."""

    def __len__(self) -> int:
        return len(self.names)

    def feet(self, q: Array, dq: Array, quat: Array) -> tuple[Array, Array, Array]:
        """Positions and velocities of feet in the base's frame, and heights of their lowest points above the base's origin.

        Shapes: (n, feet, 3), (n, feet, 3), (n, feet).
        """
        n, feet = len(q), len(self)
        position, velocity, height = np.empty((n, feet, 3)), np.empty((n, feet, 3)), np.empty((n, feet))
        _walk(
            self.start, self.place, self.joint, self.column, self.hinge, self.centre, self.points,
            np.ascontiguousarray(q), np.ascontiguousarray(dq), up_of(quat), position, velocity, height,
        )  # fmt: skip
        return position, velocity, height

    def standing(self, q: Array) -> tuple[Array, Array]:
        """Feet and the heights of their lowest points above the base, upright and with joints at q (joints,).

        Shapes: (feet, 3), (feet,).
        """
        position, _, height = self.feet(q[None], 0 * q[None], np.array([[1.0, 0.0, 0.0, 0.0]]))
        return position[0], height[0]

    def velocity(self, q: Array, dq: Array, quat: Array, gyro: Array) -> Array:
        """Velocity of the base in its own frame, assuming that the lowest feet do not move. Shape: (n, 3)."""
        position, velocity, height = self.feet(q, dq, quat)
        weight = np.exp(-(height - height.min(axis=1, keepdims=True)) / STANCE)
        weight /= weight.sum(axis=1, keepdims=True)
        moved = velocity + cross(gyro[:, None], position)
        return np.asarray(-(weight[:, :, None] * moved).sum(axis=1))


def legs_of(robot: RobotModel) -> Legs:
    """The legs of a floating robot; bad input if it has none."""
    legs = find_legs(robot)
    if legs is None:
        raise BadInput(f"{robot.name} has no feet: a floating robot that stands on the last links of its legs is needed")
    return legs


def find_legs(robot: RobotModel) -> Legs | None:
    """The legs of a robot, or None. A foot that turns without limit about its own middle is a wheel, not a leg."""
    model = robot.model
    feet = [int(model.geom(name).id) for name in robot.feet]
    bodies = [b for b in sorted({int(model.geom_bodyid[g]) for g in feet}) if _is_leg(model, b)]
    if not bodies:
        return None
    geoms = [[g for g in feet if model.geom_bodyid[g] == b] for b in bodies]
    centres = [model.geom_pos[of].mean(axis=0) for of in geoms]
    touch = [np.concatenate([geom_points(model, g) for g in of]) for of in geoms]
    return _chains(robot, int(model.body(robot.base).id), bodies, centres, touch)


def chain_to(robot: RobotModel, point: str) -> Legs:
    """The chain from the world to one point of a robot with a fixed base, `site:NAME` or `body:NAME`."""
    model, (kind, _, name) = robot.model, point.partition(":")
    if kind == "site":
        body, centre = int(model.site(name).bodyid[0]), model.site(name).pos.copy()
    else:
        body, centre = int(model.body(name).id), np.zeros(3)
    return _chains(robot, 0, [body], [centre], [np.append(centre, 0.0)[None]])


def soles_of(legs: Legs, home: Array) -> tuple[Legs, Array] | None:
    """The points that feet stand on at home, each as a foot of its own, and their radii; None for feet of one ball each.

    A flat sole also has its middle, which may stand on a bump. Shape of the radii: (feet, points).
    """
    if legs.points.shape[1] == 1:
        return None
    low = _apart(legs, legs.points).standing(home)[1].reshape(len(legs), -1)
    kept = []
    for points, z in zip(legs.points, low, strict=True):
        sole = np.unique(points[z < z.min() + SOLE], axis=0)
        kept.append(sole if sole[:, 3].any() else np.vstack([sole, sole.mean(axis=0)]))
    most = max(map(len, kept))
    points = np.array([np.pad(sole, ((0, most - len(sole)), (0, 0)), mode="edge") for sole in kept])
    return _apart(legs, points), points[:, :, 3].copy()


def _apart(legs: Legs, points: Array) -> Legs:
    """Legs that end in points (feet, points, 4) instead of feet."""
    count = points.shape[1]
    chains = [np.arange(*ends) for ends in pairwise(legs.start) for _ in range(count)]
    rows = np.concatenate(chains)
    return replace(
        legs,
        names=tuple(name for name in legs.names for _ in range(count)),
        start=np.cumsum([0, *map(len, chains)]),
        place=legs.place[rows],
        joint=legs.joint[rows],
        column=legs.column[rows],
        hinge=legs.hinge[rows],
        centre=points[:, :, :3].reshape(-1, 3),
        points=points.reshape(-1, 1, 4),
    )


def _chains(robot: RobotModel, base: int, bodies: list[int], centres: list[Array], touch: list[Array]) -> Legs:
    """Chains from a base to bodies, each with a centre (3,) and points that touch (points, 4)."""
    model, driven = robot.model, {d.joint: i for i, d in enumerate(robot.drives)}
    rows: list[tuple[Array, Array, int, bool]] = []
    start = [0]
    for body in bodies:
        chain, link = [], body
        while link != base:
            chain.append(link)
            link = int(model.body_parentid[link])
        rows += [row for link in reversed(chain) for row in _rows(model, link, driven)]
        start.append(len(rows))
    most = max(map(len, touch))
    place, joint, column, hinge = (np.array(x) for x in zip(*rows, strict=True))
    legs = Legs(
        tuple(model.body(b).name for b in bodies),
        np.array(start),
        place,
        joint,
        column,
        hinge,
        np.array(centres),
        np.array([np.pad(t, ((0, most - len(t)), (0, 0)), mode="edge") for t in touch]),
        np.zeros((len(bodies), 3)),
    )
    legs.home[:] = legs.standing(robot.home[[d.qpos for d in robot.drives]])[0]
    return legs


def _is_leg(model: mujoco.MjModel, body: int) -> bool:
    """Whether a body on the ground ends a leg: it is neither a wheel nor a caster."""
    joints = range(int(model.body_jntadr[body]), int(model.body_jntadr[body] + model.body_jntnum[body]))
    geoms = [
        g for g in range(model.ngeom) if model.geom_bodyid[g] == body and model.geom_contype[g] + model.geom_conaffinity[g]
    ]
    driven = driven_joints(model)
    free = [j for j in joints if not model.jnt_limited[j] and model.jnt_stiffness[j] == 0]  # a spring is no axle
    wheel = any(j not in driven or any(_turns_on_the_spot(model, g, j) for g in geoms) for j in free)
    return len(joints) > 0 and not wheel


def _turns_on_the_spot(model: mujoco.MjModel, geom: int, joint: int) -> bool:
    """Whether a geom looks the same however its joint turns: its middle is on the axis, and it is no box or bar across it."""
    kind, axis, size = int(model.geom_type[geom]), model.jnt_axis[joint], model.geom_rbound[geom]
    if np.linalg.norm(np.cross(model.geom_pos[geom] - model.jnt_pos[joint], axis)) > 0.2 * size:
        return False
    along = np.empty(3)
    mujoco.mju_rotVecQuat(along, np.array([0.0, 0.0, 1.0]), model.geom_quat[geom])
    return kind != _BOX and (kind not in _LONG or abs(along @ axis) > 0.9)


def _rows(model: mujoco.MjModel, link: int, driven: dict[int, int]) -> list[tuple[Array, Array, int, bool]]:
    """A link's joints, one a row; those after the first are not displaced."""
    place = np.concatenate([model.body_pos[link], model.body_quat[link]])
    stay = np.array([0.0, 0, 0, 1, 0, 0, 0])
    first, count = int(model.body_jntadr[link]), int(model.body_jntnum[link])
    rows = [(place, np.zeros(7), -1, True)] if not count else []
    for j in range(first, first + count):
        zero = float(model.qpos0[model.jnt_qposadr[j]])
        row = np.concatenate([model.jnt_axis[j], model.jnt_pos[j], [zero]])
        rows.append((place if j == first else stay, row, driven.get(j, -1), bool(model.jnt_type[j] == _HINGE)))
    return rows


def geom_points(model: mujoco.MjModel, geom: int) -> Array:
    """Points on a geom that may touch the ground, in its body's frame, with a radius. Shape: (points, 4)."""
    size, kind = model.geom_size[geom], mujoco.mjtGeom(int(model.geom_type[geom]))
    if kind == mujoco.mjtGeom.mjGEOM_SPHERE:
        local, radius = np.zeros((1, 3)), size[0]
    elif kind == mujoco.mjtGeom.mjGEOM_CAPSULE:
        local, radius = np.array([[0, 0, -size[1]], [0, 0, size[1]]]), size[0]
    else:  # the corners of the box around it
        centre, half = model.geom_aabb[geom].reshape(2, 3)
        signs = np.stack(np.meshgrid([-1, 1], [-1, 1], [-1, 1]), axis=-1).reshape(-1, 3)
        local, radius = centre + signs * half, 0.0
    matrix = np.empty(9)
    mujoco.mju_quat2Mat(matrix, model.geom_quat[geom])
    placed = model.geom_pos[geom] + local @ matrix.reshape(3, 3).T
    return np.column_stack([placed, np.full(len(placed), radius)])


@compiled
def _walk(start, place, joint, column, hinge, centre, points, q, dq, up, position, velocity, height):  # type: ignore[no-untyped-def]
    """Forward kinematics of each foot of each robot, with the velocity that the joints give it."""
    axes, anchors = np.empty((32, 3)), np.empty((32, 3))
    turn, r, r2 = np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    p = np.empty(3)
    for i in range(len(q)):
        for f in range(len(start) - 1):
            p[:] = 0.0
            r[:] = 0.0
            r[0, 0] = r[1, 1] = r[2, 2] = 1.0
            for k in range(start[f], start[f + 1]):
                for a in range(3):
                    p[a] += r[a, 0] * place[k, 0] + r[a, 1] * place[k, 1] + r[a, 2] * place[k, 2]
                _matrix(place[k, 3], place[k, 4], place[k, 5], place[k, 6], turn)
                _times(r, turn, r2)
                r[:] = r2
                c = column[k]
                m = k - start[f]
                for a in range(3):
                    axes[m, a] = r[a, 0] * joint[k, 0] + r[a, 1] * joint[k, 1] + r[a, 2] * joint[k, 2]
                    anchors[m, a] = p[a] + r[a, 0] * joint[k, 3] + r[a, 1] * joint[k, 4] + r[a, 2] * joint[k, 5]
                if c < 0:
                    continue
                by = q[i, c] - joint[k, 6]
                if hinge[k]:
                    s = np.sin(by / 2)
                    _matrix(np.cos(by / 2), s * joint[k, 0], s * joint[k, 1], s * joint[k, 2], turn)
                    _times(r, turn, r2)
                    r[:] = r2
                    for a in range(3):
                        p[a] = anchors[m, a] - (r[a, 0] * joint[k, 3] + r[a, 1] * joint[k, 4] + r[a, 2] * joint[k, 5])
                else:
                    for a in range(3):
                        p[a] += by * axes[m, a]
            for a in range(3):
                position[i, f, a] = p[a] + r[a, 0] * centre[f, 0] + r[a, 1] * centre[f, 1] + r[a, 2] * centre[f, 2]
                velocity[i, f, a] = 0.0
            for k in range(start[f], start[f + 1]):
                c = column[k]
                if c < 0:
                    continue
                m, v = k - start[f], dq[i, c]
                if hinge[k]:
                    dx = position[i, f, 0] - anchors[m, 0]
                    dy = position[i, f, 1] - anchors[m, 1]
                    dz = position[i, f, 2] - anchors[m, 2]
                    velocity[i, f, 0] += v * (axes[m, 1] * dz - axes[m, 2] * dy)
                    velocity[i, f, 1] += v * (axes[m, 2] * dx - axes[m, 0] * dz)
                    velocity[i, f, 2] += v * (axes[m, 0] * dy - axes[m, 1] * dx)
                else:
                    for a in range(3):
                        velocity[i, f, a] += v * axes[m, a]
            low = np.inf
            for k in range(points.shape[1]):
                z = -points[f, k, 3]
                for a in range(3):
                    place_a = p[a] + r[a, 0] * points[f, k, 0] + r[a, 1] * points[f, k, 1] + r[a, 2] * points[f, k, 2]
                    z += up[i, a] * place_a
                low = min(low, z)
            height[i, f] = low


@compiled
def _matrix(w, x, y, z, out):  # type: ignore[no-untyped-def]
    out[0, 0], out[0, 1], out[0, 2] = 1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)
    out[1, 0], out[1, 1], out[1, 2] = 2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)
    out[2, 0], out[2, 1], out[2, 2] = 2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)


@compiled
def _times(a, b, out):  # type: ignore[no-untyped-def]
    for i in range(3):
        for j in range(3):
            out[i, j] = a[i, 0] * b[0, j] + a[i, 1] * b[1, j] + a[i, 2] * b[2, j]
