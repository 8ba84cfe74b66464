"""Slopes of everything at a fit, on a robot whose numbers are known."""

from dataclasses import replace

import numpy as np
import pytest

from gapless.identify.sensitivity import Sensitivity, sensitivity
from gapless.identify.uncertainty import belief, heavier
from gapless.logs import Log
from gapless.measure import split_logs
from gapless.twin import Twin
from gapless.worlds import StandIn, StandInSpec, build_standin, plan_motion, record

SENSORS = {"noise_q": 0.0005, "noise_tau": 0.02}
FITTED = (
    "latency.action",
    "gains.kp/*",
    "gains.kd/*",
    "motor.limit/*",
    "friction.viscous/*",
    "friction.coulomb/*",
    "armature.*",
)


@pytest.fixture(scope="module")
def recorded() -> Log:
    """A servo whose arm has 0.8 of the mass that the model says, and whose torque saturates."""
    spec = StandInSpec("bench", 1, tolerance=0.0, change={"inertia.mass/*": "x0.8"}, sensors=SENSORS)
    stand_in = StandIn(spec)
    return record(stand_in, plan_motion("rich", build_standin(spec), 6.0, np.random.default_rng(1)), stand_in.signal, "log")


def sensed(log: Log, fitted: dict[str, float]) -> Sensitivity:
    """At the model as given, with some numbers so many times as large."""
    twin = Twin.load("bench")
    values = twin.space.nominal.copy()
    for name, value in fitted.items():
        values[twin.space.names.index(name)] *= value
    return sensitivity(twin, values, [log], split_logs([log], twin.joints), ("q",), {}, {})


def stronger(times: float) -> dict[str, float]:
    """Everything of the drive: with 1 / 0.8 it moves the arm just as the robot's did."""
    twin = Twin.load("bench")
    return {name: times for pattern in FITTED[1:] for name in twin.space.match(pattern)}


def test_no_position_shows_a_factor_of_all_torques_and_masses_and_measured_torque_does(recorded):
    every, space = sensed(recorded, stronger(1.25)), Twin.load("bench").space.select(*FITTED)
    assert every.torque is not None
    logarithm, sd = heavier(space, every) or (np.nan, np.nan)
    assert logarithm == pytest.approx(np.log(0.8), abs=1.645 * sd)
    assert sd < 0.15  # masses off by a real mismatch: 0.18
    centre = space.to_scaled(np.array([p.nominal * (1.25 if p.name != "latency.action" else 1.0) for p in space.parameters]))
    spread = np.sqrt(np.diag(belief(space, centre, every).covariance))
    for i, p in enumerate(space.parameters):  # the truth is what the model says
        assert abs(centre[i]) < 1.645 * spread[i], p.name
    kp, unweighed = space.names.index("gains.kp/servo"), belief(space, centre, replace(every, torque=None)).covariance
    assert np.sqrt(unweighed[kp, kp]) > 0.2  # without torque only that masses may be off by a real mismatch is known


def test_a_log_without_torque_has_none(recorded):
    silent = replace(recorded, signals={name: signal for name, signal in recorded.signals.items() if name != "tau"})
    assert sensed(silent, {}).torque is None
