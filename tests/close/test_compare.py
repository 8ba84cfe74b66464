"""Comparisons: pieces are kept, processes and Ray give the same bits, differences are in pairs, limits are no remedies."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from gapless.close import MISMATCHES, Compared, Row, compare, plan_comparison, scored, training
from gapless.close.case import Case
from gapless.errors import BadInput
from gapless.worlds import StandIn

PLAN = plan_comparison("pendulum", ("nothing",), ("change",), seeds=1, iterations=1, scratch=1)


def bits(result):
    return [(r.technique, r.mismatch, r.seed, r.held.tobytes(), r.error.tobytes(), r.power.tobytes()) for r in result.rows]


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plain")
    return folder, compare(PLAN, folder)


@pytest.mark.xdist_group("training")
def test_what_is_finished_is_not_done_again(plain, monkeypatch):
    folder, first = plain
    monkeypatch.setattr(training, "train", lambda *args, **more: pytest.fail("trained again"))
    told = []
    assert bits(compare(PLAN, folder, tell=lambda text, left: told.append(text))) == bits(first)
    assert told[-1] == "2 of 2 pieces done"
    assert [(r.technique, r.mismatch, len(r.held)) for r in first.rows] == [("nothing", "change", 36)]


@pytest.mark.xdist_group("training")
def test_a_ray_cluster_gives_the_same_bits(plain, tmp_path):
    ray = pytest.importorskip("ray")
    try:
        assert bits(compare(PLAN, tmp_path, ray="local")) == bits(plain[1])
    finally:
        ray.shutdown()


@pytest.mark.xdist_group("training")
def test_a_change_in_mid_run_is_no_change_before_it(plain):
    change = next(m for m in MISMATCHES["pendulum"] if m.name == "change")
    standin = change.standin("pendulum", 0)
    case = Case("pendulum", "swing", standin)
    policy = plain[0] / "seed0" / "nominal"
    as_it_was, never = scored(case, policy, 1), scored(case, policy, 1, later=change.changed(standin), since=60.0)
    at_once = scored(case, policy, 1, later=change.changed(standin), since=0.02)
    np.testing.assert_array_equal(as_it_was.away, never.away)
    assert (as_it_was.away != at_once.away).any()


@pytest.mark.parametrize("robot", MISMATCHES)
def test_every_mismatch_is_a_robot_that_can_be_built(robot):
    for mismatch in MISMATCHES[robot]:
        for spec in (mismatch.standin(robot, 0), mismatch.changed(mismatch.standin(robot, 0))):
            secrets = StandIn(spec).named() if spec else {}
            assert len(secrets) > 0 or not (spec and spec.change)


def made(better=0.3, seeds=6, runs=200):
    """Techniques of known success: a base that holds half of all runs, a remedy that holds more, a limit that holds all."""
    rng, rows = np.random.default_rng(0), []
    for seed in range(seeds):
        for mismatch in ("none", "latency"):
            luck, nan = rng.permutation(runs) / runs, np.full(runs, np.nan)
            for technique, share in (("wide", 0.5), ("informed", 0.5 + better), ("oracle", 1.0)):
                rows.append(Row(technique, mismatch, seed, (luck < share).astype(float), nan, nan, 20.0, 60.0, ""))
    order = ["wide", "informed", "oracle"]
    rows.sort(key=lambda r: (order.index(r.technique), r.mismatch, r.seed))
    return Compared("pendulum", "swing", 60, rows, dict.fromkeys(order, "does something"), ["oracle"])


def test_the_best_remedy_is_one_that_can_be_had_and_its_gain_is_in_pairs():
    result = made()
    assert result.best() == "informed"
    more, low, high = result.gain("informed", "latency")
    assert low < more < high and more == pytest.approx(0.3)
    alone = result.mean("informed", "latency")
    assert high - low < 1.5 * (alone[2] - alone[1])  # luck that both share does not count twice
    assert result.verdict().good and "the technique 'informed': 80% (" in result.verdict().text
    assert "+30 points" in result.verdict().text


def test_a_technique_that_does_not_help_gains_nothing():
    result = made(better=0.0)
    assert result.gain("informed", "latency") == (0.0, 0.0, 0.0)
    assert not result.verdict().good


def test_a_comparison_saves_itself_with_its_picture_and_loads_again(tmp_path):
    result = made(seeds=2, runs=10)
    result.save(tmp_path)
    again = Compared.load(tmp_path)
    assert bits(again) == bits(result)
    words = [e.text for e in ElementTree.parse(tmp_path / "matrix.svg").iter() if e.tag.endswith("text")]
    assert {"informed", "latency", "100"} <= set(words)
    assert "Best remedy" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"robot": "arm"}, "robot with mismatches"),
        ({"techniques": ("infromed",)}, "did you mean 'informed'"),
        ({"mismatches": ("grip",)}, "mismatch of the pendulum"),
        ({"seeds": 0}, "at least 1"),
    ],
)
def test_bad_input_is_one_sentence(given, sentence):
    with pytest.raises(BadInput, match=sentence):
        plan_comparison(**given)
