"""Friction against closed forms: decay, stopping time, sticking, breaking away, load and angle."""

import mujoco
import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.twin import Backlash, Friction, Twin, callback
from tests.twin.models import INERTIA, one_world, pendulum, run, twin_of, wheel


@pytest.fixture(scope="module")
def plain():
    return twin_of(wheel(), Friction())


@pytest.fixture(scope="module")
def full():
    return twin_of(wheel(), Friction(full=True))


def spin(worlds, v0: float) -> None:
    worlds.reset(qvel=np.array([v0]), redraw=False)


def test_viscous_friction_decays_exponentially(plain):
    worlds = one_world(plain, {"friction.viscous/axle": 0.05})
    spin(worlds, 10.0)
    v = run(worlds, 0.0, 1.0)[:, 1]
    t = plain.control_dt * np.arange(1, len(v) + 1)
    np.testing.assert_allclose(v, 10 * np.exp(-0.05 / INERTIA * t), rtol=2e-3)


@pytest.mark.parametrize("which", ["plain", "full"])
def test_coulomb_friction_slows_at_a_constant_rate_and_stops(which, request):
    worlds = one_world(request.getfixturevalue(which), {"friction.coulomb/axle": 0.1})
    spin(worlds, 4.0)
    v = run(worlds, 0.0, 1.2)[:, 1]
    t = worlds.twin.control_dt * np.arange(1, len(v) + 1)
    truth = np.maximum(4.0 - 0.1 / INERTIA * t, 0.0)
    np.testing.assert_allclose(v, truth, atol=0.02)
    assert abs(v[-1]) < 1e-3


def test_a_joint_sticks_below_its_friction_and_slides_above(plain):
    assert abs(run(one_world(plain, {"friction.coulomb/axle": 0.1}), 0.099, 1.0)[-1, 0]) < 1e-4
    moved = run(one_world(plain, {"friction.coulomb/axle": 0.1}), 0.12, 1.0)[-1, 0]
    assert moved == pytest.approx(0.5 * 0.02 / INERTIA, rel=0.02)


def test_stribeck_friction_holds_at_the_static_level_and_slides_at_the_kinetic(full):
    given = {"friction.coulomb/axle": 0.1, "friction.stribeck/axle": 0.05, "friction.stribeck_speed/axle": 0.1}
    breakaway = next(u for u in np.arange(0.10, 0.20, 0.002) if run(one_world(full, given), u, 0.5)[-1, 0] > 0.01)
    worlds = one_world(full, given)
    spin(worlds, 5.0)
    v = run(worlds, 0.0, 0.2)[:, 1]
    kinetic = INERTIA * (5.0 - v[-1]) / 0.2
    assert kinetic == pytest.approx(0.1, rel=0.01)
    assert breakaway / kinetic == pytest.approx(1.5, rel=0.03)


def test_load_friction_takes_its_share_of_the_motor_torque(full):
    given = {"friction.coulomb/axle": 0.02, "friction.load/axle": 0.2, "friction.load2/axle": 0.1}
    torque = 0.6
    v = run(one_world(full, given), torque, 0.5)[-1, 1]
    assert v == pytest.approx((torque - 0.02 - 0.2 * torque - 0.1 * torque**2) / INERTIA * 0.5, rel=0.01)


def test_angle_friction_grows_with_the_angle_from_home(full):
    given = {"friction.coulomb/axle": 0.05, "friction.angle/axle": 0.1, "friction.angle2/axle": 0.05}
    worlds = one_world(full, given)
    worlds.reset(qpos=np.array([0.3]), qvel=np.array([1.0]), redraw=False)
    energy = 0.5 * INERTIA * 1.0**2
    q = run(worlds, 0.0, 2.0)[-1, 0]
    work = np.polyval(np.polyint([0.05, 0.1, 0.05]), q) - np.polyval(np.polyint([0.05, 0.1, 0.05]), 0.3)
    assert work == pytest.approx(energy, rel=0.02)


def test_the_callback_leaves_other_models_alone(full):
    one_world(full)  # the callback is installed now
    spec = pendulum()
    spec.joint("pivot").frictionloss = 0.2
    model = spec.compile()
    data = mujoco.MjData(model)
    data.qpos[0] = 1.0
    mujoco.mj_step(model, data)
    assert data.efc_frictionloss[0] == 0.2


def test_a_joint_without_an_actuator_is_refused_by_name():
    spec = wheel(actuator="")
    with pytest.raises(BadInput, match="joint 'axle' has no actuator"):
        twin_of(spec, Friction(joints="axle"))
    with pytest.raises(BadInput, match="unknown joint 'axe'.*did you mean 'axle'"):
        twin_of(wheel(), Friction(joints="axe"))


@pytest.mark.parametrize("add", [[], [Backlash("*_thigh")]], ids=["alone", "with joints added"])
def test_angles_are_counted_from_the_home_pose(add):
    twin = Twin.load("quadruped", add=[*add, Friction(full=True)], in_air=True)
    calf = "FL_calf"
    assert twin.home[twin.model.joint(calf).qposadr[0]] == pytest.approx(-1.8, abs=0.2)
    worlds = one_world(twin, {f"friction.coulomb/{calf}": 0.5, f"friction.angle2/{calf}": 0.3})
    model, data = twin.compile(worlds.values[0]), mujoco.MjData(twin.model)
    data.qpos[:] = twin.home
    callback.install()
    mujoco.mj_step(model, data)
    rows = np.flatnonzero(data.efc_type[: data.nefc] == mujoco.mjtConstraint.mjCNSTR_FRICTION_DOF)
    row = next(r for r in rows if data.efc_id[r] == model.joint(calf).dofadr[0])
    assert data.efc_frictionloss[row] == pytest.approx(0.5)
