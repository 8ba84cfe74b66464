"""Lift: joint positions that hold a robot's feet above the places where they stand, by inverse kinematics of its legs."""

from __future__ import annotations

import mujoco
import numpy as np

from gapless.arrays import Array
from gapless.errors import BadInput
from gapless.robots.legs import Legs
from gapless.robots.model import RobotModel

ROUNDS = 50
"""Newton steps; a leg of three joints needs six."""
SINGULAR = 1e-3
"""What a leg hardly moves along, as a share of where it moves best, is left alone."""
DAMPING = 1e-4
"""Keeps feet from being levelled by legs that have nothing left for it [rad^2]."""
CLOSE = 1e-3
"""A foot is there [m]."""


def solve_foot_heights(robot: RobotModel, legs: Legs, height: Array) -> Array:
    """Joint positions, as differences to home, with each foot straight above its place at home, seen from the base.

    Feet that can stay level do: what freedom their places leave to the legs goes into that.

    Args:
        robot: its model.
        legs: its legs.
        height: of each foot above its place [m]. Shape: (rows, feet).

    Returns:
        Shape: (rows, joints).
    """
    model, data, pose = robot.model, mujoco.MjData(robot.model), robot.home
    places = [d.qpos for d in robot.drives]
    limits = [model.jnt_range[d.joint] if model.jnt_limited[d.joint] else (-np.inf, np.inf) for d in robot.drives]
    low, high = np.array(limits).T
    data.qpos[:] = pose
    there, level, _, _ = _feet(robot, legs, data)
    found = []
    for row in height:
        data.qpos[:] = pose  # each from home, so that a cycle closes
        for _ in range(ROUNDS):
            at, turned, jacobian, turning = _feet(robot, legs, data)
            away = (there + row[:, None] * [0.0, 0.0, 1.0] - at).ravel()
            back = 0.5 * np.cross(turned, level, axisa=1, axisb=1).sum(axis=1).ravel()  # a small turn as a vector
            inverse = np.linalg.pinv(jacobian, SINGULAR)
            step = inverse @ away
            left = turning @ (np.eye(len(places)) - inverse @ jacobian)
            step += left.T @ np.linalg.solve(left @ left.T + DAMPING * np.eye(len(back)), back - turning @ step)
            data.qpos[places] = np.clip(data.qpos[places] + step, low, high)
            if np.abs(step).max() < 1e-9:
                break
        if np.abs(away).max() > CLOSE:
            raise BadInput(
                f"{robot.name} cannot lift its feet by {row.max():g} m from its home pose: "
                "give it one with bent knees (keyframe home)"
            )
        found.append(data.qpos[places] - pose[places])
    return np.array(found)


def _feet(robot: RobotModel, legs: Legs, data: mujoco.MjData) -> tuple[Array, Array, Array, Array]:
    """Where feet are and how they are turned, and both by joint. Shapes: (feet, 3), (feet, 3, 3), (3 feet, joints) twice."""
    model, dofs = robot.model, [d.dof for d in robot.drives]
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    at, turned, moves, turns = [], [], [], []
    for name, centre in zip(legs.names, legs.centre, strict=True):
        body = model.body(name).id
        turned.append(data.xmat[body].reshape(3, 3).copy())
        at.append(data.xpos[body] + turned[-1] @ centre)
        move, turn = np.zeros((3, model.nv)), np.zeros((3, model.nv))
        mujoco.mj_jac(model, data, move, turn, at[-1], body)
        moves.append(move[:, dofs])
        turns.append(turn[:, dofs])
    return np.array(at), np.array(turned), np.concatenate(moves), np.concatenate(turns)
