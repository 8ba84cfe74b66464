"""A belief over time: widths in nats, and whether the truth is held."""

import numpy as np
import pytest

from gapless.twin import BeliefHistory, Box, Gaussian, Twin, belief_entropy, history


@pytest.fixture(scope="module")
def space():
    return Twin.load("bench").space.select("gains.kp/servo", "latency.action")


def box(space, width):
    middle = np.array([1.0, 1.0])
    return Box(space, space.from_scaled(middle - width / 2), space.from_scaled(middle + width / 2))


def test_entropy_is_the_mean_logarithm_of_widths(space):
    assert belief_entropy(box(space, 0.5)) == pytest.approx(np.log(0.5))
    normal = Gaussian(space, np.full(2, 3.0), 0.01 * np.eye(2))
    assert belief_entropy(normal) == pytest.approx(np.log(2 * 1.645 * 0.1), abs=0.05)


def test_a_history_says_how_it_moved_and_whether_it_holds_the_truth(space, tmp_path):
    truth = {"latency.action": 0.0109, "unknown": 1.0}
    found = history("bench", "simopt", "round", [0, 1], [box(space, 1.0), box(space, 0.1)], truth, ["round 1: said"])
    assert found.held == {"latency.action": False}
    assert "shrank: entropy 0.00 to -2.30 nats" in found.verdict().text and "in 0 of 1" in found.verdict().text
    found.save(tmp_path)
    again = BeliefHistory.load(tmp_path)
    np.testing.assert_allclose(again.low, found.low)
    assert again.said == ["round 1: said"] and "gains.kp/servo" in (tmp_path / "report.html").read_text()
