"""`gapless gap`: a verdict, JSON under fixed keys, a folder with a report; and one sentence for what cannot be measured."""

import json
from pathlib import Path

import numpy as np
import pytest

from gapless.cli import main
from gapless.logs import Log, read, write
from gapless.twin import Twin
from tests.data import DATA, needs_data


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Two runs of the same motion by one stand-in, and a table of losses."""
    folder = tmp_path_factory.mktemp("gap")
    spec = folder / "s.toml"
    spec.write_text('robot = "bench"\ntolerance = 0\n[change]\n"gains.kp/*" = "x0.6"\n[sensors]\nnoise_q = 0.0005\n')
    main(["standin", str(spec), "--seconds", "10", "--out", str(folder / "log.npz")])
    other = folder / "t.toml"
    other.write_text("seed = 5\n" + spec.read_text())
    main(["standin", str(other), "--seconds", "10", "--out", str(folder / "again.npz")])
    (folder / "task.json").write_text('{"latency.action": 0.1, "gains.kp": 0.4}')
    return folder


def fails(capsys, *argv: str) -> str:
    capsys.readouterr()
    with pytest.raises(SystemExit) as caught:
        main(["gap", *argv])
    assert caught.value.code == 2
    error = capsys.readouterr().err.strip()
    assert "\n" not in error
    return error


def test_a_gap_is_measured_explained_and_written(folder, capsys):
    capsys.readouterr()
    out = folder / "out"
    main(["gap", "bench", str(folder / "log.npz"), "--task", str(folder / "task.json"), "--out", str(out), "--json"])
    said = json.loads(capsys.readouterr().out)
    assert set(said) == {"verdict", "gap", "explanation", "phases"}
    why, figures = said["explanation"], said["gap"]["figures"]
    assert why["mechanisms"][0]["name"] == "gains.kp"
    assert set(why["mechanisms"][0]) >= {"name", "share", "low", "high", "group"}
    assert why["remainder"]["share"] < 0.1
    assert list(why["task"].items()) == [("gains.kp", 0.4), ("latency.action", 0.1)]
    assert why["next"]
    assert figures["means"]["twin"]["free"] < 0.3 * figures["error"]
    assert figures["noise"] == pytest.approx(0.0005, rel=0.3)
    assert "gains.kp" in said["verdict"]
    assert json.loads((out / "gap.json").read_text()) == said
    assert len(said["gap"]["origin"]["sha256"][str(folder / "log.npz")]) == 64
    assert sorted(p.name for p in out.iterdir()) == ["gap.json", "report.html"]
    assert 'src="http' not in (out / "report.html").read_text()


def test_the_same_commands_twice(folder, capsys, tmp_path):
    logs = [str(folder / n) for n in ("log.npz", "again.npz")]
    capsys.readouterr()
    main(["gap", *logs, "--experiment", "replay", "--json", "--out", str(tmp_path / "x")])
    said = json.loads(capsys.readouterr().out)
    assert "differs from itself" in said["verdict"]
    assert said["twin"] is None
    assert said["itself"]["growth"]["rate"] is None
    assert sorted(p.name for p in (tmp_path / "x").iterdir()) == ["experiment.json", "report.html"]
    main(["gap", "bench", *logs, "--experiment", "replay"])
    shown = capsys.readouterr().out
    assert "robot beside itself" in shown
    assert "twin beside robot" in shown


def test_what_a_twin_recorded_is_the_twins(folder, capsys, tmp_path):
    log = read(folder / "log.npz")
    write(Log(log.signals, log.joints, log.provenance, {"twin": True}), tmp_path / "twin.npz")
    capsys.readouterr()
    main(["gap", str(tmp_path / "twin.npz"), str(folder / "again.npz"), "--experiment", "replay", "--json"])
    said = json.loads(capsys.readouterr().out)
    assert said["itself"] is None
    assert "Given the same commands, the twin differs from the robot" in said["verdict"]


def test_bad_input_is_one_sentence_and_exit_2(folder, capsys, tmp_path):
    log = str(folder / "log.npz")
    joints = Twin.load("bench").joints
    short = read(log).slice(0.0, 2.0)
    write(short, tmp_path / "short.npz")
    still = {"q": np.zeros((400, 1)), "q_cmd": np.zeros((400, 1))}
    write(Log.from_arrays(joints, np.arange(400) * 0.02, still), tmp_path / "still.npz")
    no_q = Log({"q_cmd": read(log)["q_cmd"]}, joints)
    write(no_q, tmp_path / "no_q.npz")
    write(read(log).rename({joints[0]: "tail"}), tmp_path / "other.npz")
    (tmp_path / "list.json").write_text("[1, 2]")
    (tmp_path / "words.json").write_text('{"gains": "much"}')
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / "taken").write_text("")
    cases = [
        (["bench"], "name at least one log"),
        (["benc", log], "unknown robot"),
        (["bench", str(tmp_path / "short.npz")], "only 2.0 s of usable data"),
        (["bench", str(tmp_path / "still.npz")], "no joint moves"),
        (["bench", str(tmp_path / "no_q.npz")], "no joint positions"),
        (["bench", log, str(tmp_path / "other.npz")], "are of different robots"),
        (["arm", log], "no q of shoulder_pan"),
        (["quadruped", log], "no orientation (signal quat)"),
        (["bench", log, "--task", str(tmp_path / "none.json")], "none.json"),
        (["bench", log, "--task", str(tmp_path / "list.json")], "expected a JSON table"),
        (["bench", log, "--task", str(tmp_path / "words.json")], "one number for each mechanism"),
        (["bench", log, "--task", str(tmp_path / "bad.json")], "not valid JSON"),
        (["bench", log, "--out", str(tmp_path / "taken")], "not a folder"),
        (["bench", log, "--kp=-3"], "kp must be a positive"),
        ([log, "--experiment", "replay"], "name a second log of the same commands"),
        ([log, str(tmp_path / "other.npz"), "--experiment", "replay"], "are of different robots"),
        ([str(tmp_path / "none.npz"), log, "--experiment", "replay"], "none.npz: there is no such"),
    ]
    before = sorted(p.name for p in tmp_path.iterdir())
    for argv, sentence in cases:
        assert sentence in fails(capsys, *argv), argv
    assert sorted(p.name for p in tmp_path.iterdir()) == before


@needs_data
def test_a_real_arm_differs_from_itself(capsys):
    motion = DATA / "so101/motions/actuator_bandwidth"
    main(["gap", str(motion), "--mapping", "so101", "--experiment", "replay", "--json"])
    said = json.loads(capsys.readouterr().out)
    assert "does not grow" in said["verdict"]
    assert len(said["itself"]["pairs"]) >= 10


def test_measure_only_does_not_look_for_causes_and_says_a_line_a_stage(folder, capsys, tmp_path):
    capsys.readouterr()
    main(["gap", "bench", str(folder / "log.npz"), "--measure-only", "--out", str(tmp_path / "far")])
    said = capsys.readouterr()
    assert "The model is" in said.out
    assert "Because of" not in said.out
    assert said.err.splitlines()[0] == "measuring how far the model is off"
    assert sorted(p.name for p in (tmp_path / "far").iterdir()) == ["errors.json", "report.html"]
    assert "--overwrite" in fails(capsys, "bench", str(folder / "log.npz"), "--measure-only", "--out", str(tmp_path / "far"))
    main(["gap", "bench", str(folder / "log.npz"), "--measure-only", "--out", str(tmp_path / "far"), "--overwrite"])


def test_ctrl_c_keeps_what_was_measured_and_says_that_causes_are_missing(folder, capsys, tmp_path, monkeypatch):
    def impatient(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("gapless.explain.causes.contest_of", impatient)
    capsys.readouterr()
    main(["gap", "bench", str(folder / "log.npz"), "--out", str(tmp_path / "far"), "--json"])
    said = capsys.readouterr()
    assert json.loads(said.out)["figures"]["error"] > 0
    assert json.loads((tmp_path / "far" / "errors.json").read_text()) == json.loads(said.out)
    assert "the causes are missing" in said.err
