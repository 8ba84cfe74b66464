"""A robot that is told to stand and is pushed walks on the spot until it is calm."""

import dataclasses

import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.policy.act import targets
from gapless.policy.contract import Contract, Term, Timing, parse_contract
from gapless.policy.observe import Observer
from gapless.policy.step_when_pushed import CALM, SPOT, Wake
from tests.policy import made

VELOCITY = Term("velocity", "velocity", 3, provenance="estimated")


def waking(speed: float | None = 0.2) -> Contract:
    return made.residual(wake=speed, observed=(*made.terms(), VELOCITY, Term("clock", "clock", 2, frequency=2.5)))


def told(wake: Wake, speed: float, periods: int, command: tuple[float, ...] = (0.0, 0.0, 0.0)) -> np.ndarray:
    """Commands of so many periods at a speed. Shape: (periods, 3)."""
    readings = {"velocity": np.array([[0.0, -speed, 5.0]])}  # up and down does not count
    return np.array([wake([command], readings)[0] for _ in range(periods)])


def test_a_push_wakes_within_a_tenth_of_a_second_and_calm_lets_stand_again():
    wake = Wake(waking(), 1)
    assert not told(wake, 0.19, 100).any()
    moved = told(wake, 0.4, 10).any(axis=1)
    assert moved[5:].all()
    after = told(wake, 0.0, 100).any(axis=1)  # 2 s
    slow = np.log(0.4 / 0.2) * 0.1  # s until the mean of the last tenth is below the speed
    assert np.argmin(after) * 0.02 == pytest.approx(CALM + slow, abs=0.06)
    assert not after[np.argmin(after) :].any()


def test_a_command_to_walk_stays_what_it_is():
    wake = Wake(waking(), 1)
    np.testing.assert_array_equal(told(wake, 1.0, 20, (0.3, 0.0, 0.1)), np.tile([0.3, 0.0, 0.1], (20, 1)))


def test_only_the_commands_of_the_gait_are_touched():
    np.testing.assert_array_equal(told(Wake(waking(), 1), 1.0, 20, (0.0, 0.0, 0.4))[-1], [SPOT, SPOT, 0.4])


def test_what_is_awake_has_a_clock_and_a_gait():
    contract = waking()
    awake = told(Wake(contract, 1), 1.0, 20)[-1:]
    readings = made.frame(1, np.random.default_rng(0))[0] | {"velocity": np.ones((1, 3))}
    assert Observer(contract, 1)(readings, awake, np.zeros((1, 12)))[0, -2:].any()
    assert not Observer(contract, 1)(readings, 0 * awake, np.zeros((1, 12)))[0, -2:].any()
    assert not np.allclose(targets(contract, np.zeros((1, 12)), time=[0.1], command=awake), made.DEFAULT)


def test_a_robot_that_starts_anew_has_forgotten_its_push():
    wake = Wake(waking(), 2)
    readings = {"velocity": np.full((2, 3), 0.5)}
    for _ in range(20):
        wake(np.zeros((2, 3)), readings)
    wake.reset(np.array([True, False]))
    still = {"velocity": np.zeros((2, 3))}
    assert wake(np.zeros((2, 3)), still).any(axis=1).tolist() == [False, True]


def test_without_a_speed_nothing_wakes_and_nothing_is_needed():
    command = np.zeros((1, 3))
    for contract in (waking(None), made.contract()):
        np.testing.assert_array_equal(Wake(contract, 1)(command, {}), command)


def test_the_speed_survives_being_written():
    assert parse_contract(waking().json()) == waking()


def test_bad_input():
    with pytest.raises(BadInput, match=r"action.reference.wake: -1 is not from 0"):
        waking(-1.0)
    with pytest.raises(BadInput, match="the gait wakes by a velocity that is no term of the observation"):
        made.residual(wake=0.2)
    with pytest.raises(BadInput, match="needs an estimate of the velocity"):
        Wake(waking(), 1)(np.zeros((1, 3)), {})
    with pytest.raises(BadInput, match="needs the contract's control_dt"):
        Wake(dataclasses.replace(waking(), timing=Timing()), 1)
