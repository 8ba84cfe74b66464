"""The command path against a plain simulation of messages on a wire."""

import numpy as np
from hypothesis import given, settings, strategies as st

from gapless.worlds import path

SUBSTEPS, RING = 4, 8


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(0, 20), min_size=12, max_size=12), st.lists(st.booleans(), min_size=12, max_size=12))
def test_each_step_gets_the_newest_command_that_has_arrived(lateness, lost):
    """Sampled finely: at time t the newest command sent that has arrived and was not lost is in force."""
    sent, late = np.zeros((1, RING, 1)), np.zeros((1, RING, 1))
    held = np.zeros((1, 1))
    got = []
    newest = 0
    for k, (delay, gone) in enumerate(zip(lateness, lost, strict=True)):
        newest = (newest + 1) % RING
        if np.isfinite(late[0, newest, 0]):
            held[0, 0] = sent[0, newest, 0]
        sent[0, newest, 0] = k + 1.0
        late[0, newest, 0] = np.inf if gone else delay
        out = np.empty((1, SUBSTEPS, 1))
        path.deliver(sent, late, held, newest, SUBSTEPS, out)
        got.extend(out[0, :, 0])
    fine = 200
    for step, value in enumerate(got):  # a ring of 8 periods holds whatever is up to 20 steps late
        times = step + (np.arange(fine) + 0.5) / fine
        force = np.zeros(fine)
        for k, (delay, gone) in enumerate(zip(lateness, lost, strict=True)):
            if not gone and k * SUBSTEPS <= step:
                force = np.where(times >= k * SUBSTEPS + delay, k + 1.0, force)
        assert abs(force.mean() - value) <= 12 / fine * 2


@settings(max_examples=100, deadline=None)
@given(st.floats(0, 11.0))
def test_readings_interpolate_between_steps(age):
    periods = 4
    line = np.arange(periods * SUBSTEPS, dtype=float)  # the value is the time
    ring = line.reshape(periods, 1, SUBSTEPS, 1)
    out = np.empty((1, 1))
    path.read(ring, periods - 1, np.array([0]), np.array([[age]]), out)
    np.testing.assert_allclose(out[0, 0], line[-1] - age, atol=1e-9)


def test_whole_steps_are_not_spoilt_by_rounding():
    for k in range(1, 60):
        assert path.in_steps(np.array([k * 0.005]), 0.005)[0] == k
        assert path.in_steps(np.array([k * 0.002]), 0.002)[0] == k
