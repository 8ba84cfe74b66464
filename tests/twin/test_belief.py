"""Beliefs: what is drawn follows the stated distribution, stays in bounds, and survives a file."""

import json

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

from gapless.errors import BadInput
from gapless.twin import Box, Gaussian, Particles, Point, within_tolerance
from gapless.twin.belief import load, save
from gapless.twin.space import Space, amount, factor
from tests.twin.test_space import spaces

SPACE = Space((factor("gains.kp/a", 50.0, 1.5, 0.05), amount("latency.action", 0.01, 0.01, 0.001, "s", 0.0, 0.1)))


def beliefs(space: Space = SPACE):
    rng = np.random.default_rng(0)
    k = len(space)
    a = rng.normal(size=(k, k)) * 0.2
    box = Box(space, space.low, space.high)
    points = box.sample(40, rng)
    return [
        Point(space, space.nominal),
        box,
        within_tolerance(space),
        Gaussian(space, np.zeros(k), a @ a.T),
        Particles(space, points, np.full(40, 1 / 40)),
    ]


@settings(max_examples=50, deadline=None)
@given(spaces(), st.integers(0, 2**31))
def test_every_draw_is_within_the_bounds(space, seed):
    for belief in beliefs(space):
        for drawn in (belief.sample(20, np.random.default_rng(seed)), belief.mean()):
            space.check(drawn)  # raises where a value is outside
            assert (drawn == space.clip(drawn)).all() or np.allclose(drawn, space.clip(drawn), rtol=1e-12)


def test_a_box_is_uniform_in_the_scaled_space():
    box = Box(SPACE, np.array([25.0, 0.0]), np.array([100.0, 0.05]))
    drawn = box.sample(4000, np.random.default_rng(0))
    assert stats.kstest(np.log(drawn[:, 0]), stats.uniform(np.log(25), np.log(4)).cdf).pvalue > 0.01
    assert stats.kstest(drawn[:, 1], stats.uniform(0, 0.05).cdf).pvalue > 0.01
    assert box.mean()[0] == pytest.approx(50.0)


def test_a_gaussian_has_its_covariance_and_its_density():
    covariance = np.array([[0.04, 0.018], [0.018, 0.02]])
    belief = Gaussian(SPACE, np.array([0.1, 0.5]), covariance)
    scaled = SPACE.to_scaled(belief.sample(40_000, np.random.default_rng(0)))
    np.testing.assert_allclose(np.cov(scaled.T), covariance, rtol=0.05)


def test_a_gaussian_at_a_bound_has_no_lump_there():
    space = SPACE.select("latency.action")
    belief = Gaussian(space, space.to_scaled(np.array([0.0])), np.array([[1.0]]))
    drawn = belief.sample(4000, np.random.default_rng(0))[:, 0]
    assert stats.kstest(drawn, stats.halfnorm(scale=0.01).cdf).pvalue > 0.01


@pytest.mark.parametrize("belief", beliefs(), ids=lambda b: type(b).__name__)
def test_narrowing_shrinks_the_spread_about_the_same_mean(belief):
    narrow = belief.narrow(0.5)
    rng = np.random.default_rng(0)
    wide = SPACE.to_scaled(belief.sample(4000, rng)).std(axis=0)
    slim = SPACE.to_scaled(narrow.sample(4000, rng)).std(axis=0)
    np.testing.assert_allclose(slim, wide / 2, rtol=0.1, atol=1e-9)


@pytest.mark.parametrize("belief", beliefs(), ids=lambda b: type(b).__name__)
def test_a_saved_belief_draws_the_same_bits(belief, tmp_path):
    save(belief, tmp_path / "belief.json")
    back = load(tmp_path / "belief.json")
    assert back.space == belief.space
    a, b = (x.sample(50, np.random.default_rng(3)) for x in (belief, back))
    assert (a == b).all()
    assert list(tmp_path.iterdir()) == [tmp_path / "belief.json"]


def test_ties_and_fixed_values_survive_the_file(tmp_path):
    space = (
        Space((factor("g.k/a", 1.0, 2, 0.1), factor("g.k/b", 1.0, 2, 0.1), factor("g.c", 1.0, 2, 0.1)))
        .tie("g.k/*")
        .fix({"g.c": 2.0})
    )
    save(Point(space, space.nominal), tmp_path / "b.json")
    assert load(tmp_path / "b.json").space == space


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("{", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ("[]", "expected a JSON table"),
        ('{"format": "gapless belief 1", "kind": "point"}', "a belief of an earlier form"),
        ('{"format": "gapless belief 2", "kind": "cloud"}', "not a belief file"),
        (
            '{"format": "gapless belief 2", "kind": "point", "parameters": 3, "fixed": {}}',
            "'3' is not of type tuple",
        ),
        ('{"format": "gapless belief 2", "kind": "point", "parameters": [{"nam": 1}], "fixed": {}}', "it has no name"),
    ],
)
def test_a_broken_file_is_one_sentence(text, message, tmp_path):
    path = tmp_path / "b.json"
    path.write_text(text)
    with pytest.raises(BadInput, match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)


def test_a_missing_file_and_values_out_of_bounds(tmp_path):
    with pytest.raises(BadInput, match="there is no such file"):
        load(tmp_path / "none.json")
    save(within_tolerance(SPACE), tmp_path / "b.json")
    data = json.loads((tmp_path / "b.json").read_text())
    data["low"][1] = -1.0
    (tmp_path / "b.json").write_text(json.dumps(data))
    with pytest.raises(BadInput, match=r"b\.json: latency\.action = -1 s is outside its bounds"):
        load(tmp_path / "b.json")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Box(SPACE, np.array([60.0, 0.0]), np.array([50.0, 0.1])), "lower bound 60 is above upper bound 50"),
        (lambda: Gaussian(SPACE, np.zeros(3), np.eye(3)), "needs a mean of 2"),
        (lambda: Gaussian(SPACE, np.zeros(2), -np.eye(2)), "negative eigenvalue"),
        (lambda: Gaussian(SPACE, np.zeros(2), np.array([[1, 2.0], [0, 1]])), "symmetric"),
        (lambda: Particles(SPACE, np.zeros((0, 2)), np.zeros(0)), "at least one"),
        (lambda: Particles(SPACE, SPACE.nominal[None], np.array([0.5])), "sum to 1"),
        (lambda: Point(SPACE, SPACE.nominal).narrow(0.5) and within_tolerance(SPACE).narrow(2.0), "fraction from 0 to 1"),
    ],
)
def test_impossible_beliefs_are_refused(make, message):
    with pytest.raises(BadInput, match=message):
        make()
