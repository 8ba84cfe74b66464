"""Armature adds to the inertia that a torque has to turn."""

import numpy as np
import pytest

from gapless.twin import Armature
from tests.twin.models import INERTIA, one_world, pendulum, run, twin_of, wheel


def test_acceleration_is_torque_over_both_inertias():
    twin = twin_of(wheel(joint='armature="0.01"'), Armature())
    v = run(one_world(twin, {"armature.inertia/axle": 0.03}), 0.2, 1.0)[-1, 1]
    assert v == pytest.approx(0.2 / (INERTIA + 0.03), rel=1e-9)


def test_a_pendulum_swings_slower_with_armature_by_the_closed_form():
    twin = twin_of(pendulum(), Armature())
    worlds = one_world(twin, {"armature.inertia/pivot": 0.1})
    worlds.reset(qpos=np.array([0.02]), redraw=False)
    q = run(worlds, 0.0, 10.0)[:, 0]
    crossings = np.flatnonzero((q[:-1] > 0) & (q[1:] <= 0))
    period = np.mean(np.diff(crossings)) * twin.control_dt
    assert period == pytest.approx(2 * np.pi * np.sqrt((0.25 + 0.1) / (1 * 9.81 * 0.5)), rel=2e-3)
