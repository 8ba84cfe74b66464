"""Disturbances: a cable is a spring, wind drags."""

import numpy as np
import pytest

from gapless.twin import Disturbance
from tests.twin.models import INERTIA, one_world, run, twin_of, wheel


def test_a_cable_balances_torque_as_a_spring():
    twin = twin_of(wheel(joint='damping="0.5"'), Disturbance())
    q = run(one_world(twin, {"disturbance.cable/axle": 0.8}), 0.2, 10.0)[-1, 0]
    assert q == pytest.approx(0.2 / 0.8, rel=1e-3)


def test_a_cable_swings_at_its_frequency():
    twin = twin_of(wheel(), Disturbance())
    worlds = one_world(twin, {"disturbance.cable/axle": 2.0})
    worlds.reset(qpos=np.array([0.1]), redraw=False)
    q = run(worlds, 0.0, 3.0)[:, 0]
    crossings = np.flatnonzero((q[:-1] > 0) & (q[1:] <= 0))
    period = np.mean(np.diff(crossings)) * twin.control_dt
    assert period == pytest.approx(2 * np.pi * np.sqrt(INERTIA / 2.0), rel=0.01)


def test_wind_carries_a_ball_along_and_calm_air_does_not():
    import mujoco

    ball = """
    <mujoco><option gravity="0 0 0" timestep="0.005"/><worldbody><body name="ball"><freejoint name="root"/>
    <geom size="0.2" mass="0.1"/></body></worldbody></mujoco>"""
    twin = twin_of(mujoco.MjSpec.from_string(ball), Disturbance(wind=True), control_dt=0.02)
    speeds = []
    for wind in (0.0, 5.0):
        worlds = one_world(twin, {"disturbance.wind_x": wind})
        for _ in range(100):
            worlds.step(np.zeros((1, 0)))
        speeds.append(worlds.qvel[0, 0])
    assert speeds[0] == 0.0
    assert 1.0 < speeds[1] < 5.0
