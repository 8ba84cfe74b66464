"""Actuator networks: better than a line where the drive bends, and honest where it does not."""

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
    with pytest.raises(BadInput, match="2 s are needed"):
        learn_actuator([made(0.0, seconds=1.0)])
    with pytest.raises(BadInput, match="reading of current"):
        learn_actuator([made(0.0, sign=False)])
