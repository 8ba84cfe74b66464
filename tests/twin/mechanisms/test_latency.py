"""Commands and readings are late by exactly what latency says."""

import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.twin import Latency, Sensors
from tests.twin.models import one_world, run, twin_of, wheel

SERVO = '<position name="axle" joint="axle" kp="20" kv="0.5"/>'


def chirp(t: float) -> float:
    return 0.3 * np.sin(8 * t + 4 * t * t)


@pytest.fixture(scope="module")
def twin():
    return twin_of(wheel(SERVO), Latency(), Sensors())


@pytest.mark.parametrize("periods", [1, 3, 7])
def test_a_delay_of_whole_periods_shifts_the_trajectory_by_that_many_samples(twin, periods):
    on_time = run(one_world(twin), chirp, 1.0)
    late = run(one_world(twin, {"latency.action": periods * twin.control_dt}), chirp, 1.0)
    np.testing.assert_allclose(late[periods:], on_time[:-periods], atol=1e-12)


def test_a_fraction_of_a_step_mixes_old_and_new_command(twin):
    worlds = one_world(twin, {"latency.action": 2.25 * twin.model.opt.timestep})
    worlds.step(np.array([[1.0]]))
    np.testing.assert_allclose(worlds.commands.control[0, :, 0], [0.0, 0.0, 0.75, 1.0])


def test_delay_acts_below_one_physics_step_too(twin):
    ends = [run(one_world(twin, {"latency.action": f * twin.model.opt.timestep}), chirp, 0.5)[-1, 0] for f in (0, 0.25, 0.5, 1)]
    slope = np.diff(ends) / [0.25, 0.25, 0.5]
    np.testing.assert_allclose(slope, slope[0], rtol=0.02)


def test_readings_show_the_state_that_long_ago(twin):
    steps = 6  # 1.5 control periods of four steps
    worlds = one_world(twin, {"latency.observation": steps * twin.model.opt.timestep})
    truth = []
    for k in range(60):
        worlds.step(np.array([[chirp(k * twin.control_dt)]]))
        truth.extend(worlds.sense._ring["qpos"][worlds.sense._newest, 0, :, 0])
        if len(truth) > steps:
            assert worlds.readings["q"][0, 0] == truth[-1 - steps]


def test_a_lost_command_leaves_the_last_one_in_force(twin):
    worlds = one_world(twin, {"latency.drop": 0.4})
    seen = []
    for k in range(2000):
        worlds.step(np.array([[float(k + 1)]]))
        seen.append(worlds.commands.control[0, -1, 0] == k + 1)
    assert np.mean(seen) == pytest.approx(0.6, abs=0.04)


def test_jitter_delays_by_half_of_it_on_average(twin):
    worlds = one_world(twin, {"latency.action": 0.001, "latency.jitter": 0.001})
    shares = []
    for k in range(2000):
        worlds.step(np.array([[float(k % 2)]]))
        new, old = float(k % 2), float((k + 1) % 2)
        shares.append(np.mean((worlds.commands.control[0, :, 0] - old) / (new - old)))
    delay = (1 - np.mean(shares)) * twin.control_dt
    assert delay == pytest.approx(0.0015, abs=0.00003)


def test_buses_can_differ():
    spec = wheel(SERVO)
    twin = twin_of(spec, Latency(buses={"only": "axle"}))
    assert "latency.action/only" in twin.space.names
    with pytest.raises(BadInput, match="exactly one bus"):
        twin_of(spec, Latency(buses={"none": "x*"}))


def test_a_delay_beyond_the_buffers_is_refused(twin):
    with pytest.raises(BadInput, match=r"latency\.action = 0\.2 s is outside its bounds"):
        one_world(twin, {"latency.action": 0.2})
