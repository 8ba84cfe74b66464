"""Films: bodies are where MuJoCo puts them, shapes stay small, and a page that has one needs nothing else."""

import json

import mujoco
import numpy as np
import pytest

from gapless.robots import BUILT_IN, load_robot, shapes
from gapless.twin import Twin
from gapless.worlds import film


@pytest.mark.parametrize("robot", BUILT_IN)
def test_every_built_in_robot_has_shapes_of_known_kinds_on_its_own_bodies(robot):
    model = load_robot(robot).model
    made = shapes(model)
    assert made
    assert {shape["kind"] for shape in made} <= {"box", "cylinder", "capsule", "ellipsoid", "mesh"}
    assert all(0 < shape["body"] < model.nbody for shape in made)
    assert len(json.dumps(made)) < 100_000


def test_bodies_are_where_mujoco_puts_them():
    twin = Twin.load("arm")
    time, q = np.arange(0, 2, 0.01), np.zeros((200, len(twin.joints)))
    q[:, 1] = np.linspace(0.0, -0.5, 200)
    made = film(twin, time, {"measured": q})
    data = mujoco.MjData(twin.model)
    for frame in (0, len(made.time) - 1):
        data.qpos[:] = twin.home
        data.qpos[[d.qpos for d in twin.drives]] = q[int(np.argmin(np.abs(time - made.time[frame])))]
        mujoco.mj_kinematics(twin.model, data)
        np.testing.assert_allclose(made.poses["measured"][frame, :, :3], data.xpos, atol=1e-12)
    assert np.diff(made.time).min() > 0.039


def test_what_was_not_measured_is_left_out_and_nothing_at_all_is_no_film():
    twin = Twin.load("bench")
    time, q = np.arange(0, 2, 0.04), np.zeros((50, 1))
    q[10:20] = np.nan
    assert np.isfinite(film(twin, time, {"measured": q}).poses["measured"]).all()
    assert film(twin, time, {"measured": np.full((50, 1), np.nan)}) is None


def test_a_mesh_becomes_a_rough_hull_that_looks_outward():
    rng = np.random.default_rng(0)
    points = rng.standard_normal((500, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    vertices = " ".join(f"{v:.5f}" for v in points.ravel())
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><asset><mesh name="ball" vertex="{vertices}"/></asset><worldbody><body><joint/>'
        '<geom type="mesh" mesh="ball"/></body></worldbody></mujoco>'
    )
    (ball,) = shapes(model)
    corners, faces = np.array(ball["points"]), np.array(ball["faces"])
    assert len(corners) <= 48
    normal = np.cross(corners[faces[:, 1]] - corners[faces[:, 0]], corners[faces[:, 2]] - corners[faces[:, 0]])
    assert ((normal * corners[faces[:, 0]]).sum(axis=1) > 0).all()


def test_a_link_without_shapes_gets_a_bone():
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><worldbody><body><joint/><inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/>'
        '<body pos="0 0 .5"><joint/><geom size=".1"/></body></body></worldbody></mujoco>'
    )
    assert [(s["body"], s["kind"]) for s in shapes(model)] == [(2, "ellipsoid"), (1, "capsule")]
