"""Searches: what they find on a function whose best is known, what they count, and when they give up."""

import numpy as np
import pytest

from gapless.adapt import SEARCHES, Trial, adapt, load_teacher, search, train_adaptive, tune
from gapless.check import check
from gapless.cli import main
from gapless.errors import BadInput
from gapless.learn import train
from gapless.policy import load_policy
from tests.adapt import made

pytestmark = pytest.mark.xdist_group("training")

BEST = np.array([0.6, -0.5, 0.3])


def bowl(noise=0.0, rng=None):
    def robot(z):
        lost = ((z - BEST) ** 2).sum(axis=1) + (noise * rng.standard_normal(len(z)) if noise else 0.0)
        return [Trial(each, float(-far), False, 6.0) for each, far in zip(z, lost, strict=True)]

    return robot


@pytest.mark.parametrize("method", ["cma", "bayes", "awr", "hill"])
def test_a_search_comes_nearer_than_the_middle_and_than_chance(method):
    away, blind = [], []
    for seed in range(3):
        for name, into in ((method, away), ("random", blind)):
            rng = np.random.default_rng(seed)
            found = search(bowl(0.05, rng), SEARCHES[name](3, rng), 3, 50)
            into.append(np.linalg.norm(found.z - BEST))
            assert len(found.trials) <= 50
    assert np.mean(away) < min(0.5 * np.linalg.norm(BEST), np.mean(blind))


def test_the_first_trial_is_of_what_training_was_in_the_middle_of_and_trials_are_counted():
    seen = []
    found = search(bowl(), SEARCHES["awr"](3, np.random.default_rng(0)), 3, 25, lambda trials: seen.append(len(trials)))
    assert found.trials[0].z.tolist() == [0.0, 0.0, 0.0]
    assert seen == [1, 11, 21, 25]
    assert not found.stopped


@pytest.mark.parametrize("method", list(SEARCHES))
def test_a_search_whose_every_trial_falls_stops_and_keeps_the_best(method):
    def robot(z):
        return [Trial(each, float(each[0]), True, 0.5) for each in z]

    found = search(robot, SEARCHES[method](3, np.random.default_rng(0)), 3, 200)
    assert 10 <= len(found.trials) <= 30
    assert "trials fell" in found.stopped
    assert found.z[0] == max(t.z[0] for t in found.trials)


def test_a_budget_of_nothing_is_refused():
    with pytest.raises(BadInput, match="a budget of 1 to 10000 trials on the robot, not 0"):
        search(bowl(), SEARCHES["cma"](3, np.random.default_rng(0)), 3, 0)


@pytest.fixture(scope="module")
def teacher(tmp_path_factory):
    folder = tmp_path_factory.mktemp("teacher")
    with pytest.MonkeyPatch.context() as patch:
        made.few(patch)
        train_adaptive("teacher", made.run(), folder / "t", threads=1, latent=3)
    return folder / "t"


def test_a_policy_is_adapted_to_a_stand_in_and_then_needs_no_truth(teacher, tmp_path, monkeypatch):
    made.few(monkeypatch)
    result = adapt(teacher, str(made.standin(tmp_path)), tmp_path / "out", 12, "cma", threads=1)
    policy = load_policy(tmp_path / "out")
    assert policy.contract.context.provider == "search"
    assert policy.contract.context.value == pytest.approx(result.z)
    whole = result.fell == 0
    assert result.seconds[whole] == pytest.approx(6.0) and (result.seconds[~whole] < 6.0).all()
    assert "s of robot time" in result.verdict().text
    checked = check(str(tmp_path / "out"), "pendulum", seconds=1.0)
    assert not [c for c in checked.checks if c.status == "fail"]
    with pytest.raises(BadInput, match="without being told a context"):
        load_teacher(tmp_path / "out")


def test_a_plain_policy_is_tuned_on_the_robot_in_counted_seconds(tmp_path, monkeypatch):
    made.few(monkeypatch)
    train(made.run(), tmp_path / "plain", threads=1, iterations=1)
    result = tune(tmp_path / "plain", str(made.standin(tmp_path)), tmp_path / "out", 8, threads=1)
    assert result.seconds.tolist() == [24.0, 24.0]  # four episodes of 6 s for each update
    assert len(result.before) == len(result.after) == 36
    assert not (result.before == result.after).all()
    assert load_policy(tmp_path / "out").contract.width == load_policy(tmp_path / "plain").contract.width
    with pytest.raises(BadInput, match="a budget of 4 to 10000 episodes"):
        tune(tmp_path / "plain", "pendulum", tmp_path / "out", 3)


def test_bad_input_of_the_command_is_one_sentence(teacher, tmp_path, capsys, monkeypatch):
    made.few(monkeypatch)
    train(made.run(), tmp_path / "plain", threads=1, iterations=1)
    for words, sentence in (
        ([str(tmp_path / "plain"), "--robot", "pendulum"], "trained without being told a context"),
        ([str(teacher), "--robot", "arm"], "this one has no shoulder, elbow"),
        ([str(teacher), "--robot", "pendulum", "--budget", "0"], "a budget of 1 to 10000 trials"),
        ([str(teacher), "--robot", "udp://127.0.0.1:7447"], "no live robot measures"),
        ([str(teacher), "--robot", "nowhere.toml"], "there is no such file"),
    ):
        with pytest.raises(SystemExit) as stop:
            main(["adapt", *words, "--out", str(tmp_path / "x")])
        assert stop.value.code == 2
        said = capsys.readouterr().err
        assert sentence in said and said.count("\n") == 1
