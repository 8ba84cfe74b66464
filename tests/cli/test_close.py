"""`gapless close`: bad input in one sentence before anything is computed, and a case made of words."""

import pytest

from gapless.cli import main
from gapless.cli.close import _case
from gapless.errors import BadInput
from gapless.twin import Stated
from tests.cli.test_main import ends

GIVEN = {"task": "velocity", "hoist": True, "budget": 60.0, "iterations": 120, "seed": 0}


def test_bad_input_is_one_sentence(tmp_path, capsys):
    out = str(tmp_path / "loop")
    log, spec, other = (tmp_path / name for name in ("log.npz", "s.toml", "arm.npz"))
    log.write_bytes(b"")
    main(["standin", "--random", "--robot", "arm", "--out", str(spec)])
    main(["standin", str(spec), "--seconds", "5", "--out", str(other)])
    for argv, sentence in (
        ([], "say where the loop goes, such as --out out/close"),
        (["quadruped", "--out", out], "neither logs of the robot nor a stand-in to record"),
        (["--robot-time", "30", "--out", out], "30 s of robot time are too few"),
        (["--standin", str(tmp_path / "no.toml"), "--out", out], "there is no such file"),
        (["quadruped", str(log), "--standin", "s.toml", "--out", out], "either --standin or logs"),
        (["--task", "fly", "--out", out], "unknown task 'fly'"),
        (["quadruped", str(log), "--out", out], "the file is empty"),
        (["quadruped", str(other), "--out", out], "joint"),
        (["--out", str(log)], "not a folder"),
        (["--policy", str(tmp_path), "--out", out], "policy: there is no policy.onnx in"),
        (["--belief", str(log), "--out", out], "--belief is where rounds of rollouts start from"),
        (["--method", "simopt", "--oracle", "--out", out], "--oracle goes with --method fit"),
        (["--method", "simopt", "--robot-time", "20", "--out", out], "two rounds of rollouts take 24 s"),
    ):
        code, said = ends(capsys, "close", *argv)
        assert code == 2 and sentence in said and len(said.splitlines()) == 1, argv


def test_without_words_it_is_the_stand_in_outside_the_usual_ranges_with_the_policies_that_come_along():
    case = _case(None, (), None, None, None, Stated(), GIVEN)
    assert case.standin is not None and case.policy.endswith("quadruped_nominal") and case.base.endswith("quadruped_wide")


def test_other_robots_bring_their_own_policies_or_have_them_trained(tmp_path):
    spec = tmp_path / "s.toml"
    main(["standin", "--random", "--robot", "bench", "--out", str(spec)])
    case = _case(None, (), spec, None, None, Stated(), GIVEN | {"task": "swing"})
    assert (case.robot, case.policy, case.base) == ("bench", "", "")
    with pytest.raises(BadInput, match="budget"):
        _case(None, (), spec, None, None, Stated(), GIVEN | {"budget": -1.0})
