"""`gapless inspect` says what it finds in words or in JSON, and its exit code says whether it was bad."""

import json
from pathlib import Path

import numpy as np
import pytest

from gapless.cli.inspect import inspect
from gapless.errors import BadInput
from gapless.logs import Log, write


def recorded(path: Path, joint: str = "j", degrees: bool = False) -> Path:
    t = np.arange(400) * 0.01
    told = 0.5 * np.sin(3 * t)[:, None]
    measured = 0.5 * np.sin(3 * (t - 0.03))[:, None]
    write(Log.from_arrays((joint,), t, {"q_cmd": told, "q": np.degrees(measured) if degrees else measured}), path)
    return path


def test_a_clean_log_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inspect((recorded(tmp_path / "clean.npz"),), delay=False)
    said = " ".join(capsys.readouterr().out.split())
    assert "q_cmd, q at 100.0 Hz" in said and "nothing wrong was found" in said


def test_an_error_exits_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as code:
        inspect((recorded(tmp_path / "bad.mcap", degrees=True),), delay=False)
    assert code.value.code == 1
    assert "q of j is in degrees" in " ".join(capsys.readouterr().out.split())


def test_json_holds_findings_rates_and_delays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inspect((recorded(tmp_path / "a.npz"), recorded(tmp_path / "b.npz")), json=True)
    said = json.loads(capsys.readouterr().out)
    assert said["errors"] == 0 and len(said["logs"]) == 2
    assert said["logs"][0]["rates"]["q"] == pytest.approx(100)
    assert set(said["logs"][0]["delays"]["j"]) == {"seconds", "uncertainty", "determined"}


def test_a_log_that_cannot_be_read_does_not_hide_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "broken.npz").write_text("no log")
    with pytest.raises(SystemExit) as code:
        inspect((tmp_path / "broken.npz", recorded(tmp_path / "good.npz")), delay=False)
    said = capsys.readouterr()
    assert code.value.code == 2
    assert "good.npz" in "".join(said.out.split())  # a long path is broken at the terminal's width
    assert "nothing wrong" in said.out and "broken.npz: not a whole zip container" in said.err


def test_the_robot_s_joints_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "robot.xml"
    body = '<body><joint name="elbow" range="-0.2 0.2" limited="true"/><geom size=".1" mass="1"/></body>'
    model.write_text(f'<mujoco><compiler angle="radian"/><worldbody>{body}</worldbody></mujoco>')
    with pytest.raises(SystemExit):
        inspect((recorded(tmp_path / "x.npz", joint="elbo"),), robot=str(model), delay=False)
    assert "unknown joint 'elbo': did you mean 'elbow'" in " ".join(capsys.readouterr().out.split())
    inspect((recorded(tmp_path / "y.npz", joint="elbow"),), robot=str(model), delay=False)
    assert "q of elbow reaches -0.500 to 0.500, the model -0.200 to 0.200 rad" in capsys.readouterr().out


def test_the_plot_is_one_file_that_works_offline(tmp_path: Path) -> None:
    out = tmp_path / "plot.html"
    inspect((recorded(tmp_path / "x.npz"),), plot=out, delay=False)
    page = out.read_text()
    assert page.count('class="plot"') == 1 and "command" in page and "plotly" in page.lower() and "<script src=" not in page


def test_bad_input_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"nothing\.npz: there is no such file"):
        inspect((tmp_path / "nothing.npz",))
    with pytest.raises(BadInput, match="name at least one log"):
        inspect(())
    with pytest.raises(BadInput, match="written as .html"):
        inspect((recorded(tmp_path / "x.npz"),), plot=tmp_path / "x.pdf", delay=False)
