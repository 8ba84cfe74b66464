"""Drake: a discrete multibody plant, contacts by its convex solver (SAP, lagged)."""

import dataclasses
import itertools
import logging
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from gapless.arrays import Array
from gapless.check.engines.canonical import Canonical
from gapless.check.engines.engine_world import Base, ReadBack, in_body, to_world
from gapless.check.engines.shapes import Shape
from gapless.errors import BadInput
from gapless.rotations import rotation_matrices

CORNER = 0.02
"""Radius of the balls that stand for a box's corners, as a share of its shortest half."""


class DrakeRobot:
    """One robot in a plant of its own."""

    def __init__(self, model: Canonical, timestep: float, folder: Path):
        from pydrake.common.eigen_geometry import Quaternion
        from pydrake.geometry import CollisionFilterDeclaration, GeometrySet, HalfSpace
        from pydrake.math import RigidTransform
        from pydrake.multibody.parsing import Parser
        from pydrake.multibody.plant import AddMultibodyPlantSceneGraph, CoulombFriction
        from pydrake.systems.analysis import Simulator
        from pydrake.systems.framework import DiagramBuilder

        logging.getLogger("drake").setLevel(logging.ERROR)  # it warns of deformable contact, of which there is none
        single = {s.kind for s in model.shapes} & {"cylinder", "mesh"}
        self.lacks = tuple(f"in Drake a {kind} touches the floor at one point at a time" for kind in sorted(single))
        self._quaternion, self._transform = Quaternion, RigidTransform
        builder = DiagramBuilder()
        self._plant, scene = AddMultibodyPlantSceneGraph(builder, timestep)
        plant = self._plant
        path = folder / "robot_drake.urdf"
        path.write_text(_with_friction(model))
        (instance,) = Parser(plant).AddModels(str(path))
        if not model.floating:
            plant.WeldFrames(plant.world_frame(), plant.GetFrameByName(model.links[0].name, instance))
        most = max([s.friction for s in model.shapes], default=1.0)
        ground = RigidTransform([0.0, 0.0, model.floor])
        friction = CoulombFriction(most, most)
        plant.RegisterCollisionGeometry(plant.world_body(), ground, HalfSpace(), "floor", friction)
        plant.mutable_gravity_field().set_gravity_vector(model.gravity)
        missing = [j.name for j in model.joints if not plant.HasJointNamed(j.name, instance)]
        if missing:
            raise BadInput(f"Drake lacks the joints {', '.join(missing)}")
        for j in model.joints:
            actuator = plant.GetJointActuatorByName(j.name, instance)
            actuator.set_default_rotor_inertia(j.armature)
            actuator.set_default_gear_ratio(1.0)
        plant.Finalize()
        bodies = [plant.get_body(b) for b in plant.GetBodyIndices(instance)]
        own = GeometrySet([g for b in bodies for g in plant.GetCollisionGeometriesForBody(b)])
        scene.collision_filter_manager().Apply(CollisionFilterDeclaration().ExcludeWithin(own))
        self._diagram = builder.Build()
        self._simulator = Simulator(self._diagram)
        self._context = plant.GetMyMutableContextFromRoot(self._simulator.get_mutable_context())
        self._model, self._bodies, self._instance, self._dt = model, bodies, instance, timestep
        joints = [plant.GetJointByName(j.name, instance) for j in model.joints]
        self._places = [j.position_start() for j in joints]
        self._dofs = [j.velocity_start() for j in joints]
        self._inputs = [plant.GetJointActuatorByName(j.name, instance).input_start() for j in model.joints]
        self._root = plant.GetBodyByName(model.links[0].name, instance)
        self._port = plant.get_actuation_input_port()
        self._port.FixValue(self._context, np.zeros(plant.num_actuators()))
        self._simulator.Initialize()

    def read_back(self) -> ReadBack:
        plant = self._plant
        limits, armature = {}, {}
        for j in self._model.joints:
            joint = plant.GetJointByName(j.name, self._instance)
            limits[j.name] = (float(joint.position_lower_limits()[0]), float(joint.position_upper_limits()[0]))
            armature[j.name] = float(plant.GetJointActuatorByName(j.name, self._instance).default_reflected_inertia())
        return ReadBack({b.name(): float(b.default_mass()) for b in self._bodies}, limits, armature)

    def place(self, q: Array, base: Base) -> None:
        plant, context = self._plant, self._context
        positions, velocities = plant.GetPositions(context), np.zeros(plant.num_velocities())
        positions[self._places] = q
        plant.SetPositions(context, positions)
        plant.SetVelocities(context, velocities)
        if self._model.floating:
            from pydrake.multibody.math import SpatialVelocity

            pose = self._transform(self._quaternion(base.quat / np.linalg.norm(base.quat)), base.pos)
            plant.SetFreeBodyPose(context, self._root, pose)
            moves = SpatialVelocity(to_world(base.quat, base.turn), base.velocity)
            plant.SetFreeBodySpatialVelocity(context=context, body=self._root, V_JpJc=moves)
        self._simulator.Initialize()

    def joints(self) -> tuple[Array, Array]:
        return self._plant.GetPositions(self._context)[self._places], self._plant.GetVelocities(self._context)[self._dofs]

    def base(self) -> Base:
        pose = self._plant.EvalBodyPoseInWorld(self._context, self._root)
        moves = self._plant.EvalBodySpatialVelocityInWorld(self._context, self._root)
        quat = pose.rotation().ToQuaternion().wxyz()
        return Base(pose.translation(), quat, moves.translational(), in_body(quat, moves.rotational()))

    def step(self, torque: Array) -> None:
        inputs = np.zeros(self._plant.num_actuators())
        inputs[self._inputs] = torque
        self._port.FixValue(self._context, inputs)
        self._simulator.AdvanceTo(self._simulator.get_context().get_time() + self._dt)


