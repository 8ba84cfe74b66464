"""Backlash: the link stays put while the motor crosses the play."""

import numpy as np
import pytest

from gapless.twin import Backlash
from tests.twin.models import one_world, twin_of, wheel

SERVO = '<position name="axle" joint="axle" kp="200" kv="2"/>'


@pytest.mark.parametrize("width", [0.02, 0.06])
def test_the_dead_band_on_reversal_is_the_width(width):
    spec = wheel(SERVO, 'armature="0.005"')
    spec.option.viscosity = 2.0  # the link turns in syrup, so it stays where it is while the motor crosses the play
    twin = twin_of(spec, Backlash(width=0.03))
    worlds = one_world(twin, {"backlash.width/axle": width})
    motor, link = [], []
    for k in range(4000):
        t = k * twin.control_dt
        worlds.step(np.array([[0.5 * np.sin(0.8 * t)]]))
        motor.append(worlds.qpos[0, 0])
        link.append(worlds.qpos[0].sum())
    lag = np.array(motor)[1500:] - np.array(link)[1500:]
    assert np.ptp(lag) == pytest.approx(width, abs=0.002)


def test_no_play_means_one_stiff_joint():
    twin = twin_of(wheel(SERVO, 'armature="0.005"'), Backlash())
    worlds = one_world(twin)
    gap = 0.0
    for k in range(1000):
        worlds.step(np.array([[0.3 * np.sin(5 * k * twin.control_dt)]]))
        gap = max(gap, abs(worlds.qpos[0, 1]))
    assert gap < 5e-4


def test_the_teeth_are_as_hard_as_the_time_step_allows_also_where_it_is_changed_later():
    spec, fine = (wheel(SERVO, 'armature="0.005"') for _ in range(2))
    spec.option.timestep, fine.option.timestep = 0.004, 0.001
    later, at_once = twin_of(spec, Backlash(width=0.03)).at_step(0.001), twin_of(fine, Backlash(width=0.03))
    np.testing.assert_array_equal(later.model.jnt_solref, at_once.model.jnt_solref)
