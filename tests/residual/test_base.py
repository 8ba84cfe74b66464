"""A learned pull at a floating base: what it does in worlds, its bounds, and files that do not fit."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.residual.base import _blank
from gapless.twin import Point, Residual, Twin, Wrench, load_recipe, recipe_of, save_belief
from gapless.worlds import Worlds

ASIDE = np.array([np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)])  # a quarter turn about the vertical


def wrench(**weights: float) -> Wrench:
    """At most 10 N and 2 N m; weights by their place."""
    members = [0.0] * 12
    for name, weight in weights.items():
        members[int(name[1:])] = weight
    return Wrench(10.0, 2.0, (-1.0,) * 6, (1.0,) * 6, tuple(members))


def fell(base: Wrench | None, speed: float = 0.0) -> np.ndarray:
    """Velocity of a quadruped in free fall after a period, turned aside, moving along its own x at first. Shape: (6,)."""
    twin = Twin.load("quadruped")
    twin = twin if base is None else twin.plus(Residual(base=base))
    worlds = Worlds(twin, 1, Point(twin.space, twin.space.nominal), threads=1)
    pose, qvel = twin.home.copy(), np.zeros(twin.model.nv)
    pose[2], pose[3:7], qvel[1] = 3.0, ASIDE, speed
    worlds.reset(qpos=pose, qvel=qvel, redraw=False)
    worlds.step(worlds.home_command)
    return worlds.qvel[0, :6].copy()


def test_a_pull_along_the_bases_own_axis_moves_the_robot_as_newton_says() -> None:
    twin = Twin.load("quadruped")
    gained = fell(wrench(_0=1.0)) - fell(None)  # a weight of 1 is half the bound: 5 N along x, which is y of the world
    assert twin.mass * gained[1] == pytest.approx(5.0 * twin.control_dt, rel=0.02)
    assert abs(gained[0]) + abs(gained[2]) < 0.02 * gained[1]


def test_what_grows_with_speed_stays_within_its_range_and_bound() -> None:
    twin = Twin.load("quadruped")
    drag = wrench(_6=-1.0)
    slow, fast = (twin.mass * (fell(drag, v) - fell(None, v))[1] / twin.control_dt for v in (1.0, 5.0))
    assert slow == pytest.approx(-5.0, rel=0.05) and fast == pytest.approx(slow, rel=0.05)  # clipped beyond 1 m/s
    every = drag.at(np.random.default_rng(0).normal(0, 3, (100, 6)), np.full((100, 12), 50.0))
    assert np.abs(every[:, :3]).max() <= 10.0 and np.abs(every[:, 3:]).max() <= 2.0
    assert drag.outside(np.array([[0.0] * 6, [2.0] + [0.0] * 5])).tolist() == [False, True]


def test_it_is_kept_in_a_belief_and_starts_at_nothing(tmp_path: Path) -> None:
    twin = Twin.load("quadruped")
    blank = _blank(twin, np.random.default_rng(0).normal(size=(500, 6)))
    assert blank.force == pytest.approx(0.2 * twin.mass * 9.81, rel=0.01) and not any(blank.members)
    grown = twin.plus(Residual(base=replace(blank, members=(0.5,) + (0.0,) * 11)))
    save_belief(Point(grown.space, grown.space.nominal), tmp_path / "belief.json", recipe_of(grown))
    again = load_recipe("quadruped", tmp_path / "belief.json")
    assert again.mechanisms[-1] == grown.mechanisms[-1] and again.space.names == grown.space.names


def test_a_pull_of_another_robot_or_a_cut_file_gets_a_sentence() -> None:
    with pytest.raises(BadInput, match="does not move"):
        Twin.load("arm").plus(Residual(base=wrench()))
    with pytest.raises(BadInput, match="twelve weights"):
        replace(wrench(), members=(0.0,) * 5)
