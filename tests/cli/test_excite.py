"""`gapless excite`: a motion that a stand-in takes as it is, and the intervals to expect."""

import json

import numpy as np
import pytest

from gapless.cli import main
from gapless.twin import Gaussian, Twin, save_belief as save


@pytest.fixture
def belief(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    space = Twin.load("bench").space.select("friction.*", "armature.*", "inertia.mass/*")
    save(Gaussian(space, np.zeros(len(space)), 0.25 * np.eye(len(space))), "belief.json")
    return "belief.json"


def test_a_motion_is_designed_and_a_stand_in_plays_it(belief, capsys, tmp_path):
    argv = ["excite", "bench", "--belief", belief, "--seconds", "4", "--effort", "0.02", "--out", "motion.csv"]
    main([*argv, "--plot", "motion.html", "--json"])
    printed = json.loads(capsys.readouterr().out)
    assert set(printed) >= {"verdict", "left", "parameters", "joints", "candidates", "seconds", "warnings"}
    for p in printed["parameters"].values():
        widths = {m: p[m][1] - p[m][0] for m in ("now", "chirp", "multisine", "designed")}
        assert widths["designed"] <= widths["now"] * (1 + 1e-9)
    assert printed["left"]["designed"] < printed["left"]["chirp"]
    rows = np.loadtxt("motion.csv", delimiter=",", skiprows=1)
    assert rows.shape == (200, 2)
    assert "Plotly" in (tmp_path / "motion.html").read_text()
    (tmp_path / "s.toml").write_text('robot = "bench"\n')
    main(["standin", "s.toml", "--motion", "motion.csv", "--seconds", "4", "--out", "log.npz"])
    from gapless.logs import read

    told = read("log.npz")["q_cmd"].values[:200, 0]
    np.testing.assert_allclose(told, rows[:, 1], atol=1e-9)


def test_without_json_it_prints_tables(belief, capsys):
    main(["excite", "bench", "--belief", belief, "--seconds", "3", "--effort", "0.01", "--out", "motion.csv"])
    printed = capsys.readouterr()
    for word in ("designed", "chirp", "multisine", "uncertainty left", "friction.viscous/servo"):
        assert word in printed.out
    assert "motion.csv" in printed.err


def test_bad_input_is_one_sentence_and_exit_2(belief, capsys):
    for argv, sentence in (
        (["excite", "benc"], "unknown robot"),
        (["excite", "arm", "--belief", belief], "not about arm"),
        (["excite", "quadruped"], "--in-air"),
        (["excite", "rover", "--in-air"], "position servos"),
        (["excite", "bench", "--seconds", "0.1"], "lasts between"),
        (["excite", "bench", "--reach", "0.001"], "no room"),
        (["excite", "bench", "--effort", "0"], "--effort"),
        (["excite", "bench", "--seed", "-1"], "--seed"),
        (["excite", "bench", "--kp", "-1"], "kp"),
        (["excite", "bench", "--out", "motion.txt"], ".csv"),
        (["excite", "bench", "--out", "nowhere/motion.csv"], "no folder"),
        (["excite", "bench", "--belief", "none.json"], "no such file"),
    ):
        capsys.readouterr()
        with pytest.raises(SystemExit) as caught:
            main(argv if "--out" in argv else [*argv, "--out", "motion.csv"])
        assert caught.value.code == 2
        error = capsys.readouterr().err.strip()
        assert sentence in error
        assert "\n" not in error
