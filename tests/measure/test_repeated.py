"""Repeats: the same command is found again wherever it is, to a fraction of a sample, and nothing else is."""

import numpy as np
import pytest

from gapless.logs import read
from gapless.measure.repeated import from_the_start, repeats
from tests.data import DATA, needs_data
from tests.measure.made import lagging, log_of, smooth


def test_a_motion_commanded_again_is_found_with_its_lag_and_length():
    rng = np.random.default_rng(0)
    again = smooth(6.0, rng)
    command = np.concatenate([smooth(4.0, rng), again, smooth(3.0, rng), again, smooth(2.0, rng)])
    found = repeats([log_of(command, lagging(command))])
    assert len(found) == 1
    assert found[0].lag == pytest.approx(9.0, abs=1e-6)
    assert found[0].start == pytest.approx(4.0, abs=0.05)
    assert found[0].length == pytest.approx(6.0, abs=0.1)


def test_it_is_found_in_another_log_between_the_samples():
    rng = np.random.default_rng(1)
    fine = smooth(20.0, rng, period=0.001)
    early, late = fine[:-2000:10], fine[1237::10]  # the second starts 1.237 s into the motion
    found = repeats([log_of(early, early), log_of(late, late, start=100.0)])
    assert found[0].first == 0
    assert found[0].second == 1
    assert found[0].lag == pytest.approx(100.0 - 1.237, abs=5e-4)
    assert found[0].length > 15


def test_nothing_is_found_where_nothing_is_repeated_or_moves():
    rng = np.random.default_rng(2)
    never = smooth(40.0, rng)
    assert repeats([log_of(never, never)]) == []
    still = np.zeros((4000, 2))
    assert repeats([log_of(still, still)]) == []
    one_differs = np.concatenate([never, never + [0.0, 0.05]])  # the other joint is told something else
    assert repeats([log_of(one_differs, one_differs)]) == []
    assert repeats([log_of(never[:100], never[:100])]) == []


def test_logs_that_begin_alike_even_to_stand_still():
    still, push = np.zeros((300, 1)), np.ones((300, 1))
    one, two, three = (log_of(c, c, signal="tau_cmd", start=s) for c, s in ((still, 0.0), (still, 5.0), (push, 0.0)))
    found = from_the_start([one, two, three])
    assert [(r.first, r.second, r.lag) for r in found] == [(0, 1, 5.0)]
    assert found[0].length == pytest.approx(2.98, abs=0.02)


@needs_data
def test_a_real_arm_that_repeats_its_motion_every_9_83_s():
    found = repeats([read(DATA / "so101/motions/repetitive_motion", "so101")])
    lags = np.array([r.lag for r in found])
    assert len(found) > 10
    np.testing.assert_allclose(lags / 9.8297, np.round(lags / 9.8297), atol=0.01)
