"""Ranges that grow: bounds move only when thresholds are crossed, one owner of difficulty, the same bits after a stop."""

import dataclasses

import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.learn import adr, run as runs
from gapless.learn.adr import BUFFER, GrowingRanges
from gapless.learn.run import load_run, plan_run, read_checkpoint, train
from gapless.learn.settings import PPOSettings
from gapless.twin import BeliefHistory, Box, Gaussian, Twin, load_belief, recipe_of, save_belief

pytestmark = pytest.mark.xdist_group("training")
SMALL = PPOSettings(worlds=40, steps=160, iterations=4, every=2, hidden=(16, 16), epochs=1, minibatches=2)
"""Two iterations are an episode of 6 s and a little more."""


@pytest.fixture(scope="module")
def twin():
    return Twin.load("bench")


def played(ranges, success, episodes=400):
    """Episodes of one period each, at the end of which a world at a bound succeeds as `success` says of its parameters."""
    rng, n = np.random.default_rng(0), 20
    ranges.begin(n, 0.02, 0.02)
    for _ in range(episodes // n):
        values = ranges.draw(np.arange(n), rng)
        good = np.array([success(dict(zip(ranges.start.space.names, row, strict=True))) for row in values])
        ranges.watch(good, np.zeros(n, bool), np.ones(n, bool))


def test_ranges_grow_where_the_policy_succeeds_and_nowhere_else(twin):
    ranges = GrowingRanges.about(twin, None)
    limit = ranges.start.high[ranges.start.space.names.index("latency.action")] + 0.006
    played(ranges, lambda values: values["latency.action"] <= limit, 6000)
    grown = dict(zip(ranges.start.space.names, zip(ranges.box.low, ranges.box.high, strict=True), strict=True))
    assert grown["latency.action"][1] < limit + 0.0045  # a step of 2 ms beyond what succeeds is tried, and taken back
    assert grown["gains.kp/servo"][1] > 1.2 * ranges.start.high[ranges.start.space.names.index("gains.kp/servo")]
    assert (ranges.box.low >= ranges.start.space.low).all() and (ranges.box.high <= ranges.start.space.high).all()


@pytest.mark.parametrize(("share", "moves"), [(0.5, 1), (0.35, 0), (0.2, -1)])
def test_a_bound_moves_only_when_its_full_buffer_crosses_a_threshold(twin, share, moves):
    ranges = GrowingRanges.about(twin, None)
    ranges.out[:] = 3
    bound = 0
    for _ in range(BUFFER - 1):
        ranges._count(bound, share)
    assert (ranges.out == 3).all()
    ranges._count(bound, share)
    side, quantity = ranges._open[bound]
    changed = ranges.out - 3
    assert changed[side, quantity] == moves
    assert np.count_nonzero(changed) == abs(moves)


def test_a_failed_episode_counts_as_none_and_one_that_is_cut_short_not_at_all(twin):
    ranges = GrowingRanges.about(twin, None, lasting=250)  # periods, and an episode lasts 100
    ranges.begin(10, 2.0, 0.02)
    rng, yes, no = np.random.default_rng(0), np.ones(10, bool), np.zeros(10, bool)

    def counted():
        return sum(len(each) for each in ranges._buffers.values())

    ranges.draw(np.arange(10), rng)
    ranges.watch(yes, no, yes)  # cut short
    assert not counted()
    ranges.watch(yes, yes, no)  # all fail, of which the first episodes of ordinary worlds end anywhere
    assert counted() == ranges.at_bounds.sum()
    assert {share for each in ranges._buffers.values() for share in each} == {0.0}
    ranges.draw(np.arange(10), rng)
    for _ in range(99):
        ranges.watch(yes, no, no)
    before = counted()
    ranges.watch(yes, no, yes)
    assert counted() == before + 10
    ranges._periods = 151
    ranges.draw(np.arange(10), rng)  # these cannot end before all worlds are made anew
    ranges.watch(yes, yes, no)
    assert counted() == before + 10


def test_ranges_begin_about_the_model_or_at_a_belief(twin):
    model = GrowingRanges.about(twin, None)
    kp = model.start.space.names.index("gains.kp/servo")
    nominal, tolerance = model.start.space.nominal[kp], model.start.space.tolerance[kp]
    np.testing.assert_allclose([model.box.low[kp], model.box.high[kp]], [nominal - tolerance, nominal + tolerance])
    space = twin.space.select("gains.kp/servo")
    fitted = GrowingRanges.about(twin, Gaussian(space, np.array([1.0]), np.array([[0.01]])))
    kp = fitted.start.space.names.index("gains.kp/servo")
    low, high = fitted.start.space.to_scaled(fitted.box.low)[kp], fitted.start.space.to_scaled(fitted.box.high)[kp]
    assert (low, high) == pytest.approx((1 - 0.1645, 1 + 0.1645), abs=0.02)
    assert "motor.strength/servo" not in fitted.start.space.names  # the gain stands for it
    with pytest.raises(BadInput, match="no parameter|has no|not"):
        GrowingRanges.about(twin, Gaussian(Twin.load("pendulum").space.select("gains.kp/elbow"), np.zeros(1), np.eye(1)))


def test_thresholds_that_cannot_be_met_are_said(twin):
    with pytest.raises(BadInput, match="both are shares from 0 to 1"):
        GrowingRanges.about(twin, None, grow=0.3, shrink=0.5)
    ranges = GrowingRanges.about(twin, None)
    played(ranges, lambda values: False)
    assert "no range has grown: success was 0% at best, and ranges grow at 50%" in ranges.in_vain(0.1)
    played(ranges, lambda values: True)
    assert ranges.in_vain(0.1) == ""


def test_pushes_follow_success_and_no_clock(twin):
    ranges = GrowingRanges.about(twin, None)
    assert ranges.hardness == adr.EASIEST
    played(ranges, lambda values: True, 4000)
    assert ranges.hardness > 0.5
    played(ranges, lambda values: False, 4000)
    assert ranges.hardness == adr.EASIEST


def test_a_training_that_is_resumed_has_the_same_ranges_and_leaves_them_as_a_belief(tmp_path, monkeypatch, twin):
    monkeypatch.setattr(adr, "BUFFER", 1)
    monkeypatch.setattr(runs, "UNSEEN", 4)
    monkeypatch.setattr("gapless.learn.trained.UNSEEN_SECONDS", 0.2)
    run = dataclasses.replace(plan_run("swing", "bench", adr=True), settings=SMALL)
    said = []
    train(run, tmp_path / "whole", lambda news: said.append((news.said, news.entropy)), threads=1)
    assert [i for i, (words, _) in enumerate(said) if "no range has grown" in words] == [1]  # once, when episodes have ended
    train(run, tmp_path / "parts", threads=1, iterations=2)
    train(load_run(tmp_path / "parts"), tmp_path / "parts", resume=True, threads=1)
    whole, parts = (read_checkpoint(tmp_path / name / "checkpoint.pt")["ranges"] for name in ("whole", "parts"))
    assert whole == parts and [i for i, _ in whole["log"]] == [0, 1, 2, 3, 4]
    box = load_belief(tmp_path / "whole" / "ranges.json")
    assert isinstance(box, Box) and "latency.action" in box.space.names
    shown = BeliefHistory.load(tmp_path / "whole" / "ranges")
    assert shown.at == [0, 1, 2, 3, 4] and "entropy" in (tmp_path / "whole" / "ranges" / "report.html").read_text()


def test_checkpoints_are_as_far_apart_as_an_episode_or_the_training_is_refused():
    run = plan_run("swing", "bench", settings={"iterations": 60}, adr=True)
    assert run.settings.every * run.settings.steps * 0.02 >= 6.0 > 60 // 10 * run.settings.steps * 0.02
    with pytest.raises(BadInput, match="one of 6 s takes 13 iterations: train for more than 12"):
        plan_run("swing", "bench", settings={"iterations": 12}, adr=True)


def test_ranges_that_grow_take_no_preset(tmp_path, twin):
    with pytest.raises(BadInput, match="give either --adr or --preset"):
        plan_run("swing", "bench", preset="wide", adr=True)
    path = tmp_path / "belief.json"
    space = twin.space.select("gains.kp/servo")
    save_belief(Gaussian(space, np.zeros(1), np.eye(1)), path, recipe_of(twin))
    assert plan_run("swing", "bench", belief=path, adr=True).preset == "informed"
