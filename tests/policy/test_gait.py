"""The gait clock: how it runs, what wakes a robot that stands, and that looking at it changes nothing."""

import dataclasses
import math

import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.policy.act import targets
from gapless.policy.contract import Contract, parse_contract
from gapless.policy.gait import CALM, Gait, reference_at
from gapless.policy.observe import Observer
from gapless.policy.parts import Term, Timing
from tests.policy import made

VELOCITY = Term("velocity", "velocity", 3, provenance="estimated")
STAND = np.zeros((1, 3))


def waking(speed: float | None = 0.2) -> Contract:
    return made.residual(wake=speed, observed=(*made.terms(), VELOCITY, Term("clock", "clock", 2, frequency=2.5)))


def steps(gait: Gait, speed: float, periods: int, command=STAND, commands=()) -> np.ndarray:
    """Whether a robot steps at the end of each of so many periods at a speed. Shape: (periods,)."""
    found = []
    for _ in range(periods):
        gait.advance(command, {"velocity": np.array([[0.0, -speed, 5.0]])})  # up and down does not count
        found.append(bool(gait.steps(command, commands)[0]))
    return np.array(found)


def ticks(term: Term, commands: list[float], reset_at: int = -1) -> np.ndarray:
    """What a clock term shows under a command for each period."""
    gait = Gait(made.contract((term,)), 1)
    found = []
    for i, value in enumerate(commands):
        if i == reset_at:
            gait.reset(np.array([True]))
        command = np.full((1, 3), value)
        found.append(gait.clock(term, command)[0])
        gait.advance(command, {})
    return np.array(found)


def test_a_clock_runs_with_control_periods_and_is_zero_while_standing():
    found = ticks(Term("clock", "clock", 2, frequency=2.5), [1, 1, 1, 0, 1])
    phase = 2 * math.pi * 2.5 * 0.02 * np.arange(5)
    expected = np.stack([np.sin(phase), np.cos(phase)], axis=1)
    expected[3] = 0.0
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_a_clock_starts_anew_with_a_reset():
    found = ticks(Term("clock", "clock_sin", 1, frequency=2.5), [1, 1, 1, 1, 1], reset_at=3)
    np.testing.assert_allclose(found[3:], found[:2])


def test_a_clock_of_two_legs_as_in_holosoma():
    """sin(phase) of both legs, pi while standing, from (0, pi) with the next command."""
    term = Term("sin_phase", "clock_cos", 2, frequency=1.0, phases=(0.0, math.pi), standing="stance")
    found = ticks(term, [1, 1, 0, 0, 1, 1])
    step = 2 * math.pi * 0.02
    legs = np.array(
        [[0, math.pi], [step, math.pi + step], [math.pi, math.pi], [math.pi, math.pi], [0, math.pi], [step, math.pi + step]]
    )
    np.testing.assert_allclose(found, np.cos(legs), atol=1e-6)


def test_a_clock_that_runs_on_as_in_unitree_rl_gym():
    found = ticks(Term("phase", "clock", 2, frequency=1 / 0.8, standing="run"), [0] * 60)
    count = np.arange(60) * 0.02 % 0.8 / 0.8
    np.testing.assert_allclose(found, np.stack([np.sin(2 * np.pi * count), np.cos(2 * np.pi * count)], axis=1), atol=1e-6)


def test_the_clock_of_term_reference_and_reward_is_one_and_looking_does_not_move_it():
    contract = waking()
    clock, command, table = contract.observation.terms[-1], np.ones((1, 3)), np.array(contract.action.reference.table)
    gait, observer = Gait(contract, 1), Observer(contract, 1)
    readings, _, action = made.frame(1, np.random.default_rng(0))
    readings["velocity"] = np.zeros((1, 3))
    for period in range(40):
        time = 0.02 * period
        for _ in range(3):
            assert gait.cycles(1.0) == pytest.approx(time)
            np.testing.assert_allclose(gait.clock(clock, command)[0, 0], np.sin(2 * np.pi * 2.5 * time), atol=1e-9)
            np.testing.assert_allclose(gait.offset(command), reference_at(table, np.array([2.5 * time])))
            assert observer(readings, command, action, gait)[0, -2] == pytest.approx(np.sin(2 * np.pi * 2.5 * time), abs=1e-6)
        gait.advance(command, readings)


