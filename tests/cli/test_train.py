"""`gapless train`: a small training from the command line, going on, and what is refused."""

import contextlib
import json

import numpy as np
import pytest
from rich.console import Console

from gapless.cli import main
from gapless.errors import BadInput
from gapless.learn import PPOSettings, Run, dashboard, train

pytestmark = pytest.mark.xdist_group("training")  # two trainings at once are slower than one after the other

SMALL = ["--iterations", "2", "--worlds", "6", "--threads", "1"]


@pytest.fixture(autouse=True)
def few_unseen_robots(monkeypatch):
    monkeypatch.setattr("gapless.learn.run.UNSEEN", 4)
    monkeypatch.setattr("gapless.learn.trained.UNSEEN_SECONDS", 0.5)
    monkeypatch.setattr("gapless.learn.clip.SECONDS", 0.2)
    monkeypatch.setattr(
        "gapless.learn.clip.studio", lambda *_: contextlib.nullcontext(lambda data: np.zeros((3, 4, 3), np.uint8))
    )


def test_a_training_leaves_a_policy_and_says_how_it_went(tmp_path, capsys):
    out = tmp_path / "run"
    main(["train", "swing", "--robot", "bench", "--out", str(out), "--json", *SMALL])
    said = json.loads(capsys.readouterr().out)
    assert said["policy"] == str(out)
    assert said["iterations"] == 2
    assert (out / "policy.onnx").is_file()
    with pytest.raises(SystemExit) as stop:
        main(["train", "swing", "--robot", "bench", "--out", str(out), *SMALL])
    assert stop.value.code == 2
    assert "of an earlier run; name another folder" in capsys.readouterr().err
    main(["train", "swing", "--out", str(out), "--resume", "--json"])
    assert json.loads(capsys.readouterr().out)["iterations"] == 0  # it was done


def test_a_clip_of_the_policy_ends_a_training(tmp_path, capsys, monkeypatch):
    main(["train", "swing", "--robot", "bench", "--out", str(tmp_path / "run"), *SMALL])
    assert (tmp_path / "run" / "clip.png").read_bytes().startswith(b"\x89PNG")
    said = capsys.readouterr().err
    assert f"filmed into {tmp_path / 'run' / 'clip.png'}" in said
    assert "height 0." in said  # what the task offers to watch

    def blind(*_):
        raise BadInput("cannot draw, as OpenGL does not start")

    monkeypatch.setattr("gapless.learn.clip.studio", blind)
    main(["train", "velocity", "--residual", "--out", str(tmp_path / "blind"), *SMALL])  # no error
    assert "no clip: cannot draw, as OpenGL does not start" in capsys.readouterr().err
    assert not (tmp_path / "blind" / "clip.png").exists()
    table = json.loads((tmp_path / "blind" / "contract.json").read_text())
    assert len(table["action"]["reference"]["table"]) == 32


def test_the_dashboard_shows_errors_in_tracking_in_their_units(tmp_path):
    seen, run = [], Run("velocity", "quadruped", settings=PPOSettings(worlds=6, steps=8, iterations=1))
    train(run, tmp_path, seen.append, threads=1)
    console = Console(width=100, record=True, quiet=True)
    with console.capture() as said:
        console.quiet = False
        console.print(dashboard(seen[-1], run, 1.0))
    for name, unit in (("velocity_error", "m/s"), ("yaw_error", "rad/s")):
        row = next(r for r in said.get().splitlines() if name.replace("_", " ") in r)
        assert f"{seen[-1].progress.metrics[name]:.3f} {unit}" in row
    assert "steps/s" in said.get()


def test_ctrl_c_is_a_stop_in_good_order(tmp_path, capsys, monkeypatch):

    def interrupted(run, folder, tell, *rest):
        def once(news):
            tell(news)
            raise KeyboardInterrupt

        train(run, folder, once, *rest)

    monkeypatch.setattr("gapless.learn.train", interrupted)
    main(["train", "swing", "--robot", "bench", "--out", str(tmp_path / "run"), "--json", *SMALL])
    captured = capsys.readouterr()
    assert "stopped at iteration 1" in captured.err
    said = json.loads(captured.out, parse_constant=pytest.fail)  # Infinity is no JSON
    assert said["iterations"] == said["best_iteration"] == 1
    assert (tmp_path / "run" / "policy.onnx").is_file()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["velocity", "--robot", "arm"], "arm has no feet"),
        (["walk"], "unknown task 'walk'"),
        (["velocity", "--preset", "narrow"], "give one with --belief"),
        (["velocity", "--iterations", "0"], "iterations"),
        (["velocity", "--rate", "3"], "rate"),
        (["velocity", "--seed", "-1"], "seed"),
        (["stand", "--residual"], "stand has no gait that a residual could be added to"),
        (["velocity", "--resume"], "there is no such file"),
        (["velocity", "--from", "nowhere"], "there is no such file"),
        (["velocity", "--adr", "--preset", "wide"], "give either --adr or --preset"),
        (["velocity", "--adr", "--adr-grow", "0.1"], "both are shares from 0 to 1, the first larger, or they can never be met"),
        (["velocity", "--adr", "--adr-grow", "1.2"], "adr_grow"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_2(options, sentence, tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["train", *options, "--out", str(tmp_path / "run")])
    assert stop.value.code == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1
