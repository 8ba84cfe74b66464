"""The loop's decisions: what is tuned, what is tried, what is kept, and when it says no."""

import dataclasses
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from gapless.close import STANDIN, TECHNIQUES, Case, Closed, Stages, Technique, applied, loop, shipped
from gapless.close.belief import Identified
from gapless.close.field import changed_causes, field_twin, named, tried
from gapless.close.result import Blamed, Found, Scored, Spent
from gapless.errors import BadInput
from gapless.twin import Stated
from gapless.worlds import load_standin


@pytest.fixture(scope="module")
def case():
    return Case("quadruped", standin=load_standin(STANDIN), **shipped("quadruped", "velocity", Stated()))


def chosen(monkeypatch, case, tmp_path, trials, expected=(0.1, 0.5), belief=Path("belief.json"), after=None, check="pass"):
    """What the loop chooses where stages come out as stated."""
    tuned = []
    known = Identified(SimpleNamespace(), belief, True, "The fit is not used: it does not predict.")
    checked = SimpleNamespace(outcome=check, verdict=lambda: SimpleNamespace(text="FAIL: joint order"))
    monkeypatch.setattr(loop, "_expected", lambda *given: expected)
    monkeypatch.setattr(loop, "trained", lambda *given, **more: tuned.append(more) or tmp_path)
    monkeypatch.setattr(loop, "_checked", lambda *given: checked)
    monkeypatch.setattr(loop, "tried", lambda *given: np.array(after))
    policies = {"as it was": Path("nominal"), "wide": Path("wide")}
    given = {name: np.array(each, float) for name, each in trials.items()}
    old = loop._old(case, Stages(tmp_path), given, policies, belief)
    choice, _ = loop._choose(case, Stages(tmp_path), policies, given, known, old, "tuned")
    return choice, tuned


FALLS = {"as it was": [1, 1], "wide": [1, 0.3, 0.3, 1]}
WALKS = {"as it was": [1, 1], "wide": [0.2, 0.2, 0.2, 0.2]}


def test_the_better_on_the_robot_is_kept_and_a_lopsided_belief_is_not_mirrored(monkeypatch, case, tmp_path):
    choice, tuned = chosen(monkeypatch, case, tmp_path, FALLS, after=[0.2] * 4)
    assert (choice.answer, choice.kept) == ("closed", "tuned") and tuned == [{"mirror": False}]
    choice, _ = chosen(monkeypatch, case, tmp_path, FALLS, after=[1.0] * 4)
    assert (choice.answer, choice.kept) == ("kept", "wide")


def test_of_two_policies_that_few_trials_cannot_tell_apart_simulation_names_the_better(monkeypatch, case, tmp_path):
    policies = {"as it was": Path("nominal"), "wide": Path("wide")}
    monkeypatch.setattr(loop, "_expected", lambda c, s, name, policy, belief: (0.0, {"as it was": 0.6, "wide": 0.3}[name]))

    def old(first, base):
        return loop._old(case, Stages(tmp_path), {"as it was": np.array(first), "wide": np.array(base)}, policies, None)

    assert old([0.30, 0.40], [0.45, 0.35, 0.4, 0.4]) == "wide"
    assert old([0.30, 0.40], [1.00, 0.35, 0.4, 0.4]) == "as it was"


def test_where_nothing_is_to_gain_or_the_fit_does_not_predict_nothing_is_tuned(monkeypatch, case, tmp_path):
    choice, tuned = chosen(monkeypatch, case, tmp_path, WALKS, expected=(0.2, 0.21))
    assert (choice.answer, choice.kept, tuned) == ("nothing to gain", "wide", [])
    choice, tuned = chosen(monkeypatch, case, tmp_path, WALKS, expected=(0.97, 0.94), after=[0.1] * 4)
    assert choice.answer == "closed" and tuned  # a policy that works nowhere has much to gain
    choice, tuned = chosen(monkeypatch, case, tmp_path, FALLS, expected=(0.2, 0.21), after=[0.2] * 4)
    assert choice.answer == "closed" and tuned  # simulation sees nothing to gain, but it fell on the robot
    choice, tuned = chosen(monkeypatch, case, tmp_path, FALLS, belief=None)
    assert (choice.answer, choice.kept, tuned) == ("not trusted", "wide", [])


def test_a_policy_that_fails_its_check_does_not_reach_the_robot(monkeypatch, case, tmp_path):
    choice, _ = chosen(monkeypatch, case, tmp_path, FALLS, check="fail")
    assert (choice.answer, choice.kept) == ("kept", "wide") and "not tried: FAIL: joint order" in choice.why


def test_hardware_is_tried_by_its_owner(monkeypatch, tmp_path):
    case = Case("quadruped", logs=("log.npz",), **shipped("quadruped", "velocity", Stated()))
    choice, _ = chosen(monkeypatch, case, tmp_path, {})
    assert (choice.answer, choice.kept) == ("untried", "tuned")
    with pytest.raises(BadInput, match="neither logs of the robot nor a stand-in"):
        Case("quadruped")
    with pytest.raises(BadInput, match="cannot be recorded or tried from here"):
        _ = case.secret


