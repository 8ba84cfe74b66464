"""Delays against a plain simulation of messages on a wire."""

import numpy as np
from hypothesis import given, settings, strategies as st

from gapless import delay

SUBSTEPS, RING = 4, 8


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(0, 20), min_size=12, max_size=12), st.lists(st.booleans(), min_size=12, max_size=12))
def test_each_step_gets_the_newest_command_that_has_arrived(lateness, lost):
    """Sampled finely: at time t the newest command sent that has arrived and was not lost is in force."""
    acts, values = np.zeros((1, 1, RING)), np.zeros((1, 1, RING))
    got = []
    for k, (wait, gone) in enumerate(zip(lateness, lost, strict=True)):
        out = np.empty((1, SUBSTEPS, 1))
        delay.received_live(acts, values, np.array([[k + 1.0]]), np.array([[np.inf if gone else wait]]), out)
        got.extend(out[0, :, 0])
    fine = 200
    for step, value in enumerate(got):  # a ring of 8 periods holds whatever is up to 20 steps late
        times = step + (np.arange(fine) + 0.5) / fine
        force = np.zeros(fine)
        for k, (wait, gone) in enumerate(zip(lateness, lost, strict=True)):
            if not gone and k * SUBSTEPS <= step:
                force = np.where(times >= k * SUBSTEPS + wait, k + 1.0, force)
        assert abs(force.mean() - value) <= 12 / fine * 2


@settings(max_examples=100, deadline=None)
@given(st.floats(0, 11.0))
def test_readings_interpolate_between_steps(age):
    periods = 4
    line = np.arange(periods * SUBSTEPS, dtype=float)  # the value is the time
    ring = line.reshape(periods, 1, SUBSTEPS, 1)
    out = np.empty((1, 1))
    delay.state_ago(ring, periods - 1, np.array([0]), np.array([[age]]), out)
    np.testing.assert_allclose(out[0, 0], line[-1] - age, atol=1e-9)


def test_whole_steps_are_not_spoilt_by_rounding():
    for k in range(1, 60):
        assert delay.in_steps(np.array([k * 0.005]), 0.005)[0] == k
        assert delay.in_steps(np.array([k * 0.002]), 0.002)[0] == k


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(-5, 30), min_size=1, max_size=12), st.floats(0, 12))
def test_commands_of_a_log_are_in_force_from_when_they_arrive_until_the_next_one_does(sent, late):
    sent, steps, fine = np.sort(np.array(sent)), 20, 200
    values = 1.0 + np.arange(len(sent))
    out = np.empty((1, steps, 1))
    delay.received_from_log(sent[None], values[:, None], np.zeros(1, dtype=np.int64), np.array([[late]]), 0, out)
    times = (np.arange(steps * fine) + 0.5) / fine
    force = values[delay.rows_in_force(sent, times - late)].reshape(steps, fine).mean(axis=1)
    assert np.abs(force - out[0, :, 0]).max() <= 12 * len(sent) / fine
