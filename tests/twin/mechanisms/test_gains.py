"""Servo gains: what holds a weight, what damps a swing, what turns a torque drive into a servo."""

import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.twin import Gains
from tests.twin.models import INERTIA, one_world, pendulum, run, twin_of, wheel


@pytest.mark.parametrize("kp", [20.0, 80.0])
def test_a_servo_sags_until_stiffness_balances_gravity(kp):
    twin = twin_of(pendulum('<position name="pivot" joint="pivot" kp="50" kv="5"/>'), Gains())
    q = run(one_world(twin, {"gains.kp/pivot": kp}), 1.0, 5.0)[-1, 0]
    assert kp * (1.0 - q) == pytest.approx(1 * 9.81 * 0.5 * np.sin(q), rel=1e-6)


def test_damping_gives_the_closed_form_decay():
    twin = twin_of(wheel('<position name="axle" joint="axle" kp="20" kv="0.1"/>'), Gains())
    kp, kd = 30.0, 0.2
    worlds = one_world(twin, {"gains.kp/axle": kp, "gains.kd/axle": kd})
    worlds.reset(qpos=np.array([0.5]), redraw=False)
    q = run(worlds, 0.0, 0.4)[:, 0]
    t = twin.control_dt * np.arange(1, len(q) + 1)
    decay, natural = kd / (2 * INERTIA), np.sqrt(kp / INERTIA)
    damped = np.sqrt(natural**2 - decay**2)
    truth = 0.5 * np.exp(-decay * t) * (np.cos(damped * t) + decay / damped * np.sin(damped * t))
    np.testing.assert_allclose(q, truth, atol=0.5 * 0.03)


def test_stated_gains_turn_a_torque_drive_into_a_servo():
    spec = wheel('<motor name="axle" joint="axle" ctrlrange="-2 2"/>')
    twin = twin_of(spec, Gains(kp={"*": 16}, kd={"*": 0.5}, unit=1.25))
    assert twin.space.nominal.tolist() == [20.0, 0.625]
    assert twin.model.actuator_forcerange[0].tolist() == [-2.0, 2.0]
    q = run(one_world(twin), 0.7, 3.0)[-1, 0]
    assert q == pytest.approx(0.7, abs=1e-6)


def test_a_torque_drive_without_stated_gains_has_none():
    assert len(twin_of(wheel(), Gains()).space) == 0


def test_a_firmware_rounds_commands_to_its_step():
    twin = twin_of(wheel('<position name="axle" joint="axle" kp="20" kv="1"/>'), Gains(quantum=0.25))
    assert run(one_world(twin), 0.6, 3.0)[-1, 0] == pytest.approx(0.5, abs=1e-6)


def test_velocity_servos_have_a_speed_gain():
    twin = twin_of(wheel('<velocity name="axle" joint="axle" kv="0.3"/>'), Gains())
    assert twin.space.names == ("gains.kd/axle",)
    kd = 0.6
    v = run(one_world(twin, {"gains.kd/axle": kd}), 2.0, 0.05)[:, 1]
    t = twin.control_dt * np.arange(1, len(v) + 1)
    np.testing.assert_allclose(v, 2.0 * (1 - np.exp(-kd / INERTIA * t)), rtol=0.03)


def test_gains_for_a_joint_that_is_not_there_name_the_nearest():
    with pytest.raises(BadInput, match="did you mean 'axle'"):
        twin_of(wheel(), Gains(kp={"axel": 3.0}))
