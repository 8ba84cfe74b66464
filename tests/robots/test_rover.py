"""Differential drive: exact both ways, and true to the simulated rover."""

import math

import mujoco
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.robots import load
from gapless.robots.model import home_data
from gapless.robots.rover import body_twist, drive, wheel_speeds

speeds = st.lists(st.tuples(st.floats(-5, 5), st.floats(-10, 10)), min_size=1, max_size=20)


@given(speeds, st.floats(0.01, 1), st.floats(0.05, 2))
def test_twist_and_wheel_speeds_are_inverses(pairs, radius, track):
    v, w = np.array(pairs).T
    back_v, back_w = body_twist(*wheel_speeds(v, w, radius, track), radius, track)
    np.testing.assert_allclose(back_v, v, atol=1e-12)
    np.testing.assert_allclose(back_w, w, atol=1e-10)


def test_the_rovers_lengths_are_those_of_its_class():
    lengths = drive(load("rover").model)
    assert (lengths.radius, lengths.track) == (0.033, 0.16)


def test_turning_left_runs_the_right_wheel_faster():
    left, right = wheel_speeds(0.0, 1.0, 0.033, 0.16)
    assert right == -left > 0


@pytest.mark.parametrize(("v", "w"), [(0.15, 0.0), (0.0, 1.5), (0.1, 0.8), (-0.1, 0.5)])
def test_the_simulated_rover_drives_the_commanded_twist(v, w):
    model = load("rover").model
    lengths, data = drive(model), home_data(model)
    data.ctrl[:] = wheel_speeds(v, w, lengths.radius, lengths.track)
    mujoco.mj_step(model, data, 100)
    x, y, yaw, start = *pose(data), data.time
    mujoco.mj_step(model, data, 300)
    seconds = data.time - start
    odometry_v, odometry_w = body_twist(*data.qvel[6:8], lengths.radius, lengths.track)
    turned = odometry_w * seconds
    chord = odometry_v * seconds * (np.sinc(turned / 2 / np.pi))
    end_x, end_y, end_yaw = pose(data)
    travelled = (end_x - x) * math.cos(yaw + turned / 2) + (end_y - y) * math.sin(yaw + turned / 2)
    assert travelled == pytest.approx(chord, rel=0.03, abs=2e-3)  # the pose follows the wheels
    assert math.remainder(end_yaw - yaw - turned, math.tau) == pytest.approx(0, abs=0.03 * abs(turned) + 1e-3)
    assert odometry_v == pytest.approx(v, rel=0.03, abs=1e-3)  # the wheels follow the command
    assert odometry_w == pytest.approx(w, rel=0.03, abs=1e-2)


def pose(data):
    return data.qpos[0], data.qpos[1], 2 * math.atan2(data.qpos[6], data.qpos[3])
