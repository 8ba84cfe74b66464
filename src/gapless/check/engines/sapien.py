"""SAPIEN: PhysX 5 on the CPU, articulations in reduced coordinates."""

import warnings
from pathlib import Path

import numpy as np

from gapless.arrays import Array
from gapless.check.engines.canonical import Canonical
from gapless.check.engines.engine_world import Base, ReadBack, in_body, shifted, to_world
from gapless.errors import BadInput

ITERATIONS = 32  # of positions; PhysX's 10 let feet sink
FASTEST = 1e3  # rad/s: PhysX caps joints at 100 otherwise


class SapienRobot:
    """One robot in a scene of its own."""

    def __init__(self, model: Canonical, timestep: float, folder: Path):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of Vulkan, which nothing is drawn with
            import sapien

        self.lacks: tuple[str, ...] = ()
        self._sapien = sapien
        physics = sapien.physx.PhysxCpuSystem()
        self._scene = scene = sapien.Scene([physics])
        sapien.physx.set_scene_config(gravity=model.gravity.tolist(), bounce_threshold=2.0)
        physics.config.gravity = model.gravity.tolist()
        scene.set_timestep(timestep)
        # PhysX takes the mean of two frictions: a floor of none, and shapes of twice theirs
        scene.add_ground(model.floor, render=False, material=sapien.physx.PhysxMaterial(0.0, 0.0, 0.0))
        loader = scene.create_urdf_loader()
        loader.fix_root_link = not model.floating
        loader.load_multiple_collisions_from_file = False
        path = folder / "robot.urdf"
        path.write_text(model.urdf())
        self._robot = robot = loader.load(str(path))
        joints = {j.name: j for j in robot.get_active_joints()}
        if missing := [j.name for j in model.joints if j.name not in joints]:
            raise BadInput(f"SAPIEN lacks the joints {', '.join(missing)}")
        order = [j.name for j in robot.get_active_joints()]
        self._model, self._order = model, [order.index(j.name) for j in model.joints]
        for j in model.joints:
            joint = joints[j.name]
            joint.set_armature(np.array([j.armature]))
            joint.set_friction(0.0)
            joint.set_drive_properties(0.0, 0.0)
            joint.set_max_velocity(FASTEST)
        grip = {shape.link: shape.friction for shape in model.shapes}
        for link in robot.get_links():
            link.set_linear_damping(0.0)
            link.set_angular_damping(0.0)
            for shape in link.get_collision_shapes():
                friction = 2 * grip.get(link.name, 0.0)
                shape.set_physical_material(sapien.physx.PhysxMaterial(friction, friction, 0.0))
                shape.set_collision_groups([1, 1, 1, 0])  # the third: shapes of one group do not touch each other
        robot.set_solver_position_iterations(ITERATIONS)
        robot.set_sleep_threshold(0.0)
        self._root = robot.get_root()
        self._com = self._root.get_cmass_local_pose().p

    def read_back(self) -> ReadBack:
        joints = {j.name: j for j in self._robot.get_active_joints()}
        limits = {name: (float(j.get_limits()[0][0]), float(j.get_limits()[0][1])) for name, j in joints.items()}
        armature = {name: float(np.ravel(j.get_armature())[0]) for name, j in joints.items()}
        return ReadBack({link.name: float(link.get_mass()) for link in self._robot.get_links()}, limits, armature)

    def place(self, q: Array, base: Base) -> None:
        robot, mine = self._robot, np.zeros(len(self._order), np.float32)
        mine[self._order] = q
        robot.set_qpos(mine)
        robot.set_qvel(np.zeros_like(mine))
        if self._model.floating:
            turn = to_world(base.quat, base.turn)
            robot.set_root_pose(self._sapien.Pose(base.pos, base.quat))
            robot.set_root_linear_velocity(shifted(base.velocity, turn, to_world(base.quat, self._com)))
            robot.set_root_angular_velocity(turn)

    def joints(self) -> tuple[Array, Array]:
        q, dq = self._robot.get_qpos(), self._robot.get_qvel()
        return q[self._order].astype(float), dq[self._order].astype(float)

    def base(self) -> Base:
        pose = self._robot.get_root_pose()
        quat, turn = np.array(pose.q, float), np.array(self._robot.get_root_angular_velocity(), float)
        linear = np.array(self._robot.get_root_linear_velocity(), float)  # of the centre of mass
        return Base(np.array(pose.p, float), quat, shifted(linear, turn, -to_world(quat, self._com)), in_body(quat, turn))

    def step(self, torque: Array) -> None:
        mine = np.zeros(len(self._order), np.float32)
        mine[self._order] = torque
        self._robot.set_qf(mine)
        self._scene.step()
