"""Motors: strength, limits, the torque-speed line, stall torque, heat."""

import mujoco
import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.twin import DC, Gains, Motor
from tests.twin.models import INERTIA, one_world, run, twin_of, wheel

STRONG = '<position name="axle" joint="axle" kp="1000" kv="1" forcerange="-3 3"/>'


def torque(twin, given, speed: float) -> float:
    """Torque at full command and a speed, from the engine."""
    model = twin.compile(twin.space.values(given))
    data = mujoco.MjData(model)
    data.qvel[0], data.ctrl[0] = speed, 100.0
    mujoco.mj_forward(model, data)
    return float(data.qfrc_actuator[0])


def test_strength_scales_torque_and_its_limit():
    twin = twin_of(wheel('<motor name="axle" joint="axle"/>'), Motor())
    v = run(one_world(twin, {"motor.strength/axle": 0.7}), 0.5, 1.0)[-1, 1]
    assert v == pytest.approx(0.7 * 0.5 / INERTIA, rel=1e-9)
    assert torque(twin_of(wheel(STRONG), Motor()), {"motor.strength/axle": 0.5}, 0.0) == pytest.approx(1.5)


def test_torque_stops_at_the_limit():
    assert torque(twin_of(wheel(STRONG), Motor()), {"motor.limit/axle": 2.2}, 0.0) == pytest.approx(2.2)


@pytest.mark.parametrize("no_load", [15.0, 30.0])
def test_the_torque_speed_line_is_straight_and_ends_at_the_no_load_speed(no_load):
    twin = twin_of(wheel(STRONG), Gains(), Motor(no_load_speed=20.0))
    given = {"motor.no_load_speed/axle": no_load}
    assert torque(twin, given, 0.0) == pytest.approx(3.0)
    assert torque(twin, given, no_load / 2) == pytest.approx(1.5)
    assert torque(twin, given, no_load) == pytest.approx(0.0, abs=1e-9)
    assert torque(twin, given, 1.2 * no_load) == pytest.approx(-0.6)


def test_a_wheel_at_full_command_reaches_the_no_load_speed_and_no_more():
    twin = twin_of(wheel(STRONG), Gains(), Motor(no_load_speed=20.0))
    v = run(one_world(twin), 1000.0, 2.0)[:, 1]
    assert v[-1] == pytest.approx(20.0, rel=1e-3)
    assert v.max() < 20.0 * 1.001


def test_stall_torque_is_kt_v_over_r():
    dc = DC(kt=0.36, resistance=5.8, voltage=7.4)
    twin = twin_of(wheel('<position name="axle" joint="axle" kp="1000" kv="1"/>'), Gains(), Motor(dc=dc))
    assert torque(twin, {}, 0.0) == pytest.approx(0.36 * 7.4 / 5.8)
    assert torque(twin, {"motor.voltage/axle": 6.0}, 0.0) == pytest.approx(0.36 * 6.0 / 5.8)
    given = {"motor.kt/axle": 0.3, "motor.resistance/axle": 4.0}
    assert torque(twin, given, 0.0) == pytest.approx(0.3 * 7.4 / 4.0)
    assert torque(twin, given, 7.4 / 0.3) == pytest.approx(0.0, abs=1e-9)


def test_a_held_motor_heats_with_its_time_constant_and_weakens_as_copper_does():
    dc = DC(kt=0.36, resistance=5.8, voltage=7.4, thermal_resistance=4.0, thermal_capacity=5.0)
    spec = wheel(
        '<position name="axle" joint="axle" kp="1000" kv="1"/>', joint='range="-1e-3 1e-3" limited="true"', timestep=0.002
    )
    twin = twin_of(spec, Gains(), Motor(dc=dc))
    hot = 8.0  # K/W, twice the nominal
    model = twin.compile(twin.space.values({"motor.heating/axle": hot}))
    data = mujoco.MjData(model)
    data.ctrl[0] = 100.0
    torque, rise = [], []
    for _ in range(round(400 / model.opt.timestep)):
        mujoco.mj_step(model, data)
        torque.append(data.qfrc_actuator[0])
        rise.append(data.act[0])
    assert torque[0] == pytest.approx(0.36 * 7.4 / 5.8, rel=1e-3)
    # at rest all power heats the winding: with r = R (1 + a T), T' = (V^2 / r - T / Rth) / C; small T' at the end
    final, copper = rise[-1], 0.00393
    assert final == pytest.approx(hot * 7.4**2 / (5.8 * (1 + copper * final)), rel=1e-2)
    assert torque[-1] == pytest.approx(torque[0] / (1 + copper * final), rel=1e-3)
    # the first rise is that of a time constant of Rth C: T' = (V^2 / R) / C
    assert rise[round(0.5 / model.opt.timestep)] == pytest.approx(7.4**2 / 5.8 / 5.0 * 0.5, rel=0.03)


def test_a_torque_speed_line_needs_a_servo_and_a_limit():
    with pytest.raises(BadInput, match="needs a position servo on axle"):
        twin_of(wheel(), Motor(no_load_speed=20.0))
    with pytest.raises(BadInput, match="needs a torque limit on axle"):
        twin_of(wheel('<position name="axle" joint="axle" kp="10"/>'), Motor(no_load_speed=20.0))


def test_gains_still_count_behind_a_dc_motor():
    twin = twin_of(
        wheel('<position name="axle" joint="axle" kp="1" kv="0" forcerange="-3 3"/>'), Gains(), Motor(no_load_speed=20.0)
    )
    model = twin.compile(twin.space.values({"gains.kp/axle": 2.0}))
    data = mujoco.MjData(model)
    data.ctrl[0] = 0.5
    mujoco.mj_forward(model, data)
    assert data.qfrc_actuator[0] == pytest.approx(1.0)
    np.testing.assert_allclose(model.actuator_gainprm[0, 4], 2.0)


def test_a_voltage_controlled_servo_loses_torque_to_back_emf_at_any_command():
    dc = DC(kt=0.36, resistance=5.8, voltage=7.4, voltage_control=True)
    twin = twin_of(wheel('<position name="axle" joint="axle" kp="0.5" kv="0"/>'), Gains(), Motor(dc=dc))
    model = twin.compile(twin.space.nominal)
    data = mujoco.MjData(model)
    for error, speed in ((0.4, 0.0), (0.4, 3.0), (-1.0, 2.0), (9.0, 5.0)):
        data.qvel[0], data.ctrl[0] = speed, error
        mujoco.mj_forward(model, data)
        duty = np.clip(0.5 * error, -1, 1)
        assert data.qfrc_actuator[0] == pytest.approx(0.36 / 5.8 * (7.4 * duty - 0.36 * speed)), (error, speed)
