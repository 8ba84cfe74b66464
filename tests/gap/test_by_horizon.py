"""Measure: nothing is left of a robot in its own twin, baselines are what they say, real logs give the published figures."""

import dataclasses
import importlib
import json

import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.gap.by_horizon import HORIZONS, measure
from gapless.logs import Log, Signal, read
from gapless.twin import Friction, Twin, as_given
from gapless.worlds import Replayer, StandInSpec as Spec
from tests.data import DATA, needs_data
from tests.measure.made import recorded

SECRETS = {"gains.kp/*": "x0.7", "friction.viscous/*": "x1.8", "latency.action": 0.013}


def test_a_robot_in_its_own_twin_leaves_nothing_and_the_model_as_given_leaves_the_gap():
    robot, log = recorded(Spec("arm", tolerance=0, timestep=Twin.load("arm").model.opt.timestep, change=SECRETS), 6.0)
    twin = Twin.load("arm")
    gap = measure(twin, [log], twin.space.values(robot.reveal()))
    assert gap.horizon == "free"
    for signal in ("q", "dq", "tau"):
        assert gap[signal].of("twin", "free").max() < 1e-9, signal
    assert gap.mean("twin", "1") < 2e-3  # windows start where the estimate of the state says
    assert gap.mean("given") > 0.02
    assert gap.mean("given", "step") < gap.mean("given", "0.1") < gap.mean("given", "1") < gap.mean("given")
    np.testing.assert_allclose(gap["q"].of("given", "free"), Replayer(twin, log)(twin.space.nominal).rmse("q")[0])
    np.testing.assert_allclose(gap["q"].relative("given", "free"), gap["q"].of("given", "free") / log["q"].values.std(axis=0))


def delayed(log: Log, seconds: float) -> Log:
    """The log of joints that do exactly what they were told, so much later."""
    late = log.at("q_cmd", log["q"].time - seconds)
    return dataclasses.replace(log, signals=dict(log.signals) | {"q": Signal("q", log["q"].time, late, log["q"].columns)})


def test_a_pure_delay_is_found_and_predicts_all_of_it():
    _, log = recorded(Spec("bench", tolerance=0), 6.0)
    gap = measure(Twin.load("bench"), [delayed(log, 0.04)])
    assert list(gap.delays.values()) == pytest.approx([0.04])
    assert gap.mean("delay", "free") < 1e-12
    assert gap.mean("command", "free") > 0.01


