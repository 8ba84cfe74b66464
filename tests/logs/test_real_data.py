"""All folders of real logs load, and are what their README says."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gapless.logs import find, inspect, read

ARM = ("shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll")


def test_so101_motions(data: Path) -> None:
    motions = find(data / "so101" / "motions")
    assert len(motions) == 38
    for motion in motions:
        log = read(motion, "so101")
        assert log.joints == (*ARM, "gripper")
        assert 34 <= log.duration <= 205
        assert log.rate("q") == pytest.approx(50, rel=0.01)
        assert set(log.signals) == {"q", "q_cmd", "dq", "tau"}
        assert np.all(np.diff(log["q"].time) > 0)
        assert np.all(log["tau"].values >= 0)
    assert log.meta["firmware"] == {"P": 16, "I": 0, "D": 32}


def test_so101_command_baseline(data: Path) -> None:
    """The command as prediction: 1.66 deg, first 60 s, pooled over validation motions, mean of the 5 arm joints."""
    squares, count = np.zeros(5), 0
    for name in json.loads((data / "so101" / "split.json").read_text())["validation"]:
        log = read(data / "so101" / "motions" / name, "so101")
        log = log.slice(log.start, log.start + 60)
        error = log["q"].values[:, :5] - log.at("q_cmd", log["q"].time)[:, :5]
        squares, count = squares + (error**2).sum(axis=0), count + len(error)
    assert np.degrees(np.sqrt(squares / count)).mean() == pytest.approx(1.66, rel=0.05)


def test_so101_jaw_lies_in_the_models_range(data: Path) -> None:
    log = read(data / "so101" / "motions" / "gripper_cycles", "so101")
    jaw = log["q"].column("gripper")
    assert -0.18 < jaw.min() < 0.2 and 1.0 < jaw.max() < 1.75


@pytest.mark.parametrize("name", ["traj_0.pt", "go2_inair.npz"])
def test_go2_in_air(data: Path, name: str) -> None:
    log = read(data / "go2_inair" / name, "go2_inair")
    assert log["q"].values.shape == (3758, 12)
    assert log.rate("q") == pytest.approx(200, rel=1e-3)
    assert log.duration == pytest.approx(18.8, abs=0.05)
    assert log.joints[:4] == ("FL_hip_joint", "FL_thigh_joint", "FL_calf_joint", "FR_hip_joint")
    assert log.meta["kp"] == 20.0 and log.meta["kd"] == 1.5
    error = np.degrees(log["q"].values - log.at("q_cmd", log["q"].time))
    assert np.sqrt((error**2).mean()) == pytest.approx(5.6, rel=0.05)


def test_both_go2_files_are_the_same_log(data: Path) -> None:
    one, two = (read(data / "go2_inair" / n, "go2_inair") for n in ("traj_0.pt", "go2_inair.npz"))
    for name in ("q", "q_cmd"):
        assert np.array_equal(one[name].values, two[name].values)


def test_double_pendulum(data: Path) -> None:
    logs = [read(p, "double_pendulum") for p in find(data / "double_pendulum" / "design_C.1")]
    assert len(logs) == 10
    for log in logs:
        assert log.joints == ("joint1", "joint2") and set(log.signals) == {"q", "dq", "tau", "tau_cmd"}
        assert 5.5 < log.duration < 10.1
        assert log.rate("q") == pytest.approx(500, rel=0.02)
        assert log.meta["mode"] == "torque"
    assert np.isfinite(logs[0]["q"].values).all()


def test_xl330(data: Path) -> None:
    for path in find(data / "xl330" / "logs"):
        log = read(path, "xl330")
        assert log.joints == ("servo",) and log.duration == pytest.approx(6, abs=0.05)
        assert log.meta["firmware"]["P"] in (100, 200, 800)
        assert log.meta["mass"] == 0.49 and log.meta["length"] == 0.1 and log.meta["vin"] == 7.4
        assert np.abs(log["load"].values).max() <= 885
        if "lift" not in path.name:
            assert log.rate("q") == pytest.approx(188, rel=0.02)
    assert log.meta["trajectory"] in path.name


@pytest.mark.parametrize(("name", "rate"), [("energy_shaping", 200), ("gravity_compensation", 1000), ("pd_chatter", 300)])
def test_simple_pendulum_is_one_log_of_two_files(data: Path, name: str, rate: float) -> None:
    folder = data / "simple_pendulum" / "logs"
    log = read(folder / name, "simple_pendulum")
    assert set(log.signals) == {"q", "dq", "tau", "q_cmd", "dq_cmd", "tau_cmd"}
    assert log.rate("q") == pytest.approx(rate, rel=0.01)
    assert not np.array_equal(log["q"].time, log["q_cmd"].time), "measured and desired have clocks of their own"
    same = read(folder / f"{name}_desired.csv.gz", "simple_pendulum")
    assert np.array_equal(same["q"].values, log["q"].values)
    if name == "pd_chatter":
        assert log["tau"].values.min() < -17 and log["tau"].values.max() > 17


def test_z1_has_gains_by_joint_and_no_feed_forward(data: Path) -> None:
    log = read(data / "z1" / "traj_0.pt", "z1")
    assert log.joints == (*(f"joint{i}" for i in range(1, 7)), "jointGripper")
    assert log["q"].values.shape == (4700, 7) and log.duration == pytest.approx(23.5)
    kp, kd = ([log.meta[gain][joint] for joint in log.joints] for gain in ("kp", "kd"))
    assert kp == [80.0, 120.0, 120.0, 80.0, 80.0, 80.0, 80.0] and kd == [2.5] * 7
    own = kp * (log["q_cmd"].values - log["q"].values) - np.multiply(kd, log["dq"].values)
    same = np.isclose(log["tau_cmd"].values, own, atol=1e-4)
    assert same[1:].all(), "its torque is what the gains give, so nothing is fed forward"
    assert "tau_ff" not in log
    as_fed = replace(log, signals={**log.signals, "tau_ff": replace(log["tau_cmd"], name="tau_ff")})
    twice = [f for f in inspect(as_fed, delay=False).findings if f.code == "doubled"]
    assert [f.joint for f in twice] == list(log.joints), "and whoever maps it so is told"
    assert "it would act twice, so map it as tau_cmd" in twice[0].sentence
    assert not [f for f in inspect(log, delay=False).findings if f.code == "doubled"]
    error = np.degrees(log["q"].values - log["q_cmd"].values)[:, :6]
    assert np.sqrt((error[log["q"].time // 2 % 2 == 0] ** 2).mean()) == pytest.approx(5.2, rel=0.01), "even blocks, arm joints"


def test_acromonk_names_its_joints_as_the_model_does(data: Path) -> None:
    logs = [read(p, "acromonk") for p in find(data / "acromonk" / "logs")]
    assert len(logs) == 6
    for log in logs:
        assert log["q"].columns == ("virtual_joint_hook_1", "joint_1") and log["tau_cmd"].columns == ("joint_1",)
        assert 2.4 < log.duration < 4.01 and 65 < log.rate("q") < 200
        assert np.isfinite(log["q"].values).all() and np.abs(log["tau_cmd"].values).max() < 5.0
