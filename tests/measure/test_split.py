"""The split: blocks, halves and stretches mean the same to everyone who asks."""

import numpy as np
import pytest

from gapless.logs import Log
from gapless.measure import BLOCK, evenly, split_logs

PERIOD = 0.02


def a_log(seconds: float, lost: tuple[float, float] = (0.0, 0.0), start: float = 5.0) -> Log:
    """A log of one joint, not measured between two times."""
    since = np.arange(round(seconds / PERIOD) + 1) * PERIOD
    q = np.where((since >= lost[0]) & (since < lost[1]), np.nan, np.sin(since))[:, None]
    return Log.from_arrays(["j"], start + since, {"q": q, "q_cmd": np.sin(since)[:, None]})


@pytest.mark.parametrize("count", [1, 3, 12, 30])
def test_halves_alternate_by_measured_block_however_many_logs_there_are(count):
    split = split_logs([a_log(10.0)] * count, ["j"])
    assert split.first[split.measured].tolist() == [k % 2 == 0 for k in range(5 * count)]
    for i in range(count):
        assert split.first[split.begin[i] : split.begin[i + 1]].any() and not split.first[split.begin[i] :].all()


def test_what_was_not_measured_does_not_count_in_turn():
    split = split_logs([a_log(12.0, lost=(2.0, 6.0))], ["j"])
    assert split.measured.tolist() == [True, False, False, True, True, True]  # the last sample alone is no block
    assert split.first[split.measured].tolist() == [True, False, True, False]


def test_a_sample_is_in_one_block_and_a_block_has_its_place():
    split = split_logs([a_log(10.0), a_log(7.0)], ["j"])
    assert split.numbers(1, np.array([0.0, 1.99, 2.0, 7.0])).tolist() == [5, 5, 6, 8]
    assert split.place(6) == (1, BLOCK)
    assert split.seconds(split.logs) == pytest.approx(17.0)


def test_short_logs_are_used_whole_and_long_ones_in_pieces_spread_over_all_of_them():
    split = split_logs([a_log(100.0), a_log(100.0)], ["j"])
    assert split.spread(split.logs, 200.0) == split.logs
    pieces = split.spread(split.logs, 40.0)
    assert split.seconds(pieces) == pytest.approx(40.0, abs=4.0)
    assert {p.log for p in pieces} == {0, 1}
    begins = np.array([split.place(p.first)[1] for p in pieces if p.log == 0])
    assert begins.min() < 20 and begins.max() > 70
    used = split.blocks(pieces)
    assert 0.4 < split.first[used].mean() < 0.6  # either half has its share of every piece
    few = split.spread(pieces, 20.0)
    assert set(few) <= set(pieces)


def test_places_are_evenly_spread():
    assert evenly(10, 0) == list(range(10))
    assert evenly(3, 5) == [0, 1, 2]
    assert evenly(11, 3) == [0, 5, 10]
    assert evenly(11, 1) == [5]


def test_what_is_held_out_comes_from_the_fit_that_has_not_seen_it():
    split = split_logs([a_log(8.0)], ["j"])
    assert split.first.tolist() == [True, False, True, False]
    by_first, by_second = np.full((4, 2), 1.0), np.full((4, 2), 2.0)
    assert split.held_out(np.array([0, 0, 1, 3]), by_first, by_second)[:, 0].tolist() == [2.0, 2.0, 1.0, 1.0]
    assert split.held_out(np.arange(4), by_first[:, 0], by_second[:, 0]).tolist() == [2.0, 1.0, 2.0, 1.0]
