"""`gapless standin` and `gapless replay`: from a drawn robot to its error, on the command line."""

import json

import numpy as np
import pytest

from gapless.cli import main
from gapless.worlds import StandIn
from tests.data import DATA, needs_data


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def fails(capsys, *argv: str) -> str:
    with pytest.raises(SystemExit) as caught:
        main(list(argv))
    assert caught.value.code == 2
    error = capsys.readouterr().err.strip()
    assert "\n" not in error
    return error


@pytest.mark.parametrize("suffix", ["mcap", "npz", "csv"])
def test_a_drawn_robot_is_recorded_and_replayed(capsys, tmp_path, suffix):
    main(["standin", "--random", "--robot", "arm", "--difficulty", "easy", "--seed", "7", "--out", "s.toml"])
    main(["standin", "s.toml", "--motion", "rich", "--seconds", "4", "--out", f"log.{suffix}"])
    capsys.readouterr()
    main(["replay", "arm", f"log.{suffix}", "--json"])
    result = json.loads(capsys.readouterr().out)
    assert set(result) >= {"rmse", "command", "seconds"}
    assert set(result["rmse"]) == {"q", "dq", "tau"}
    assert len(result["rmse"]["q"]) == len(result["command"]) == 6
    assert all(0 < v < 0.3 for v in result["rmse"]["q"].values())
    assert not (tmp_path / "replay.html").exists()


def test_the_table_and_the_page(capsys, tmp_path):
    main(["standin", "--random", "--robot", "bench", "--difficulty", "easy", "--out", "s.toml"])
    main(["standin", "s.toml", "--seconds", "3", "--out", "log.npz"])
    main(["replay", "bench", "log.npz", "--window", "0.5", "--set", "friction.coulomb/*=0.2", "--out", "replay.html"])
    out = capsys.readouterr().out
    assert "windows of 0.5 s" in out
    assert "robot time in" in out
    page = (tmp_path / "replay.html").read_text()
    assert "Plotly.newPlot" in page
    assert 'src="http' not in page


@needs_data
def test_the_so101_as_published_on_the_command_line(capsys):
    motion = DATA / "so101/motions/large_amplitude"
    main(["replay", str(DATA / "so101/model/so101.xml"), str(motion), "--mapping", "so101", "--end", "60", "--json"])
    result = json.loads(capsys.readouterr().out)
    assert np.degrees(list(result["command"].values())[:5]).mean() > 0.5
    assert result["robot_seconds"] == pytest.approx(60, abs=1)


@needs_data
def test_gains_that_the_mapping_states_need_no_option(capsys):
    model, log = DATA / "go2_inair/model/go2_fixed_base.xml", DATA / "go2_inair/go2_inair.npz"
    main(["replay", str(model), str(log), "--mapping", "go2_inair", "--json"])
    result = json.loads(capsys.readouterr().out)
    assert np.degrees(list(result["rmse"]["q"].values())).mean() < 1.0


def test_bad_input_is_one_sentence_and_exit_2(capsys, tmp_path):
    assert "unknown robot" in fails(capsys, "replay", "armm", str(tmp_path))
    assert "there is no such" in fails(capsys, "replay", "arm", "none.mcap")
    (tmp_path / "empty.npz").write_bytes(b"")
    assert "empty.npz" in fails(capsys, "replay", "arm", "empty.npz")
    assert "name a stand-in file" in fails(capsys, "standin")
    assert "there is no such file" in fails(capsys, "standin", "none.toml")
    (tmp_path / "s.toml").write_text('robot = "bench"')
    assert "written as .mcap, .npz or .csv" in fails(capsys, "standin", "s.toml", "--out", "log.txt")
    assert "unknown motion" in fails(capsys, "standin", "s.toml", "--motion", "dance")
    main(["standin", "s.toml", "--seconds", "1", "--out", "log.npz"])
    capsys.readouterr()
    assert "--set x: expected NAME=NUMBER" in fails(capsys, "replay", "bench", "log.npz", "--set", "x")
    assert "unknown parameter" in fails(capsys, "replay", "bench", "log.npz", "--set", "x=1")
    assert "no q of shoulder_pan" in fails(capsys, "replay", "arm", "log.npz")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["empty.npz", "log.npz", "s.toml"]


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--end", "nan", "--end must be a positive number of seconds, not nan"),
        ("--end", "0", "--end must be a positive"),
        ("--window", "nan", "--window must be a positive"),
        ("--window", "0", "--window must be a positive"),
        ("--window", "-1", "--window must be a positive"),
        ("--kp", "-5", "kp must be a positive number of N m/rad, not -5"),
        ("--kp", "nan", "kp of *: a finite number was expected"),
        ("--kd", "-1", "kd must be at least 0"),
        ("--out", "none/x.html", "none/x.html: there is no folder none"),
        ("--out", "taken", "taken: a page is written as .html"),
    ],
)
def test_options_that_make_no_sense(capsys, tmp_path, option, value, message):
    (tmp_path / "s.toml").write_text('robot = "bench"')
    main(["standin", "s.toml", "--seconds", "1", "--out", "log.npz"])
    (tmp_path / "taken").mkdir()
    capsys.readouterr()
    assert message in fails(capsys, "replay", "bench", "log.npz", "--json", f"{option}={value}")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["log.npz", "s.toml", "taken"]


def test_what_cannot_be_written_is_one_sentence(capsys, tmp_path):
    (tmp_path / "s.toml").write_text('robot = "bench"')
    assert "there is no folder none" in fails(capsys, "standin", "--random", "--robot", "bench", "--out", "none/x.toml")
    assert "there is no folder none" in fails(capsys, "standin", "s.toml", "--seconds", "1", "--out", "none/log.mcap")
    (tmp_path / "taken.toml").mkdir()
    assert "taken.toml: Is a directory" in fails(capsys, "standin", "--random", "--robot", "bench", "--out", "taken.toml")
    assert "seed" in fails(capsys, "standin", "--random", "--robot", "bench", "--seed=-1")
    assert "seed" in fails(capsys, "standin", "s.toml", "--seed=-1")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["s.toml", "taken.toml"]


def test_a_stand_in_whose_physics_breaks_is_one_sentence_and_no_bad_input(capsys, tmp_path, monkeypatch):
    write = StandIn.write

    def breaks(self, command):
        self._worlds.qvel[:] = 1e15
        write(self, command)

    monkeypatch.setattr(StandIn, "write", breaks)
    (tmp_path / "s.toml").write_text('robot = "bench"')
    with pytest.raises(SystemExit) as caught:
        main(["standin", "s.toml", "--seconds", "1", "--out", "log.npz"])
    assert caught.value.code == 1
    error = capsys.readouterr().err.strip()
    assert "s.toml: the stand-in's physics broke after" in error
    assert "velocities became infinite or undefined" in error
    assert "lower its timestep" in error
    assert "\n" not in error
    assert [p.name for p in tmp_path.iterdir()] == ["s.toml"]
