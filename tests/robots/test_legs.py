"""Feet by our own kinematics, against the engine's."""

import mujoco
import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.robots import find_legs, legs_of
from gapless.twin import Flex, Twin, defaults


@pytest.fixture(scope="module", params=["quadruped", "biped"])
def twin(request):
    return Twin.load(request.param)


def random_states(twin, n, seed=0):
    rng = np.random.default_rng(seed)
    qpos = np.tile(twin.home, (n, 1))
    qpos[:, 7:] += rng.uniform(-0.5, 0.5, (n, len(twin.joints)))
    quat = rng.standard_normal((n, 4)) * 0.2 + [1, 0, 0, 0]
    qpos[:, 3:7] = quat / np.linalg.norm(quat, axis=1, keepdims=True)
    return qpos, rng.standard_normal((n, twin.model.nv))


def test_feet_are_where_the_engine_has_them_and_move_as_it_says(twin):
    legs, model = legs_of(twin), twin.model
    qpos, qvel = random_states(twin, 20)
    position, velocity, height = legs.feet(qpos[:, 7:], qvel[:, 6:], qpos[:, 3:7])
    data = mujoco.MjData(model)
    for i in range(len(qpos)):
        data.qpos[:], data.qvel[:] = qpos[i], qvel[i]
        mujoco.mj_forward(model, data)
        rotation = data.xmat[1].reshape(3, 3)
        for f, name in enumerate(legs.names):
            geom = next(
                g
                for g in range(model.ngeom)
                if model.geom(g).name.endswith("foot") and model.geom_bodyid[g] == model.body(name).id
            )
            np.testing.assert_allclose(rotation @ position[i, f] + qpos[i, :3], data.geom_xpos[geom], atol=1e-12)
            jacobian = np.zeros((3, model.nv))
            mujoco.mj_jac(model, data, jacobian, None, data.geom_xpos[geom], model.body(name).id)
            np.testing.assert_allclose(rotation @ velocity[i, f], jacobian[:, 6:] @ qvel[i, 6:], atol=1e-12)
            # no point of the foot's box or sphere is lower than this
            size, corner = model.geom_size[geom], data.geom_xmat[geom].reshape(3, 3)
            reach = size[0] if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_SPHERE else np.abs(corner[2] * size).sum()
            assert height[i, f] + qpos[i, 2] == pytest.approx(data.geom_xpos[geom, 2] - reach, abs=1e-12)


def test_a_body_that_moves_over_feet_that_stand_is_seen_to_move(twin):
    legs, model = legs_of(twin), twin.model
    data, wanted = mujoco.MjData(model), np.array([0.3, -0.1, 0.05])
    data.qpos[:] = twin.home
    mujoco.mj_forward(model, data)
    # joint velocities that keep the feet on the spot while the base moves, by the engine's Jacobian
    gyro, rows, right = np.array([0.1, 0.2, -0.3]), [], []
    position, _, _ = legs.feet(data.qpos[None, 7:], np.zeros((1, len(twin.joints))), data.qpos[None, 3:7])
    for f, name in enumerate(legs.names):
        jacobian = np.zeros((3, model.nv))
        mujoco.mj_jac(model, data, jacobian, None, position[0, f] + data.qpos[:3], model.body(name).id)
        rows.append(jacobian[:, 6:])
        right.append(-wanted - np.cross(gyro, position[0, f]))
    dq = np.linalg.lstsq(np.concatenate(rows), np.concatenate(right), rcond=None)[0]
    estimate = legs.velocity(data.qpos[None, 7:], dq[None], data.qpos[None, 3:7], gyro[None])
    np.testing.assert_allclose(estimate[0], wanted, atol=1e-9)


def test_arms_and_rovers_have_no_legs():
    for name in ("arm", "rover", "bench"):
        twin = Twin.load(name)
        assert find_legs(twin) is None
        with pytest.raises(BadInput, match=f"{name} has no feet"):
            legs_of(twin)


def test_a_leg_whose_joints_have_no_limits_is_still_a_leg(twin):
    spec = twin.spec.copy()
    for joint in spec.joints:
        joint.limited = mujoco.mjtLimited.mjLIMITED_FALSE
    assert legs_of(Twin.build(spec, defaults(), 0.02, "free")).names == legs_of(twin).names


def test_a_soft_leg_is_still_a_leg(twin):
    soft = Twin.build(twin.spec.copy(), [*defaults(), Flex(stiffness=10.0)], 0.02, "soft")
    assert legs_of(soft).names == legs_of(twin).names


WHEELS = {
    "caster": '<joint type="hinge" axis="0 0 1"/><geom size=".05" pos="-.05 0 -.1"/>',
    "ellipsoid": '<joint name="wheel" axis="0 1 0"/><geom type="ellipsoid" size=".1 .02 .1"/>',
    "lugs": '<joint name="wheel" axis="0 1 0"/><geom type="cylinder" size=".1 .02" zaxis="0 1 0"/>'
    '<geom type="box" size=".01 .02 .01" pos="0 0 -.1"/>',
}


@pytest.mark.parametrize("wheel", WHEELS.values(), ids=WHEELS)
def test_what_rolls_is_no_leg(wheel, tmp_path):
    wheels = "".join(f'<body pos=".2 {y} .1">{wheel.replace("wheel", f"wheel{y}")}</body>' for y in (-0.2, 0.2))
    drives = "".join(f'<velocity joint="wheel{y}" kv="1"/>' for y in (-0.2, 0.2)) if "wheel" in wheel else ""
    body = f'<body pos="0 0 .1"><freejoint/><geom type="box" size=".2 .15 .03"/>{wheels}</body>'
    floor = '<geom type="plane" size="0 0 1"/>'
    (tmp_path / "rover.xml").write_text(f"<mujoco><worldbody>{floor}{body}</worldbody><actuator>{drives}</actuator></mujoco>")
    assert find_legs(Twin.load(tmp_path / "rover.xml")) is None
