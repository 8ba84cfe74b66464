"""`gapless robots`: lists, shows and draws robots, and exits 2 with a sentence on bad input."""

import json
import subprocess
import sys
import time

import pytest

from gapless.cli import main


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run(capsys, *argv: str) -> str:
    main(["robots", *argv])
    return capsys.readouterr().out


def test_lists_the_built_in_robots(capsys):
    listed = json.loads(run(capsys, "--json"))
    assert [robot["name"] for robot in listed] == ["bench", "pendulum", "arm", "rover", "quadruped", "biped"]
    assert [len(robot["joints"]) for robot in listed] == [1, 2, 6, 2, 12, 12]
    assert all(robot["steps_per_s"] > 1000 for robot in listed)


def test_the_table_fits_80_columns(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    text = run(capsys, "quadruped")
    assert "FL_thigh" in text and "23.7" in text and "13.04 kg" in text and "…" not in text


def test_shows_one_robot_as_strict_json(capsys):
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    shown = json.loads(run(capsys, "rover", "--json"), parse_constant=refuse)
    assert shown["base"] == "base" and shown["warnings"] == []
    assert shown["joint_table"][0]["low"] is None  # wheels have no limits


def test_says_what_a_file_left_open(capsys, tmp_path):
    path = tmp_path / "ball.xml"
    path.write_text('<mujoco><worldbody><body name="[red]"><freejoint/><geom size="0.1"/></body></worldbody></mujoco>')
    assert "no actuators" in run(capsys, str(path))


def test_draws_only_where_it_is_told(capsys, tmp_path):
    run(capsys, "bench")
    run(capsys, "bench", "--out", "mine.png")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["mine.png"]
    assert (tmp_path / "mine.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("argv", "sentence"), [(["armm"], "did you mean 'arm'"), (["--out", "a.png"], "say which robot to draw")]
)
def test_bad_input_is_one_sentence_and_exit_2(capsys, argv, sentence):
    with pytest.raises(SystemExit) as caught:
        main(["robots", *argv])
    assert caught.value.code == 2
    error = capsys.readouterr().err
    assert sentence in error and error.count("\n") == 1


def test_help_is_quick_and_has_an_example():
    code = """
import sys
from gapless.cli import main
try:
    main(["robots", "--help"])
finally:
    print("mujoco" in sys.modules)
"""
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert time.perf_counter() - start < 2  # 0.3 s on an idle machine
    assert "gapless robots quadruped --out" in done.stdout
    assert done.stdout.strip().endswith("False")  # nothing heavy is imported
