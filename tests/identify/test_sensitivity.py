"""Slopes of everything at a fit, on a robot whose numbers are known."""

from dataclasses import replace

import numpy as np
import pytest

from gapless.identify.sensitivity import Sensitivity, _factors, _sooner, at_half_step, sensitivity
from gapless.identify.uncertainty import belief, heavier
from gapless.logs import Log
from gapless.measure import split_logs
from gapless.twin import Twin
from gapless.worlds import StandIn, StandInSpec, build_standin, plan_motion, record, replay

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
    assert every.factors is not None
    assert np.linalg.norm(every.slopes @ every.factors.sum(axis=1)) < 1e-3
    logarithm, sd = heavier(space, every) or (np.nan, np.nan)
    assert logarithm == pytest.approx(np.log(0.8), abs=1.645 * sd)
    assert sd < 0.15  # masses off by a real mismatch: 0.18
    centre = space.to_scaled(np.array([p.nominal * (1.25 if p.name != "latency.action" else 1.0) for p in space.parameters]))
    spread = np.sqrt(np.diag(belief(space, centre, every).covariance))
    for i, p in enumerate(space.parameters):  # the truth is what the model says
        assert abs(centre[i]) < 1.645 * spread[i], p.name
    kp, unweighed = space.names.index("gains.kp/servo"), belief(space, centre, replace(every, torque=None)).covariance
    assert np.sqrt(unweighed[kp, kp]) > 0.2  # without torque only that masses may be off by a real mismatch is known


def test_links_that_are_called_as_joints_are_no_part_of_their_torques():
    twin = Twin.load("quadruped")
    factors = _factors(twin.space, twin.space.nominal, twin.joints)
    assert "inertia.mass/FL_calf" in twin.space.names
    assert "FL_calf" in twin.joints
    masses = [name.startswith("inertia.") for name in twin.space.names]
    assert not factors[masses, :-1].any()
    assert factors[twin.space.names.index("inertia.mass/FL_calf"), -1] > 0


def test_a_log_without_torque_has_none(recorded):
    silent = replace(recorded, signals={name: signal for name, signal in recorded.signals.items() if name != "tau"})
    assert sensed(silent, {}).torque is None


def test_positions_of_a_joint_that_carries_little_do_not_show_a_factor_of_its_torques_and_its_rotor():
    spec = StandInSpec("arm", 1, tolerance=0.0, change={"motor.limit/*": "x0.5"}, sensors=SENSORS)
    stand_in = StandIn(spec)
    log = record(stand_in, plan_motion("rich", build_standin(spec), 6.0, np.random.default_rng(1)), stand_in.signal, "log")
    twin = Twin.load("arm")
    values = twin.space.nominal.copy()
    values[[twin.space.names.index(name) for name in twin.space.match("motor.limit/*")]] *= 0.5  # torque saturates
    every = sensitivity(twin, values, [log], split_logs([log], twin.joints), ("q",), {}, {})
    assert every.factors is not None
    for joint, most in (("wrist_roll", 0.01), ("elbow_flex", 1.0)):
        along = every.factors[:, twin.joints.index(joint)]
        share = np.linalg.norm(every.slopes @ along) / np.linalg.norm(every.slopes * along)
        assert share < most
        assert every.torque is not None  # its torques grow as the factor does: by 1 in units of what a sensor is off
        assert np.linalg.norm(every.torque.slopes @ along) > 10
    assert share > 0.05  # a forearm and a hand hang on the elbow


def test_less_delay_is_made_up_for_to_the_second_order_by_damping_and_rotor():
    twin = Twin.load("bench", timestep=0.005)
    names, values = twin.space.names, twin.space.nominal.copy()
    values[names.index("latency.action")] = 0.01
    moved = _sooner(twin, twin.space, values)

    def lags(numbers: np.ndarray) -> tuple[float, float]:
        """Of kp exp(-s T) / (J s^2 + b s + kp): the first two moments of its response [s, s^2]."""
        delay, kp, kd, viscous, rotor = (
            numbers[names.index(n)]
            for n in ("latency.action", "gains.kp/servo", "gains.kd/servo", "friction.viscous/servo", "armature.inertia/servo")
        )
        lag = (kd + viscous) / kp
        return delay + lag, rotor / kp + delay * lag + delay**2 / 2

    less = 0.0025
    assert moved[names.index("latency.action")] == pytest.approx(values[names.index("latency.action")] - less)
    assert lags(moved)[0] == pytest.approx(lags(values)[0], rel=1e-9)
    assert lags(moved)[1] == pytest.approx(lags(values)[1], abs=less**2)


def test_numbers_at_half_the_time_step_move_as_those_at_the_whole_one_do(recorded):
    twin = Twin.load("bench", timestep=0.01)
    space = twin.space.select(*FITTED)
    values = twin.space.nominal.copy()
    values[twin.space.names.index("latency.action")] = 0.01
    x = at_half_step(twin, space, values, [recorded], split_logs([recorded], twin.joints), ("q",))
    other = values.copy()
    other[[twin.space.names.index(name) for name in space.names]] = space.clip(space.from_scaled(x))
    fine = Twin.load("bench", timestep=0.005)
    assert fine.space.names == twin.space.names
    coarse = replay(twin, recorded, values[None]).error("q")[0, 0]
    same, alike = (replay(fine, recorded, each[None]).error("q")[0, 0] for each in (values, other))
    assert np.sqrt(np.mean((alike - coarse) ** 2)) < 0.5 * np.sqrt(np.mean((same - coarse) ** 2))
