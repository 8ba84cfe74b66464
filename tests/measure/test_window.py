"""Windows: what they predict is what a replay does, flat and by block; stretches start anew from what was measured."""

import numpy as np
import pytest

from gapless.logs import Log
from gapless.measure import BLOCK, mean_by, runs, split_logs, traces, windows
from gapless.measure.window import BROKEN
from gapless.twin import Twin
from gapless.worlds import Replayer, StandInSpec as Spec
from tests.measure.made import recorded


@pytest.fixture(scope="module")
def twin() -> Twin:
    return Twin.load("bench")


@pytest.fixture(scope="module")
def log() -> Log:
    return recorded(Spec("bench", tolerance=0, change={"gains.kp/*": "x0.7"}), 12.0)[1]


def test_a_whole_log_runs_free_and_its_errors_are_those_of_a_replay(twin, log):
    split = split_logs([log], twin.joints)
    data = runs(twin, [log], split, split.logs, rate=np.inf)
    replayed = Replayer(twin, log)(twin.space.nominal).error("q")[0, 0]
    np.testing.assert_allclose(data.errors(twin.space.nominal[None])[0], replayed)
    assert data.count == 1
    assert np.unique(data.block).tolist() == list(range(len(split)))


def test_pieces_of_a_log_start_anew_from_what_was_measured(twin, log):
    split = split_logs([log], twin.joints)
    pieces = split.spread(split.logs, 8.0)
    data = runs(twin, [log], split, pieces, rate=np.inf)
    assert data.count == len(pieces) == 2
    assert set(data.block.tolist()) == {b for p in pieces for b in range(p.first, p.end)}
    assert data.since.max() <= 2 * BLOCK + 1e-9
    errors = data.errors(twin.space.nominal[None])[0]
    assert np.abs(errors[data.since == 0]).max() < 1e-9 < np.abs(errors).max()


def test_the_same_windows_are_compared_in_other_blocks_and_in_other_twins(twin, log):
    split = split_logs([log], twin.joints)
    data = runs(twin, [log], split, split.logs)
    whole = data.errors(twin.space.nominal[None])[0]
    first = data.only(split.first)
    assert first.replayers is data.replayers
    np.testing.assert_array_equal(first.errors(twin.space.nominal[None])[0], whole[split.first[data.block]])
    np.testing.assert_array_equal(data.like(Twin.load("bench")).errors(twin.space.nominal[None])[0], whole)


def test_windows_are_evenly_spread_within_the_blocks_that_are_asked_for(twin, log):
    split = split_logs([log], twin.joints)
    data = windows(twin, [log, log], split_logs([log, log], twin.joints), most=6)
    assert data.count == 6 and data.length == BLOCK
    assert np.bincount(data.log, minlength=2).min() > 0
    half = windows(twin, [log], split, split.first, length=0.5)
    assert split.first[half.block].all() and half.count == 4 * split.first.sum()


def test_physics_that_breaks_counts_as_half_a_turn_and_never_as_no_error(twin, log, monkeypatch):
    data = windows(twin, [log])
    result = data.replayers[0](twin.space.nominal)
    gone = {s: np.full_like(v, np.nan) for s, v in result.replayed.items()}
    monkeypatch.setattr(
        type(data.replayers[0]), "__call__", lambda *_, **__: type(result)(**{**vars(result), "replayed": gone})
    )
    assert (data.errors(twin.space.nominal[None]) == BROKEN).all()


def test_means_by_number():
    means = mean_by(np.array([0, 0, 2]), np.array([[1.0], [3.0], [5.0]]), 4)[:, 0]
    np.testing.assert_array_equal(means, [2.0, np.nan, 5.0, np.nan])


def test_a_trace_has_every_prediction_beside_what_was_measured(twin, log):
    split = split_logs([log], twin.joints)
    data = runs(twin, [log], split, split.logs, rate=np.inf)
    q = data.predicted(twin.space.nominal[None])["q"][0]
    (trace,) = traces(data, q, q)
    np.testing.assert_array_equal(trace.heldout, trace.twin)
    np.testing.assert_array_equal(trace.measured, log["q"].values)
    np.testing.assert_array_equal(trace.command, log["q_cmd"].values)
    np.testing.assert_array_equal(trace.error("given"), q - log["q"].values)
    late = np.sqrt((trace.error("delayed") ** 2).mean())
    assert late < np.sqrt((trace.error("command") ** 2).mean())