def _at_corners(shape: Shape) -> list[Shape]:
    """A box as small balls at its corners: Drake lets two shapes touch at one point only, and a box would rock."""
    if shape.kind != "box":
        return [shape]
    half = np.array([float(x) for x in shape.attributes["size"].split()]) / 2
    radius = CORNER * half.min()
    axes = rotation_matrices(shape.quat[None])[0]
    corners = [np.array(signs) * (half - radius) for signs in itertools.product((-1, 1), repeat=3)]
    ball = {"radius": f"{radius:.9g}"}
    return [
        dataclasses.replace(shape, name=f"{shape.name}_{i}", kind="sphere", attributes=ball, pos=shape.pos + axes @ corner)
        for i, corner in enumerate(corners)
    ]


def _with_friction(model: Canonical) -> str:
    """The URDF with Drake's friction at each shape: its harmonic mean with the floor's is the pair's."""
    model = dataclasses.replace(model, shapes=tuple(part for shape in model.shapes for part in _at_corners(shape)))
    most = max([s.friction for s in model.shapes], default=1.0)
    by_name = {s.name: s for s in model.shapes}
    ElementTree.register_namespace("drake", "http://drake.mit.edu")
    robot = ElementTree.fromstring(model.urdf())
    for collision in robot.iter("collision"):
        shape = by_name[collision.get("name", "")]
        mine = shape.friction * most / max(2 * most - shape.friction, 1e-9)
        properties = ElementTree.SubElement(collision, "{http://drake.mit.edu}proximity_properties")
        for name in ("mu_static", "mu_dynamic"):
            ElementTree.SubElement(properties, f"{{http://drake.mit.edu}}{name}", value=f"{mine:.9g}")
        for mesh in collision.iter("mesh"):
            ElementTree.SubElement(mesh, "{http://drake.mit.edu}declare_convex")
    return ElementTree.tostring(robot, encoding="unicode")
