"""Joints that are swapped, and zeros that are off, in commands and positions alike are found by what the limbs weigh."""

import numpy as np
import pytest

from gapless.logs import Log, read
from gapless.measure import model_findings
from gapless.twin import Twin, as_given
from gapless.worlds import StandIn, StandInSpec, plan_motion, record
from tests.data import DATA, needs_data


@pytest.fixture(scope="module")
def biped() -> tuple[Twin, Log]:
    twin = as_given("biped", in_air=True)
    motion = plan_motion("rich", twin, 6.0, np.random.default_rng(5))
    return twin, record(StandIn(StandInSpec("biped", seed=5, in_air=True)), motion)


def codes(twin: Twin, log: Log) -> list[tuple[str, str]]:
    return [(f.code, f.joint) for f in model_findings(twin, log) if f.code in ("swapped", "zero", "refused")]


def test_a_log_of_the_robot_is_quiet(biped):
    assert codes(*biped) == []


@pytest.mark.parametrize("pair", [("left_hip_roll", "left_hip_yaw"), ("left_hip_pitch", "right_hip_pitch")])
def test_names_that_are_swapped_everywhere_are_found(biped, pair):
    twin, log = biped
    one, other = pair
    swapped = log.rename({one: other, other: one})
    (found,) = [f for f in model_findings(twin, swapped) if f.code == "swapped"]
    assert found.joint in pair and one in found.sentence and other in found.sentence


def test_a_zero_that_is_off_everywhere_is_found(biped):
    twin, log = biped
    shift = 0.3 * (np.array(log.joints) == "left_hip_roll")
    wanted = log.at("q_cmd", log["q"].time)
    moved = Log.from_arrays(log.joints, log["q"].time, {"q": log["q"].values + shift, "q_cmd": wanted + shift})
    assert ("zero", "left_hip_roll") in codes(twin, moved)


@pytest.fixture(scope="module")
def arm() -> tuple[Twin, Log]:
    """With measured torque, as every stand-in has it; stiff drives hardly lag."""
    motion = plan_motion("rich", Twin.load("arm"), 6.0, np.random.default_rng(5))
    return as_given("arm"), record(StandIn(StandInSpec("arm", seed=5)), motion)


def test_measured_torque_tells_the_joints_of_an_arm_apart(arm):
    twin, log = arm
    swapped = log.rename({"shoulder_lift": "elbow_flex", "elbow_flex": "shoulder_lift"})
    assert [code for code, _ in codes(twin, swapped)] == ["swapped"]


def test_what_the_log_would_not_show_is_said(arm):
    """Nothing that the pan carries depends on its angle: its axis is upright."""
    twin, log = arm
    (found,) = [f for f in model_findings(twin, log) if f.code == "not_told"]
    assert found.severity == "info" and "a zero that is 0.3 rad off on shoulder_pan" in found.sentence


@needs_data
@pytest.mark.parametrize(
    ("mapping", "file", "model"),
    [("z1", "z1/traj_0.pt", "z1/model/z1.xml"), ("go2_inair", "go2_inair/go2_inair.npz", "go2_inair/model/go2_fixed_base.xml")]
    + [("so101", f"so101/motions/{m}", "so101/model/so101.xml") for m in ("custom_motion", "multisine", "large_amplitude")],
)
def test_real_logs_are_quiet(mapping, file, model):
    log = read(DATA / file, mapping)
    assert codes(as_given(DATA / model, log), log) == []
