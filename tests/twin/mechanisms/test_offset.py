"""Offsets: a servo with a wrong zero stops beside the target and reports that it is there."""

import numpy as np
import pytest

from gapless.rotations import rotate_back
from gapless.twin import Offset, Twin
from tests.twin.models import one_world, run, twin_of, wheel


def test_a_servo_stops_beside_its_target_and_reports_the_target():
    twin = twin_of(wheel('<position name="axle" joint="axle" kp="20" kv="1"/>'), Offset())
    worlds = one_world(twin, {"offset.encoder/axle": 0.05})
    q = run(worlds, 0.4, 4.0)[-1, 0]
    assert q == pytest.approx(0.35, abs=1e-6)
    assert worlds.readings["q"][0, 0] == pytest.approx(0.4, abs=1e-6)


def test_a_torque_drive_is_not_misled_but_its_reading_is():
    worlds = one_world(twin_of(wheel(), Offset()), {"offset.encoder/axle": 0.05})
    worlds.step(np.zeros((1, 1)))
    assert worlds.qpos[0, 0] == 0.0
    assert worlds.readings["q"][0, 0] == 0.05


def test_a_tilted_imu_sees_gravity_tilted():
    twin = Twin.load("quadruped")
    worlds = one_world(twin, {"offset.imu_pitch": 0.1})
    down = rotate_back(worlds.readings["quat"], np.array([[0.0, 0.0, -1.0]]))[0]
    np.testing.assert_allclose(down, [np.sin(0.1), 0, -np.cos(0.1)], atol=1e-9)
