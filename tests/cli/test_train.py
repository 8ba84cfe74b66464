"""`gapless train`: a small training from the command line, going on, and what is refused."""

import json

import pytest

from gapless.cli import main
from gapless.learn import run as runs

SMALL = ["--iterations", "2", "--worlds", "6", "--threads", "1"]


@pytest.fixture(autouse=True)
def few_held_out_worlds(monkeypatch):
    monkeypatch.setattr(runs, "HELD_OUT", 4)
    monkeypatch.setattr(runs, "HELD_OUT_SECONDS", 0.5)


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
    assert "holds a run already: go on with --resume" in capsys.readouterr().err
    main(["train", "swing", "--out", str(out), "--resume", "--json"])
    assert json.loads(capsys.readouterr().out)["iterations"] == 0  # it was done


def test_ctrl_c_is_a_stop_in_good_order(tmp_path, capsys, monkeypatch):
    train = runs.train

    def interrupted(run, folder, tell, *rest):
        def once(news):
            tell(news)
            raise KeyboardInterrupt

        train(run, folder, once, *rest)

    monkeypatch.setattr(runs, "train", interrupted)
    main(["train", "swing", "--robot", "bench", "--out", str(tmp_path / "run"), "--json", *SMALL])
    captured = capsys.readouterr()
    assert "stopped at iteration 1" in captured.err
    assert json.loads(captured.out)["iterations"] == 1
    assert (tmp_path / "run" / "policy.onnx").is_file()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["velocity", "--robot", "arm"], "arm has no feet"),
        (["walk"], "unknown task 'walk'"),
        (["velocity", "--preset", "narrow"], "give one with --belief"),
        (["velocity", "--iterations", "0"], "--iterations must be at least 1"),
        (["velocity", "--rate", "3"], "--rate must be between 0 and 1"),
        (["velocity", "--seed", "-1"], "--seed must not be negative"),
        (["velocity", "--resume"], "there is no such file"),
        (["velocity", "--from", "nowhere"], "there is no such file"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_2(options, sentence, tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["train", *options, "--out", str(tmp_path / "run")])
    assert stop.value.code == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1
