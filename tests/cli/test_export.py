"""`gapless export`: from a real fit to settings, and one sentence for what is no fit."""

import json
import shutil

import pytest

from gapless.cli import main
from tests.twin.test_export import run_isaaclab, run_mjlab, run_playground

pytestmark = pytest.mark.xdist_group("export")  # one worker makes the fixtures, once

CHANGE = '"gains.kp/*" = "x0.7"\n"friction.coulomb/*" = "x2"'


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("fit")
    (path / "s.toml").write_text(f'robot = "bench"\ntolerance = 0\n[change]\n{CHANGE}\n[sensors]\nnoise_q = 0.0003\n')
    main(["standin", str(path / "s.toml"), "--seconds", "12", "--out", str(path / "log.npz")])
    main(["fit", "bench", str(path / "log.npz"), "--out", str(path / "fitted"), "--json"])
    return path / "fitted"


def test_what_is_printed_agrees_with_the_fit(folder, capsys, monkeypatch):
    parameters = json.loads((folder / "fit.json").read_text())["parameters"]
    name = next(n for n in parameters if n.startswith("gains.kp/"))
    joint, kp = name.partition("/")[2], parameters[name]["value"]
    texts = {}
    for framework in ("mjlab", "isaaclab", "playground"):
        capsys.readouterr()
        main(["export", str(folder), "--to", framework])
        texts[framework] = capsys.readouterr().out
    assert run_mjlab(monkeypatch, texts["mjlab"])["ACTUATORS"][0].stiffness == pytest.approx(kp, rel=1e-5)
    drives = run_isaaclab(monkeypatch, texts["isaaclab"])["ACTUATORS"]["gapless"]
    assert drives.stiffness[joint] == pytest.approx(kp, rel=1e-5)
    low, high = run_playground(monkeypatch, texts["playground"])["KP"][joint]
    assert low <= kp * (1 + 1e-5)
    assert kp <= high * (1 + 1e-5)


def test_bad_input_is_one_sentence_and_exit_2(folder, capsys, tmp_path):
    broken = {name: tmp_path / name for name in ("json", "text", "twin", "belief")}
    for path in broken.values():
        shutil.copytree(folder, path)
    (broken["json"] / "fit.json").write_text("{}")
    (broken["text"] / "fit.json").write_text("{")
    (broken["twin"] / "twin.xml").write_text("<mujoco")
    (broken["belief"] / "belief.json").write_text("{}")
    for argv, sentence in (
        ([str(tmp_path), "--to", "mjlab"], "has no twin.xml"),
        ([str(tmp_path / "nowhere"), "--to", "mjlab"], "is not the folder of a fit"),
        ([str(folder), "--to", "mjlb"], "did you mean 'mjlab'?"),
        ([str(folder), "--to", "gym"], "available: isaaclab, mjlab, playground"),
        ([str(broken["json"]), "--to", "mjlab"], "not the summary of a fit"),
        ([str(broken["text"]), "--to", "mjlab"], "not valid JSON"),
        ([str(broken["twin"]), "--to", "mjlab"], "MuJoCo cannot load it"),
        ([str(broken["belief"]), "--to", "mjlab"], "not a belief file"),
    ):
        capsys.readouterr()
        with pytest.raises(SystemExit) as caught:
            main(["export", *argv])
        assert caught.value.code == 2
        error = capsys.readouterr().err.strip()
        assert sentence in error
        assert "\n" not in error


def test_help_shows_an_example(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["export", "--help"])
    assert caught.value.code == 0
    assert "gapless export fitted --to mjlab" in " ".join(capsys.readouterr().out.split())
