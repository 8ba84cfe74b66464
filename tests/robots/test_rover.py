"""Differential drive: true to the simulated rover."""

import math

import mujoco
import numpy as np
import pytest

from gapless.robots import differential_drive, load_robot
from gapless.robots.model import home_data


def test_the_rovers_lengths_are_those_of_its_class():
    lengths = differential_drive(load_robot("rover").model)
    assert (lengths.radius, lengths.track) == (0.033, 0.16)


@pytest.mark.parametrize(("v", "w"), [(0.15, 0.0), (0.0, 1.5), (0.1, 0.8), (-0.1, 0.5)])
def test_the_simulated_rover_drives_the_commanded_twist(v, w):
    model = load_robot("rover").model
    lengths, data = differential_drive(model), home_data(model)
    data.ctrl[:] = [(v - w * lengths.track / 2) / lengths.radius, (v + w * lengths.track / 2) / lengths.radius]
    mujoco.mj_step(model, data, 100)
    x, y, yaw, start = *pose(data), data.time
    mujoco.mj_step(model, data, 300)
    seconds = data.time - start
    slow, fast = lengths.radius * data.qvel[6:8]
    odometry_v, odometry_w = (slow + fast) / 2, (fast - slow) / lengths.track
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
