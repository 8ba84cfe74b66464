"""PyBullet: Bullet's multibodies (Featherstone), contacts by sequential impulses."""

import contextlib
import ctypes
import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gapless.arrays import Array
from gapless.check.engines.canonical import Canonical
from gapless.check.engines.engine_world import Base, ReadBack, in_body, shifted, to_world
from gapless.errors import BadInput

ITERATIONS = 100


class PybulletRobot:
    """One robot in a PyBullet client of its own."""

    def __init__(self, model: Canonical, timestep: float, folder: Path, urdf: str | None = None):
        """Load the canonical robot.

        Args:
            model: the robot.
            timestep: of physics [s].
            folder: where its meshes are; the URDF is written there.
            urdf: another text in place of the canonical one.
        """
        pybullet, bullet_client = _bullet()
        self.lacks = tuple(
            ["PyBullet has no armature: it is part of the links, which also feel it when their parents turn"]
            if any(j.armature for j in model.joints)
            else []
        )
        with unheard():
            self._p = p = bullet_client.BulletClient(pybullet.DIRECT)
        p.setPhysicsEngineParameter(fixedTimeStep=timestep, numSolverIterations=ITERATIONS, numSubSteps=1)
        p.setGravity(*model.gravity)
        path = folder / "robot_pybullet.urdf"
        path.write_text(model.urdf(rotors=True) if urdf is None else urdf)
        # without the flag Bullet makes up inertias from the shapes
        with unheard():
            self._robot = robot = p.loadURDF(str(path), useFixedBase=not model.floating, flags=p.URDF_USE_INERTIA_FROM_FILE)
        ground = p.createMultiBody(0, p.createCollisionShape(p.GEOM_PLANE), basePosition=[0, 0, model.floor])
        p.changeDynamics(ground, -1, lateralFriction=1.0)  # Bullet multiplies
        info = [p.getJointInfo(robot, i) for i in range(p.getNumJoints(robot))]
        index = {i[1].decode(): i[0] for i in info}
        links = {i[12].decode(): i[0] for i in info} | {p.getBodyInfo(robot)[0].decode(): -1}
        if missing := [j.name for j in model.joints if j.name not in index]:
            raise BadInput(f"PyBullet lacks the joints {', '.join(missing)}")
        self._model, self._links, self._index = model, links, [index[j.name] for j in model.joints]
        grip = {shape.link: shape.friction for shape in model.shapes}
        for name, (moments, _) in model.with_rotors().items() if urdf is None else ():
            p.changeDynamics(robot, links[name], localInertiaDiagonal=moments.tolist())
        for name, link in links.items():
            p.changeDynamics(
                robot, link, lateralFriction=grip.get(name, 0.0), spinningFriction=0, rollingFriction=0, restitution=0,
                linearDamping=0, angularDamping=0, jointDamping=0, maxJointVelocity=1e3,
            )  # fmt: skip
        if self._index:  # Bullet holds every joint with a motor of its own until it is switched off
            zeros = [0.0] * len(self._index)
            p.setJointMotorControlArray(robot, self._index, p.VELOCITY_CONTROL, forces=zeros)

    def read_back(self) -> ReadBack:
        p, robot = self._p, self._robot
        masses = {name: float(p.getDynamicsInfo(robot, link)[0]) for name, link in self._links.items()}
        info = {j.name: p.getJointInfo(robot, i) for j, i in zip(self._model.joints, self._index, strict=True)}
        return ReadBack(masses, {name: (float(i[8]), float(i[9])) for name, i in info.items()}, None)

    def place(self, q: Array, base: Base) -> None:
        p, robot = self._p, self._robot
        for i, value in zip(self._index, q.tolist(), strict=True):
            p.resetJointState(robot, i, value, 0.0)
        if self._model.floating:
            # Bullet's base is the centre of mass, with the axes of its inertia
            local, turned = p.getDynamicsInfo(robot, -1)[3:5]
            pos, quat = p.multiplyTransforms(base.pos.tolist(), _xyzw(base.quat), local, turned)
            p.resetBasePositionAndOrientation(robot, pos, quat)
            turn = to_world(base.quat, base.turn)
            velocity = shifted(base.velocity, turn, np.array(pos) - base.pos)
            p.resetBaseVelocity(robot, velocity.tolist(), turn.tolist())

    def joints(self) -> tuple[Array, Array]:
        if not self._index:
            return np.zeros(0), np.zeros(0)
        states = np.array([s[:2] for s in self._p.getJointStates(self._robot, self._index)])
        return states[:, 0], states[:, 1]

    def base(self) -> Base:
        p, robot = self._p, self._robot
        local, turned = p.getDynamicsInfo(robot, -1)[3:5]
        com, quat = p.getBasePositionAndOrientation(robot)
        pos, quat = p.multiplyTransforms(com, quat, *p.invertTransform(local, turned))
        linear, turn = (np.array(v) for v in p.getBaseVelocity(robot))
        frame = np.array([quat[3], *quat[:3]])
        return Base(np.array(pos), frame, shifted(linear, turn, np.array(pos) - com), in_body(frame, turn))

    def step(self, torque: Array) -> None:
        p = self._p
        if self._index:
            p.setJointMotorControlArray(self._robot, self._index, p.TORQUE_CONTROL, forces=torque.tolist())
        p.stepSimulation()

    def __del__(self) -> None:
        if hasattr(self, "_p"):
            self._p.disconnect()


def masses(urdf: str, folder: Path) -> dict[str, float]:
    """What PyBullet makes of the links of any URDF text, by name [kg]; shapes and meshes in it are not looked at."""
    pybullet, bullet_client = _bullet()
    with unheard():
        p = bullet_client.BulletClient(pybullet.DIRECT)
    path = folder / "given.urdf"
    path.write_text(urdf)
    try:
        with unheard():
            robot = p.loadURDF(str(path), flags=p.URDF_USE_INERTIA_FROM_FILE)
    except pybullet.error:
        return {}
    names = {-1: p.getBodyInfo(robot)[0].decode()}
    names |= {i: p.getJointInfo(robot, i)[12].decode() for i in range(p.getNumJoints(robot))}
    found = {name: float(p.getDynamicsInfo(robot, i)[0]) for i, name in names.items()}
    p.disconnect()
    return {name: mass for name, mass in found.items() if math.isfinite(mass)}


def _bullet() -> tuple[Any, Any]:
    """PyBullet's modules, without what they print: a result on stdout must stay JSON."""
    with unheard():
        import pybullet
        from pybullet_utils import bullet_client
    return pybullet, bullet_client


@contextlib.contextmanager
def unheard() -> Iterator[None]:
    """Keep C code from writing to stdout and stderr."""
    sys.stdout.flush()
    kept = [os.dup(1), os.dup(2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        ctypes.CDLL(None).fflush(None)  # what C has buffered belongs to the silence
        for fd, copy in zip((1, 2), kept, strict=True):
            os.dup2(copy, fd)
            os.close(copy)
        os.close(nowhere)


def _xyzw(quat: Array) -> list[float]:
    return [*quat[1:].tolist(), float(quat[0])]
