"""`gapless course`: figures and a page, and what is refused."""

import json

import pytest

from gapless.cli import main
from gapless.learn import run_course

pytestmark = pytest.mark.xdist_group("training")  # two trainings at once are slower than one after the other


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "walk"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gapless.learn.run.UNSEEN", 4)
        patch.setattr("gapless.learn.trained.UNSEEN_SECONDS", 0.5)
        main(["train", "velocity", "--out", str(folder), "--iterations", "1", "--worlds", "4", "--threads", "1", "--json"])
    return folder


@pytest.fixture(autouse=True)
def short_course(monkeypatch):
    monkeypatch.setattr("gapless.learn.course.run", lambda *args, **kw: run_course(*args, seconds=1.5, **kw))


def run(*words):
    """A course that a policy of one iteration fails: exit code 1."""
    with pytest.raises(SystemExit) as ended:
        main(["course", *map(str, words), "--draws", "1", "--threads", "1"])
    assert ended.value.code == 1


def test_figures_are_printed_and_drawn(policy, tmp_path, capsys):
    page = tmp_path / "course.html"
    run(policy, "--robot", "quadruped", "--out", page)
    assert "velocity error" in capsys.readouterr().out
    assert "vx +1.0, vy -0.3, yaw_rate +0.8" in page.read_text()
    run(policy, "--json")
    figures = json.loads(capsys.readouterr().out)["figures"]
    assert figures["runs"] == 36
    assert {"falls", "velocity_error", "yaw_error", "cost_of_transport", "torque_margin", "roughness"} <= figures.keys()
    run(policy, "--json")
    assert json.loads(capsys.readouterr().out)["figures"] == figures  # the same robots each time


def test_a_policy_is_judged_on_terrain_and_falls_are_shown_by_its_hardness(policy, tmp_path, capsys):
    page = tmp_path / "course.html"
    run(policy, "--terrain", "steps", "--out", page)
    assert "By hardness of the ground" in page.read_text()
    capsys.readouterr()
    figures = []
    for options in (["--terrain", "steps"], ["--terrain", "flat"], []):
        run(policy, *options, "--json")
        figures.append(json.loads(capsys.readouterr().out)["figures"])
    assert figures[0] != figures[1] == figures[2]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--draws", "0"], "--draws: a whole number from 1"),
        (["--robot", "biped"], "the policy is for a robot with joints FL_hip"),
        (["--out", "nowhere/course.html"], "there is no folder nowhere"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_2(policy, options, sentence, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["course", str(policy), *options])
    assert stop.value.code == 2
    assert sentence in capsys.readouterr().err


def test_a_folder_without_a_policy_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["course", str(tmp_path)])
    assert stop.value.code == 2
    assert "has no policy.onnx" in capsys.readouterr().err
