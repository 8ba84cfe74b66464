"""Rounds of rollouts: what is of another policy or robot is refused, and what makes it worse is kept out."""

import dataclasses

import numpy as np
import pytest

from gapless.close import STANDIN, Case, Moved, Stages, moving, shipped
from gapless.close.moving import first_belief, move, rounds_of, updated
from gapless.close.rollouts import Asked
from gapless.errors import BadInput
from gapless.twin import Gaussian, Stated, Twin, recipe_of, save_belief, within_tolerance
from gapless.worlds import load_standin


@pytest.fixture(scope="module")
def case():
    return Case("quadruped", standin=load_standin(STANDIN), **shipped("quadruped", "velocity", Stated()))


@pytest.fixture(scope="module")
def asked(case):
    from pathlib import Path

    return Asked(case, Path(case.base), runs=2, seconds=2.0)


@pytest.fixture(scope="module")
def real(asked):
    return asked.real()


def belief_file(twin, belief, path):
    save_belief(belief, path, recipe_of(twin))
    return path


def test_rollouts_begin_alike_and_a_robot_like_the_real_one_is_nearer(asked, real):
    belief = first_belief(asked.twin)
    late = belief.space.nominal.copy()
    late[belief.space.names.index("latency.action")] = 0.05  # as the stand-in is
    costs = asked.cost(asked.simulated(np.stack([belief.space.nominal, late]), belief.space), real.seen)
    assert real.seen.shape == (2, 100, 42) and costs[1] < costs[0]


def test_rollouts_of_another_policy_are_refused(asked, real, case, tmp_path):
    other = dataclasses.replace(real, policy="0" * 64)
    path = belief_file(asked.twin, first_belief(asked.twin), tmp_path / "belief.json")
    with pytest.raises(BadInput, match="these rollouts are of another policy"):
        updated(case, Stages(tmp_path / "out"), "update", "simopt", path, asked, other)


def test_a_belief_over_parameters_that_the_worlds_lack_is_refused(asked, real, case, tmp_path):
    pendulum = Twin.load("pendulum")
    path = belief_file(pendulum, first_belief(pendulum), tmp_path / "belief.json")
    with pytest.raises(BadInput, match="stage update: .*elbow|stage update: .*shoulder"):
        updated(case, Stages(tmp_path / "out"), "update", "simopt", path, asked, real)


def test_a_belief_that_cannot_be_moved_is_refused_before_it_costs_robot_time(case, tmp_path):
    pendulum, bench = Twin.load("pendulum"), Twin.load("bench")
    other = belief_file(bench, first_belief(bench), tmp_path / "other.json")
    box = tmp_path / "box.json"
    save_belief(within_tolerance(first_belief(pendulum).space), box, recipe_of(pendulum))
    given = dataclasses.replace(case, robot="pendulum", task="swing", policy="", base=case.base)
    for path, words in ((other, "other.json: unknown parameter 'gains.kp/servo'"), (box, "box.json: rollouts move a Gaussian")):
        with pytest.raises(BadInput, match=words):
            moving.started(given, Stages(tmp_path / "out"), path)


def test_an_update_that_makes_it_worse_is_kept_out(asked, real, case, tmp_path, monkeypatch):
    belief = first_belief(asked.twin)
    path = belief_file(asked.twin, belief, tmp_path / "belief.json")
    weak = np.zeros(len(belief.space))
    weak[[i for i, n in enumerate(belief.space.names) if n.startswith("gains.kp")]] = -4.0
    monkeypatch.setitem(moving.UPDATES, "simopt", lambda *given: (Gaussian(belief.space, weak, belief.covariance), "moved"))
    found = updated(case, Stages(tmp_path / "out"), "update", "simopt", path, asked, real)
    assert not found.taken and found.said.startswith("not taken: the model at its middle is")
    from gapless.twin import load_belief

    np.testing.assert_allclose(load_belief(found.belief).mean(), belief.mean())


def test_rounds_build_on_the_policy_that_lost_least(case, tmp_path, monkeypatch):
    lost, starts = iter([0.5, 0.9, 0.1]), []

    def rolled(case, stages, name, asked):
        return dataclasses.replace(asked.nothing, lost=np.full(3, next(lost)))

    class Nothing:
        def __init__(self, case, policy, runs):
            from gapless.close.rollouts import Rollouts

            self.policy, self.nothing = policy, Rollouts("", np.zeros((3, 2, 1)), np.zeros(3))

    def train(case, stages, name, preset, belief, start, **more):
        starts.append(start.name)
        made = tmp_path / f"policy{len(starts)}"
        return made

    found = moving.Updated(tmp_path / "belief.json", True, "moved", 1.0, 0.5)
    for name, value in (("rolled_out", rolled), ("Asked", Nothing), ("trained", train), ("updated", lambda *given: found)):
        monkeypatch.setattr(moving, name, value)
    rounds = rounds_of(case, Stages(tmp_path / "out", 60.0), "simopt", 3)
    assert starts == ["quadruped_wide", "quadruped_wide"] and rounds.best == 2
    assert "lost 90% of its task on the robot, and an earlier one 50%: it is not built on" in rounds.rounds[1].said


def test_too_little_robot_time_is_said_first(case, tmp_path):
    with pytest.raises(BadInput, match="20 s of robot time are too few: two rounds of rollouts take 24 s"):
        move(dataclasses.replace(case, budget=20.0), tmp_path)


def test_a_result_loads_again(tmp_path):
    from gapless.close.moved_result import MovedRound
    from gapless.close.result import Spent
    from gapless.twin import history

    belief = first_belief(Twin.load("bench"))
    rounds = [MovedRound(1.0, True, "moved", 0.5, 0.2), MovedRound(0.0, False, "tried", float("nan"), float("nan"))]
    grown = history("bench", "simopt", "round", [0, 1], [belief, belief.narrow(0.5)])
    found = Moved(
        "bench", "swing", "simopt", "policy", 1, rounds, {"first": 0.1, "kept": 1.0}, grown, [], [Spent("a", 12.0, 3.0)]
    )
    found.save(tmp_path)
    again = Moved.load(tmp_path)
    assert again.rounds[0] == rounds[0] and again.history.names == grown.names and again.exit_code == 0
    assert "the first policy lost 100 % of its task, the kept one 0 %" in again.verdict().text.replace("\u202f", " ")
