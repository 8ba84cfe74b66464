"""`gapless fit`: a folder with a twin that any MuJoCo program loads, a belief, and the figures."""

import json

import mujoco
import pytest

from gapless.cli import main
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
    assert sorted(p.name for p in (tmp_path / "fitted").iterdir()) == ["belief.json", "fit.json", "twin.xml"]
    assert mujoco.MjModel.from_xml_path("fitted/twin.xml").nu == 1
    Twin.load("bench", add=[Friction(full=True)]).accepts(load("fitted/belief.json").space)


def test_bad_input_is_one_sentence_and_exit_2(log, capsys):
    for argv, sentence in (
        (["fit", "benc", str(log)], "unknown robot"),
        (["fit", "arm", str(log)], "shoulder_pan"),
        (["fit", "quadruped", str(log)], "floating base"),
    ):
        capsys.readouterr()
        with pytest.raises(SystemExit) as caught:
            main(argv)
        assert caught.value.code == 2
        error = capsys.readouterr().err.strip()
        assert sentence in error
        assert "\n" not in error
