"""Actuator networks: better than a line where the drive bends, and honest where it does not."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from gapless.cli import main
from gapless.errors import BadInput
from gapless.logs import Log, write
from gapless.residual import learn_actuator
from gapless.residual.actuator import history


def made(bend: float, seconds: float = 12.0, sign: bool = True) -> Log:
    """A drive that gives what it was told 10 ms ago less damping; with `bend` it saturates."""
    rng, t = np.random.default_rng(0), np.arange(0, seconds, 0.002)
    tones = rng.uniform(0.3, 4.0, 8)
    told = sum(np.sin(2 * np.pi * f * t + p) for f, p in zip(tones, rng.uniform(0, 6, 8), strict=True))
    dq = 2 * np.cos(3 * t)
    straight = np.interp(t - 0.01, t, told) - 0.1 * dq
    tau = (np.tanh(bend * straight) / bend if bend else straight) + 0.02 * rng.standard_normal(len(t))
    signals = {"q": np.sin(3 * t), "dq": dq, "tau": tau if sign else np.abs(tau), "tau_cmd": told}
    return Log.from_arrays(["knee"], t, {name: v[:, None] for name, v in signals.items()})


def test_it_beats_every_simpler_law_where_the_drive_saturates(tmp_path: Path) -> None:
    log = made(1.0)
    result = learn_actuator([log])
    laws = result.joints["knee"]
    assert result.verdict().good and laws.network < 0.5 * min(laws.linear, laws.pd_delayed)
    assert laws.network == pytest.approx(0.02, rel=0.5)  # the noise is all that is left
    result.save(tmp_path)
    inputs = history(log, "knee", "tau_cmd", log["tau"].time[100:110])
    (torque,) = onnxruntime.InferenceSession(tmp_path / "knee.onnx").run(None, {"inputs": inputs.astype(np.float32)})
    assert torque == pytest.approx(result.nets["knee"](inputs), abs=1e-4)


def test_it_finds_the_delay_and_says_that_a_line_is_as_good_where_the_drive_is_straight(tmp_path: Path) -> None:
    write(made(0.0), tmp_path / "log.npz")
    with pytest.raises(SystemExit) as end:
        main(["actuator", str(tmp_path / "log.npz"), "--out", str(tmp_path / "out")])
    assert end.value.code == 1
    told = json.loads((tmp_path / "out/actuator.json").read_text())
    assert "no better than a simpler law at knee" in told["verdict"]
    assert told["joints"]["knee"]["delay"] == pytest.approx(0.01, abs=0.0021)  # a command is held for 2 ms


def test_logs_that_cannot_teach_torque_get_a_sentence() -> None:
    bare = made(0.0)
    without = Log.from_arrays(["knee"], bare["q"].time, {"q": bare["q"].values, "q_cmd": bare["q"].values})
    with pytest.raises(BadInput, match="no tau"):
        learn_actuator([without])
    with pytest.raises(BadInput, match="2 s are needed, 1.4 s of them"):
        learn_actuator([made(0.0, seconds=1.0)])
    with pytest.raises(BadInput, match="reading of current"):
        learn_actuator([made(0.0, sign=False)])
    amps = told(current=1.0)
    with pytest.raises(BadInput, match="current of motors and no torque"):
        learn_actuator([dataclasses.replace(amps, signals={k: v for k, v in amps.signals.items() if k != "tau"})])


def told(feed: float = 0.0, gains: tuple[float, float] = (10.0, 10.0), state: bool = True, current: float = 0.0) -> Log:
    """A servo that gives its PD law and what is fed forward, and saturates softly; in every third second with another gain."""
    t = np.arange(0, 12.0, 0.002)
    kp, fed, velocity = np.where(t % 3 < 2, *gains), feed * np.sin(8 * t), feed * np.cos(5 * t)
    target, q, dq = np.sin(4 * t) + 0.3 * np.sin(11 * t), np.sin(4 * t - 0.2), 4 * np.cos(4 * t - 0.2)
    tau = 4 * np.tanh((kp * (target - q) + 0.3 * (velocity - dq) + fed) / 4)
    signals = {"q": q, "dq": dq, "q_cmd": target, "tau": tau, "tau_ff": fed, "dq_cmd": velocity}
    signals |= {"kp": kp, "kd": 0.3 + 0 * t} if state else {}
    signals |= {"current": tau / current} if current else {}
    return Log.from_arrays(["knee"], t, {name: v[:, None] for name, v in signals.items()})


def test_what_is_fed_forward_is_a_shift_of_the_target_and_needs_gains() -> None:
    laws = learn_actuator([told(feed=1.5)]).joints["knee"]
    assert laws.network < 0.1 < laws.torque and laws.gain == pytest.approx(10.0, rel=0.5)  # 1.5 N m of the torque are fed
    stated = learn_actuator([told(feed=1.5, state=False)], gains={"knee": (10.0, 0.3)})
    assert stated.joints["knee"] == laws
    with pytest.raises(BadInput, match="state kp and kd"):
        learn_actuator([told(feed=1.5, state=False)])
    with pytest.raises(BadInput, match="map tau_ff to tau_cmd"):
        learn_actuator([told(feed=1.5, gains=(0.0, 0.0))])


def test_torque_under_another_gain_is_left_out_and_torque_that_is_a_current_is_said() -> None:
    both, one = learn_actuator([told(gains=(10.0, 3.0), current=0.5)]), learn_actuator([told()])
    assert both.joints["knee"].gain == pytest.approx(one.joints["knee"].gain, rel=0.05)
    assert both.seconds_used == pytest.approx(8.0, abs=0.1) and one.notes == []
    assert "33 % of the torque is left out" in both.notes[0] and "current times 0.5 N m/A" in both.notes[1]


def test_joints_without_all_signals_are_left_out_and_missing_values_teach_nothing() -> None:
    log, t = made(1.0), made(1.0)["q"].time
    both = {n: np.column_stack([s.values, s.values]) for n, s in log.signals.items()}
    both["q"][t < 1.0, 1] = np.nan
    pair = Log.from_arrays(["knee", "hip"], t, both)
    assert learn_actuator([pair]).joints["hip"].network < 0.04
    lame = dataclasses.replace(pair, signals={**pair.signals, "dq": log["dq"]})
    assert learn_actuator([lame]).notes == ["hip is left out: not all logs have its dq."]
    both["tau"][:, :] = 0.0
    with pytest.raises(BadInput, match="never changes"):
        learn_actuator([Log.from_arrays(["knee", "hip"], t, both)])
