"""`gapless fit`: a folder with a twin that any MuJoCo program loads, a belief, and the figures."""

import json

import mujoco
import numpy as np
import pytest

from gapless.cli import main
from gapless.logs import Log, write
from gapless.twin import Twin
from gapless.twin.belief import load
from gapless.twin.mechanisms import Friction


@pytest.fixture
def log(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    change = '"gains.kp/*" = "x0.7"\n"friction.coulomb/*" = "x2"'
    (tmp_path / "s.toml").write_text(f'robot = "bench"\ntolerance = 0\n[change]\n{change}\n[sensors]\nnoise_q = 0.0003\n')
    main(["standin", "s.toml", "--seconds", "12", "--out", "log.npz"])
    return tmp_path / "log.npz"


def test_a_fit_leaves_a_twin_a_belief_and_its_figures(log, capsys, tmp_path):
    capsys.readouterr()
    main(["fit", "bench", str(log), "--out", "fitted", "--json"])
    printed = json.loads(capsys.readouterr().out)
    assert set(printed) >= {"parameters", "undetermined", "errors", "ladder", "seconds"}
    assert set(printed["errors"]["heldout"]) == {"command", "delay", "nominal", "fit"}
    assert printed["errors"]["heldout"]["fit"] < 0.3 * printed["errors"]["heldout"]["nominal"]
    assert any("scale" in u["meaning"] for u in printed["undetermined"])
    assert sorted(p.name for p in (tmp_path / "fitted").iterdir()) == [
        "belief.json",
        "fit.json",
        "progress.json",
        "report.html",
        "twin.xml",
    ]
    assert mujoco.MjModel.from_xml_path("fitted/twin.xml").nu == 1
    Twin.load("bench", add=[Friction(full=True)]).accepts(load("fitted/belief.json").space)


def test_bad_input_is_one_sentence_and_exit_2(log, capsys):
    for argv, sentence in (
        (["fit", "benc", str(log)], "unknown robot"),
        (["fit", "arm", str(log)], "shoulder_pan"),
        (["fit", "quadruped", str(log)], "floating base"),
        (["fit", "bench", str(log), "--fix", "gains.kq/*=3"], "gains.kq"),
        (["fit", "bench", str(log), "--fix", "gains.kp/*=1e9"], "bounds"),
        (["fit", "bench", str(log), "--fix", "gains.kp/*"], "NAME=NUMBER"),
        (["fit", "bench", str(log), "--resume", "--out", "nowhere"], "nothing to resume"),
    ):
        capsys.readouterr()
        with pytest.raises(SystemExit) as caught:
            main(argv)
        assert caught.value.code == 2
        error = capsys.readouterr().err.strip()
        assert sentence in error
        assert "\n" not in error


def test_a_fit_goes_on_where_it_was_stopped(log, capsys):
    main(["fit", "bench", str(log), "--out", "first", "--json"])
    first = json.loads(capsys.readouterr().out)
    main(["fit", "bench", str(log), "--out", "first", "--json", "--resume"])
    again = json.loads(capsys.readouterr().out)
    assert again["parameters"] == first["parameters"]
    assert again["seconds"] < first["seconds"]
    with pytest.raises(SystemExit):
        main(["fit", "bench", str(log), "--out", "first", "--resume", "--kp", "3"])
    assert "other logs" in capsys.readouterr().err


def test_logs_without_motion_are_refused(tmp_path, capsys):
    still = {"q": np.zeros((400, 1)), "q_cmd": np.zeros((400, 1))}
    write(Log.from_arrays(Twin.load("bench").joints, np.arange(400) * 0.02, still), tmp_path / "s.npz")
    with pytest.raises(SystemExit) as caught:
        main(["fit", "bench", str(tmp_path / "s.npz"), "--out", str(tmp_path / "o")])
    assert caught.value.code == 2
    assert "no joint moves" in capsys.readouterr().err
