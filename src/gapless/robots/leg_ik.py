"""Inverse kinematics of legs: joint positions that hold a robot's feet above the places where they stand."""

import mujoco
import numpy as np

from gapless.arrays import Array
from gapless.errors import BadInput
from gapless.robots.legs import Legs
from gapless.robots.model import RobotModel

ROUNDS = 50
"""Newton steps; a leg of three joints needs six."""
SINGULAR = 1e-3
"""Directions in which a leg moves by less than this share of its best one are not used."""
DAMPING = 1e-4
"""Keeps legs without a spare joint from levelling their feet [rad^2]."""
CLOSE = 1e-3
"""Largest distance of a foot from where it should be [m]."""


def solve_foot_heights(robot: RobotModel, legs: Legs, height: Array) -> Array:
    """Joint offsets from home that raise each foot straight above its place at home, as seen from the base.

    Legs with joints to spare use them to keep their feet level.

    Args:
        robot: its model.
        legs: its legs.
        height: of each foot above its place [m]. Shape: (rows, feet).

    Returns:
        Shape: (rows, joints).
    """
    data, pose, places = mujoco.MjData(robot.model), robot.home, [d.qpos for d in robot.drives]
    low, high = np.array([(d.low, d.high) for d in robot.drives]).T
    data.qpos[:] = pose
    stance, level, _, _ = _feet(robot, legs, data)
    offsets = []
    for row in height:
        data.qpos[:] = pose  # each from home, so that a cycle closes
        for _ in range(ROUNDS):
            position, turned, jacobian, turning = _feet(robot, legs, data)
            away = (stance + row[:, None] * [0.0, 0.0, 1.0] - position).ravel()
            tilt = 0.5 * np.cross(turned, level, axisa=1, axisb=1).sum(axis=1).ravel()  # a small turn as a vector
            inverse = np.linalg.pinv(jacobian, SINGULAR)
            step = inverse @ away
            free = turning @ (np.eye(len(places)) - inverse @ jacobian)
            step += free.T @ np.linalg.solve(free @ free.T + DAMPING * np.eye(len(tilt)), tilt - turning @ step)
            data.qpos[places] = np.clip(data.qpos[places] + step, low, high)
            if np.abs(step).max() < 1e-9:
                break
        if np.abs(away).max() > CLOSE:
            raise BadInput(
                f"{robot.name} cannot lift its feet by {row.max():g} m from its home pose: "
                "give it one with bent knees (keyframe home)"
            )
        offsets.append(data.qpos[places] - pose[places])
    return np.array(offsets)


def _feet(robot: RobotModel, legs: Legs, data: mujoco.MjData) -> tuple[Array, Array, Array, Array]:
    """Positions and orientations of feet, and Jacobians of both. Shapes: (feet, 3), (feet, 3, 3), (3 feet, joints) twice."""
    model, dofs = robot.model, [d.dof for d in robot.drives]
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    positions, turned, moves, turns = [], [], [], []
    for name, centre in zip(legs.names, legs.centre, strict=True):
        body = model.body(name).id
        turned.append(data.xmat[body].reshape(3, 3).copy())
        positions.append(data.xpos[body] + turned[-1] @ centre)
        move, turn = np.zeros((3, model.nv)), np.zeros((3, model.nv))
        mujoco.mj_jac(model, data, move, turn, positions[-1], body)
        moves.append(move[:, dofs])
        turns.append(turn[:, dofs])
    return np.array(positions), np.array(turned), np.concatenate(moves), np.concatenate(turns)