def test_a_push_wakes_within_a_tenth_of_a_second_and_calm_lets_stand_again():
    gait = Gait(waking(), 1)
    assert not steps(gait, 0.19, 100).any()
    assert steps(gait, 0.4, 10)[5:].all()
    after = steps(gait, 0.0, 100)  # 2 s
    slow = np.log(0.4 / 0.2) * 0.1  # s until the mean of the last tenth is below the speed
    assert np.argmin(after) * 0.02 == pytest.approx(CALM + slow, abs=0.06)
    assert not after[np.argmin(after) :].any()


def test_a_robot_steps_where_only_other_commands_than_the_gaits_are_given_and_it_is_pushed():
    turn = np.array([[0.0, 0.0, 0.4]])
    assert not steps(Gait(waking(), 1), 0.0, 20, turn, ("vx", "vy")).any()
    assert steps(Gait(waking(), 1), 1.0, 20, turn, ("vx", "vy"))[-1]


def test_what_is_awake_has_a_clock_and_a_gait_and_is_still_asked_to_stand():
    contract = waking()
    asleep, awake = Gait(contract, 1), Gait(contract, 1)
    assert steps(awake, 1.0, 20)[-1]
    readings = made.frame(1, np.random.default_rng(0))[0] | {"velocity": np.ones((1, 3))}
    action = np.zeros((1, 12))
    seen = Observer(contract, 1)(readings, STAND, action, awake)[0]
    assert seen[-2:].any()
    assert not seen[6:9].any()  # the command
    assert not Observer(contract, 1)(readings, STAND, action, asleep)[0, -2:].any()
    assert not np.allclose(targets(contract, action, gait=awake, command=STAND), made.DEFAULT)
    np.testing.assert_allclose(targets(contract, action, gait=asleep, command=STAND), [made.DEFAULT])


def test_a_robot_that_starts_anew_has_forgotten_its_push():
    gait, command = Gait(waking(), 2), np.zeros((2, 3))
    for _ in range(20):
        gait.advance(command, {"velocity": np.full((2, 3), 0.5)})
    gait.reset(np.array([True, False]))
    gait.advance(command, {"velocity": np.zeros((2, 3))})
    assert gait.steps(command).tolist() == [False, True]


def test_without_a_speed_nothing_wakes_and_nothing_is_needed():
    for contract in (waking(None), made.contract()):
        gait = Gait(contract, 1)
        gait.advance(STAND, {})
        assert not gait.steps(STAND).any()


def test_the_speed_survives_being_written():
    assert parse_contract(waking().json()) == waking()


def test_a_phase_that_rounds_up_to_a_whole_cycle_is_its_start():
    table = np.array(made.residual().action.reference.table)
    found = reference_at(table, np.array([0.0, 1.0, np.nextafter(1.0, 0.0), -1e-18]))
    np.testing.assert_allclose(found, np.tile(found[0], (4, 1)), atol=1e-12)


def test_bad_input():
    with pytest.raises(BadInput, match=r"action.reference.wake: -1 is not from 0"):
        waking(-1.0)
    with pytest.raises(BadInput, match="the gait wakes by a velocity that is no term of the observation"):
        made.residual(wake=0.2)
    with pytest.raises(BadInput, match="needs an estimate of the base velocity"):
        Gait(waking(), 1).advance(STAND, {})
    with pytest.raises(BadInput, match="needs the contract's control_dt"):
        Gait(dataclasses.replace(waking(), timing=Timing()), 1)
