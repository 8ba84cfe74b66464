"""Flex: the link swings on the spring at its natural frequency."""

import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.twin import Flex
from tests.twin.models import INERTIA, one_world, twin_of, wheel


@pytest.mark.parametrize("stiffness", [50.0, 200.0])
def test_the_link_rings_at_the_frequency_of_spring_and_inertia(stiffness):
    # a motor held fast: huge gain and rotor
    spec = wheel('<position name="axle" joint="axle" kp="1e7" kv="1e4"/>', 'armature="100"', timestep=0.0002)
    twin = twin_of(spec, Flex(stiffness=100.0, damping=0.0))
    worlds = one_world(twin, {"flex.stiffness/axle": stiffness})
    worlds.reset(qpos=np.array([0.0, 0.05]), redraw=False)
    swing = []
    for _ in range(3000):
        worlds.step(np.zeros((1, 1)))
        swing.append(worlds.qpos[0, 1])
    swing = np.array(swing)
    crossings = np.flatnonzero((swing[:-1] > 0) & (swing[1:] <= 0))
    frequency = 1 / (np.mean(np.diff(crossings)) * twin.control_dt)
    assert frequency == pytest.approx(np.sqrt(stiffness / INERTIA) / (2 * np.pi), rel=0.01)


def test_damping_makes_it_decay():
    spec = wheel('<position name="axle" joint="axle" kp="1e7" kv="1e4"/>', 'armature="100"', timestep=0.0002)
    twin = twin_of(spec, Flex(stiffness=100.0, damping=0.0))
    worlds = one_world(twin, {"flex.damping/axle": 0.1})
    worlds.reset(qpos=np.array([0.0, 0.05]), redraw=False)
    peaks = []
    for _ in range(750):
        worlds.step(np.zeros((1, 1)))
        peaks.append(abs(worlds.qpos[0, 1]))
    t = 750 * twin.control_dt
    assert max(peaks[-150:]) == pytest.approx(0.05 * np.exp(-0.1 / (2 * INERTIA) * (t - 75 * twin.control_dt)), rel=0.25)


def test_a_spring_without_stiffness_is_refused():
    with pytest.raises(BadInput, match="positive stiffness"):
        twin_of(wheel(), Flex(stiffness=0.0))


def test_a_spring_too_stiff_for_the_time_step_is_refused_with_what_would_do():
    with pytest.raises(BadInput, match=r"rings faster than steps of 0\.0005 s can follow.*steps of at most"):
        twin_of(wheel(joint='armature="0.001"'), Flex(stiffness=1e6))