def test_another_round_is_worth_it_only_while_the_policy_fails_and_there_is_robot_time(case, tmp_path):
    trials, choice = {"tuned": np.array([0.1, 1.0])}, loop.Choice("closed", "tuned", "")
    long = dataclasses.replace(case, budget=100.0)
    assert loop._worth_another(long, Stages(tmp_path), trials, choice)
    assert not loop._worth_another(dataclasses.replace(case, budget=30.0), Stages(tmp_path), trials, choice)
    assert not loop._worth_another(long, Stages(tmp_path), {"tuned": np.array([0.1, 0.2])}, choice)
    assert not loop._worth_another(long, Stages(tmp_path), trials, loop.Choice("nothing to gain", "tuned", ""))


def test_too_little_robot_time_is_refused_before_any_is_spent(case, tmp_path):
    with pytest.raises(BadInput, match=r"30 s of robot time are too few: .* take 60 s \(--robot-time\)"):
        loop.close(dataclasses.replace(case, budget=30.0), tmp_path)


def test_the_policies_that_come_along_run_on_the_stand_in_which_the_nominal_one_does_not_master(case, tmp_path):
    stages = Stages(tmp_path)
    lost = [tried(case, stages, name, Path(folder), 2).mean() for name, folder in (("a", case.policy), ("b", case.base))]
    assert 0 < lost[1] < lost[0] <= 1 and stages.spent == 16.0


def test_secrets_are_told_as_a_fit_sees_them(case):
    truth = named(case.secret)
    twin, values = field_twin(case.secret)
    secrets = dict(zip(twin.space.names, values, strict=True))
    assert truth["latency.action"] == pytest.approx(0.05 + secrets["latency.jitter"] / 2)
    assert truth["gains.kp/FL_hip"] == pytest.approx(0.6 * secrets["gains.kp/FL_hip"])
    assert {"latency.action", "friction.coulomb", "inertia.payload", "backlash.width"} <= changed_causes(case.secret)


def test_techniques_follow_the_protocol_and_a_new_one_joins_by_being_written(case, tmp_path):
    names = [t.name for t in TECHNIQUES]
    assert len(set(names)) == len(names) and [t.name for t in TECHNIQUES if t.cheats] == ["oracle"]
    rounds, one_log = {"simopt", "bayessim", "autotuned"}, {"delta", "mean", "belief", "informed"}
    trials = {"search", "es_maml", "maml", "norml", "inverse"}
    assert {t.name for t in TECHNIQUES if t.robot} == one_log | rounds | trials
    own = Technique("own", "does nothing for 3 s", lambda c, s: s.run("own", {}, lambda f: None, lambda f: f, robot=3.0))
    outcome = applied(own, case, tmp_path, lambda text, left: None)
    assert (outcome.policy, outcome.robot) == (tmp_path / "own", 3.0)


def test_the_measured_oracle_is_that_of_the_stand_in_and_policies_that_come_along(case):
    measured = loop.read_json(loop.MEASURED)
    assert measured["key"] == loop.oracle_key(case)
    assert measured["key"] != loop.oracle_key(dataclasses.replace(case, seed=1))


def result(**more):
    course = {"as it was": Scored(0.92, 0.08, 0.53, 0.4, 72), "tuned": Scored(0.05, 0.9, 0.14, 0.1, 72)}
    numbers = [Found("gains.kp/a", 50, 31, 20, 40, "N m/rad", 30.0), Found("gains.kp/b", 50, 31, 35, 40, "N m/rad", 30.0)]
    made = Closed(
        robot="quadruped", task="velocity", budget=60.0, answer="closed", kept="tuned", policy="out/tuned", why="It is better.",
        trials={"as it was": [1.0, 1.0], "tuned": [0.2]}, course=course, causes=[Blamed("latency.action", 0.8, True)],
        missed=["inertia.payload"], numbers=numbers, gap=0.09, left=0.002, walked=False, unknown=["payload: not shown"],
        verdicts={"gap": "far"}, curve=[(10, 2.0), (20, 3.0)], spent=[Spent("log", 20.0, 1.0)],
    )  # fmt: skip
    return dataclasses.replace(made, **more)


def test_a_result_says_what_it_came_to_saves_itself_and_loads_again(tmp_path):
    made = result()
    text = made.verdict().text
    assert "fell in 92 % of 72 runs as it was and falls in 5" in text and "0.530 to 0.140 m/s" in text
    assert made.exit_code == 0 and result(answer="not trusted").exit_code == 3
    hardware = result(trials={}, course={}, spent=[Spent("fit", 0.0, 1.0)])
    assert "robot time" not in hardware.verdict().text and "The policies on the robot" not in str(hardware)
    made.save(tmp_path)
    assert Closed.load(tmp_path).json() == made.json()
    page = (tmp_path / "report.html").read_text()
    assert "1 of 2" in page and "inertia.payload" in page
