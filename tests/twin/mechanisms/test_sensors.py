"""Sensors: the statistics of readings are those that were set."""

import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.twin import Latency, Point, Sensors, Twin
from gapless.worlds import Worlds
from tests.twin.models import one_world, twin_of, wheel


@pytest.fixture(scope="module")
def quadruped() -> Twin:
    return Twin.load("quadruped")


def still_readings(
    twin: Twin, given: dict[str, float], periods: int, signals=("q", "dq", "tau", "quat", "gyro")
) -> dict[str, np.ndarray]:
    worlds = Worlds(twin, 50, Point(twin.space, twin.space.values(given)), np.random.default_rng(1), signals=signals)
    seen = {s: [] for s in signals}
    for _ in range(periods):
        before = worlds.qpos.copy()
        worlds.sense.update(worlds.path, worlds._noise)  # read again without moving
        assert (before == worlds.qpos).all()
        for s in signals:
            seen[s].append(worlds.readings[s].copy())
    return {s: np.array(v) for s, v in seen.items()}


def test_noise_has_the_standard_deviation_that_was_set(quadruped):
    given = {
        "sensors.noise_q": 0.01,
        "sensors.noise_dq": 0.2,
        "sensors.noise_tau": 0.5,
        "sensors.noise_gyro": 0.03,
        "sensors.noise_tilt": 0.02,
    }
    seen = still_readings(quadruped, given, 100)
    for signal, sigma in (("q", 0.01), ("dq", 0.2), ("tau", 0.5), ("gyro", 0.03)):
        assert seen[signal].std(axis=0).mean() == pytest.approx(sigma, rel=0.03), signal
    angle = 2 * np.arccos(np.clip(np.abs(seen["quat"][..., 0]), 0, 1))
    assert np.sqrt((angle**2).mean()) == pytest.approx(0.02 * np.sqrt(3), rel=0.05)


def test_bias_and_drift_of_the_gyro(quadruped):
    seen = still_readings(quadruped, {"sensors.bias_gyro_x": 0.05, "sensors.drift_gyro": 0.01}, 400)["gyro"]
    assert seen[0, :, 0].mean() == pytest.approx(0.05, abs=0.002)
    spread = (seen[-1, :, 1:] - seen[0, :, 1:]).std()
    assert spread == pytest.approx(0.01 * np.sqrt(400 * quadruped.control_dt), rel=0.2)


def test_quantised_readings_are_multiples_of_the_step(quadruped):
    seen = still_readings(quadruped, {"sensors.quantum_q": 0.005, "sensors.noise_q": 0.01}, 5)["q"]
    np.testing.assert_allclose(seen / 0.005, np.rint(seen / 0.005), atol=1e-6)
    assert len(np.unique(seen)) > 3


def test_joints_read_one_after_the_other_are_skewed_in_time():
    twin = Twin.load("arm")
    worlds = one_world(twin, {"sensors.skew": 0.001})
    rng = np.random.default_rng(0)
    command = worlds.home_command + rng.uniform(-0.3, 0.3, len(worlds.home_command))
    worlds.step(command[None])
    worlds.step(command[None])
    ring, newest = worlds.sense._ring["qpos"], worlds.sense._newest
    step = twin.model.opt.timestep
    for j, d in enumerate(twin.drives):
        late = j * 0.001 / step
        now, before = ring[newest, 0, -1 - int(late), d.qpos], ring[newest, 0, -2 - int(late), d.qpos]
        assert worlds.readings["q"][0, j] == pytest.approx(now + (late - int(late)) * (before - now), abs=1e-12)


def test_a_lost_frame_shows_the_one_before():
    worlds = one_world(twin_of(wheel(), Sensors(), Latency()), {"sensors.drop": 0.3})
    worlds.reset(qvel=np.array([1.0]), redraw=False)
    same, last = 0, None
    for _ in range(2000):
        q = worlds.step(np.zeros((1, 1)))["q"][0, 0]
        same += q == last
        last = q
    assert same / 2000 == pytest.approx(0.3, abs=0.04)


def test_an_accelerometer_at_rest_reads_gravity_and_falling_reads_none():
    twin = Twin.load("quadruped", add=[Sensors(accelerometer=True)])
    worlds = one_world(twin, signals=("acc", "quat"))
    np.testing.assert_allclose(worlds.readings["acc"][0], [0, 0, 9.81], atol=1e-6)
    tilted = one_world(twin, {"contact.slope_pitch": 0.4, "contact.slope_roll": 0.3}, signals=("acc",))
    gravity = tilted.engine.field("opt.gravity")[0]
    np.testing.assert_allclose(tilted.readings["acc"][0], -gravity, atol=1e-6)
    worlds.reset(qpos=worlds.home + np.eye(twin.model.nq)[2] * 2.0, redraw=False)
    for _ in range(5):
        worlds.step(worlds.home_command)
    assert np.linalg.norm(worlds.readings["acc"][0]) < 1.0


def test_signals_that_cannot_be_read_are_refused(quadruped):
    with pytest.raises(BadInput, match="unknown signal 'qq'"):
        Worlds(quadruped, 1, signals=("qq",))
    with pytest.raises(BadInput, match="no IMU"):
        Worlds(Twin.load("bench"), 1, signals=("gyro",))
    with pytest.raises(BadInput, match="accelerometer"):
        Worlds(quadruped, 1, signals=("acc",))
    with pytest.raises(BadInput, match="fixed base"):
        Twin.load("bench", add=[Sensors(accelerometer=True)])
