"""Which command to ask for: one that tells more than another, and none under which robots fall."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from gapless.close import STANDIN, Case, shipped
from gapless.close.asking import left, telling_command
from gapless.close.moving import first_belief
from gapless.close.rollouts import Asked, stopped
from gapless.twin import Stated
from gapless.worlds import load_standin

RANGES = [(-0.5, 1.0), (-0.4, 0.4), (-1.0, 1.0)]


@pytest.fixture(scope="module")
def asked():
    case = Case("quadruped", standin=load_standin(STANDIN), **shipped("quadruped", "velocity", Stated()))
    return Asked(case, Path(case.base), runs=1, seconds=4.0)


def test_runs_that_ended_stand_still():
    seen = np.random.default_rng(0).standard_normal((2, 1, 10, 3))
    seen[1, 0, 6:] = seen[1, 0, 6]
    assert stopped(seen).tolist() == [[False], [True]]


def test_the_searched_command_is_in_range_and_tells_more_than_standing_still(asked, monkeypatch):
    monkeypatch.setattr("gapless.close.asking.GENERATIONS", 1)
    monkeypatch.setattr("gapless.close.worth.ROBOTS", 150)
    belief, metric = first_belief(asked.twin, 0.3), np.eye(len(first_belief(asked.twin).space))
    found = telling_command(asked, RANGES, belief, metric, np.random.default_rng(0))
    assert all(low <= c <= high for c, (low, high) in zip(found, RANGES, strict=True))
    searched, still = (left(asked, c, belief, metric, 7) for c in (found, np.zeros(3)))
    assert searched < still < 1


def test_a_command_under_which_robots_fall_is_none(asked):
    belief = first_belief(asked.twin, 0.3)
    late = belief.centre.copy()
    late[belief.space.names.index("latency.action")] = 9.0  # 90 ms: no policy of the built-in robot walks with that
    falling = dataclasses.replace(belief, centre=late)
    assert left(asked, np.array([0.8, 0.0, 0.0]), falling, np.eye(len(late)), 0) > 1


def test_standing_still_on_command_loses_nothing(asked):
    asked.commands = np.zeros((1, 3))
    assert asked.real().lost.tolist() == [0.0]