def test_holding_the_last_state_and_taking_the_command_are_what_they_say():
    _, log = recorded(Spec("arm", tolerance=0), 6.0)
    gap = measure(Twin.load("arm"), [log])
    q, told = log["q"].values, log["q_cmd"].values
    np.testing.assert_allclose(gap["q"].of("hold", "free"), np.sqrt(((q - q[0]) ** 2).mean(axis=0)))
    np.testing.assert_allclose(gap["q"].of("command", "free"), np.sqrt(((told - q) ** 2).mean(axis=0)))
    per = round(1 / 0.02)
    starts = np.arange(0, len(q) - per // 2, per)
    one_ahead = np.array([q[s + 1] - q[s] for s in starts])
    np.testing.assert_allclose(gap["q"].of("hold", "step"), np.sqrt((one_ahead**2).mean(axis=0)))
    half = np.concatenate([[q[s + k] - q[s] for k in range(23, 28) if s + k < len(q)] for s in starts])
    np.testing.assert_allclose(gap["q"].of("hold", "0.5"), np.sqrt((half**2).mean(axis=0)))
    assert np.isnan(gap["dq"].of("command", "free")).all()  # nobody commanded velocities


@pytest.mark.parametrize("captured", [True, False])
def test_a_free_base_is_measured_too(captured):
    change = {"gains.kp/*": "x0.8", "inertia.payload": 1.0}
    _, log = recorded(Spec("quadruped", tolerance=0, change=change, motion_capture=captured), 4.0)
    gap = measure(Twin.load("quadruped"), [log])
    base = {"quat", "gyro", "base_pos", "base_vel"} if captured else {"quat", "gyro"}
    assert set(gap.errors) == {"q", "dq", "tau"} | base
    assert gap["quat"].columns == ("x", "y", "z")
    assert gap["quat"].units == ("rad",) * 3
    assert 0 < np.degrees(gap["quat"].of("given", "1")).max() < 20
    for signal in gap.errors:
        assert np.isfinite(gap[signal].of("given", "0.5")).all(), signal
        assert np.isfinite(gap[signal].noise).all(), signal
    assert "gravity/x" in gap.distances.columns
    assert "gravity/z" in gap.json()["distances"]["columns"]


def test_wheels_are_judged_half_a_second_ahead_because_they_run_away():
    _, log = recorded(Spec("rover", tolerance=0, change={"friction.viscous/*": "x2"}), 4.0)
    gap = measure(Twin.load("rover"), [log])
    assert gap.horizon == "0.5"
    assert gap.delays == {}
    trace = gap.traces[0]
    assert len(np.unique(trace.window)) == 4
    assert trace.measured.shape == trace.given.shape == (len(trace.time), len(gap.joints))


def test_physics_that_breaks_is_infinitely_wrong_and_says_so(monkeypatch):
    class Breaks(Replayer):
        def __call__(self, values, space=None, shift=None):
            result = super().__call__(values, space, shift)
            failed = np.ones_like(result.failed)
            return dataclasses.replace(result, failed=failed, replayed={s: v * np.nan for s, v in result.replayed.items()})

    monkeypatch.setattr(importlib.import_module("gapless.measure.window"), "Replayer", Breaks)
    _, log = recorded(Spec("bench", tolerance=0), 4.0)
    gap = measure(Twin.load("bench"), [log])
    assert gap.mean("twin") == np.inf
    assert np.isfinite(gap.mean("command"))
    assert gap.broken == gap.windows == 5
    assert gap.json()["figures"]["error"] is None
    json.dumps(gap.json(), allow_nan=False)


def test_json_has_every_horizon_beside_every_baseline():
    _, log = recorded(Spec("bench", tolerance=0, change=SECRETS, sensors={"noise_q": 0.001}), 6.0)
    twin = Twin.load("bench")
    gap = measure(twin, [log])
    figures = json.loads(json.dumps(gap.json(), allow_nan=False))["figures"]
    assert set(figures["means"]) == {"twin", "given", "delay", "command", "hold"}
    assert all(list(by) == list(HORIZONS) for by in figures["means"].values())
    assert figures["unit"] == "rad"
    assert figures["noise"] == pytest.approx(0.001, rel=0.2)
    assert "the sensors' noise" in gap.verdict().text
    assert not gap.with_causes
    softer = twin.space.nominal * np.where(np.char.startswith(twin.space.names, "gains.kp"), 0.7, 1.0)
    better = measure(twin, [log], softer)
    assert better.with_causes
    assert better.mean("twin") < better.mean("given") == pytest.approx(gap.mean("given"))


@needs_data
def test_the_go2_as_published_on_the_odd_blocks_of_its_log():
    log = read(DATA / "go2_inair/go2_inair.npz", "go2_inair")
    twin = as_given(DATA / "go2_inair/model/go2_fixed_base.xml", log)
    gap = measure(twin, [log])
    trace = gap.traces[0]
    odd = trace.time // 2 % 2 == 1
    for prediction, published in (("command", 5.68), ("given", 0.841)):
        off = (getattr(trace, prediction) - trace.measured)[odd]
        assert np.degrees(np.sqrt((off**2).mean())) == pytest.approx(published, abs=0.006)
    assert gap.mean("delay") < gap.mean("command")
    assert gap.over_joints(gap["q"].noise) < 0.1 * gap.mean("given")


@needs_data
def test_the_so101_as_published_on_its_validation_motions():
    names = json.loads((DATA / "so101/split.json").read_text())["validation"]
    twin = Twin.load(DATA / "so101/model/so101.xml", add=[Friction(hard=False)])
    gap = measure(twin, [read(DATA / "so101/motions" / n, "so101") for n in names], end=60.0)
    arm = slice(0, 5)
    assert np.degrees(gap["q"].of("command", "free")[arm].mean()) == pytest.approx(1.66, abs=0.01)
    assert np.degrees(gap["q"].of("given", "free")[arm].mean()) == pytest.approx(1.59, abs=0.01)


def test_a_log_too_short_for_a_window_is_one_sentence():
    _, log = recorded(Spec("bench", tolerance=0), 0.3)
    with pytest.raises(BadInput, match="no stretch without gaps is as long as half a window"):
        measure(Twin.load("bench"), [log])
