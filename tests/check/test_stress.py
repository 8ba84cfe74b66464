"""Stress: axes that write what they say, margins by arithmetic, causes that are blamed only if they matter, files that load."""

import json
import math

import numpy as np
import pytest

from gapless.check import Stress, stress
from gapless.check.axes import WEAK, axes_of
from gapless.check.stress import _curve, _standin
from gapless.explain import read_losses
from gapless.twin import Backlash, Gains, Point, Twin
from gapless.worlds import StandIn, load_standin
from tests.check.made import still

TWIN = Twin.load("quadruped")


def test_axes_write_what_they_read():
    for axis in axes_of(TWIN):
        if axis.patterns:
            values = TWIN.space.nominal.copy()
            assert axis.read(TWIN, values[None])[0] == pytest.approx(axis.start)
            axis.write(TWIN, values, axis.end)
            assert axis.read(TWIN, values[None])[0] == pytest.approx(axis.end), axis.name
    weak = next(a for a in axes_of(TWIN) if a.name == WEAK)
    values = TWIN.space.nominal.copy()
    weak.write(TWIN, values, 0.5, joint=3)
    changed = [n for n, a, b in zip(TWIN.space.names, values, TWIN.space.nominal, strict=True) if a != b]
    assert changed == [f"motor.strength/{TWIN.joints[3]}"]


def test_margin_is_room_over_what_was_identified():
    delay = next(a for a in axes_of(TWIN) if a.name == "delay")
    levels, share = np.array([0.0, 0.02, 0.04]), np.array([1.0, 1.0, 0.6])
    curve = _curve(delay, levels, share, [(0, 1)] * 3, 1 - share, (0.015, 0.002))
    assert curve.fails_from == pytest.approx(0.025) and curve.margin == pytest.approx(0.025 / 0.015)
    assert curve.sentence() == "fails from 25 ms; measured 15 ms ± 2 ms: margin 1.7"
    field = _curve(delay, levels, share, [(0, 1)] * 3, 1 - share, None, 0.02)
    assert field.sentence() == "fails from 25 ms; not measured, robots have up to 20 ms: margin 1.2"
    holds = _curve(delay, levels, np.ones(3), [(0, 1)] * 3, np.zeros(3), None)
    assert math.isnan(holds.fails_from) and holds.sentence() == "holds up to 40 ms, the worst tried"


def test_the_worst_corner_is_a_stand_in_with_the_gains_of_the_policy_and_the_mechanisms_of_a_fit(tmp_path):
    gains = Gains(kp={"FL_*": 50.0, "*": 40.0}, kd={"*": 1.5})
    twin = Twin.load("quadruped", add=[gains, Backlash("*_calf", 0.01)], control_dt=0.01)
    values = twin.space.nominal.copy()
    values[twin.space.names.index("inertia.payload")] = 1.5
    (tmp_path / "worst.toml").write_text(_standin(twin, values, 3))
    robot = StandIn(load_standin(tmp_path / "worst.toml"))
    assert robot.reveal() == pytest.approx(dict(zip(twin.space.names, values, strict=True)), rel=1e-4)
    assert robot.period == 0.01


@pytest.fixture(scope="module")
def result() -> Stress:
    known = TWIN.space.select("inertia.payload", "motor.strength/*", "latency.action")
    values = known.nominal.copy()
    values[known.names.index("inertia.payload")] = 24.0
    values[known.names.index("latency.action")] = 0.001
    values[[n.startswith("motor") for n in known.names]] = 0.35
    return stress(still(TWIN, "stand"), TWIN, Point(known, values), each=2, seconds=1.6, runs=12)


def test_what_makes_a_robot_fall_is_blamed_and_what_does_not_is_not(result):
    matters = {c.cause: c.matters for c in result.costs}
    assert set(matters) == {"inertia.payload", "motor.strength", "latency.action"}
    assert matters["inertia.payload"] and not matters["latency.action"]


def test_a_stress_test_loads_again_and_its_files_are_taken_elsewhere(result, tmp_path):
    result.save(tmp_path)
    assert Stress.load(tmp_path).json() == json.loads((tmp_path / "stress.json").read_text())
    assert read_losses(tmp_path / "losses.json") == pytest.approx(result.losses())
    worst = StandIn(load_standin(tmp_path / "worst.toml")).reveal()
    assert worst["inertia.payload"] == pytest.approx(result.corner.levels["payload"], rel=1e-3)
    assert result.rest.speed < 0.2 and not result.rest.shakes
