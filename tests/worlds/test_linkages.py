"""Replays of robots with closed chains: a window starts with its loops closed, so that the robot replays as it moved."""

import numpy as np
import pytest

from gapless.worlds import StandIn, StandInSpec, build_standin, plan_motion, record, replay
from tests.data import DATA, needs_data


@needs_data
@pytest.mark.parametrize(
    ("robot", "in_air", "add"),
    [("robotiq_2f85", False, {}), ("agility_cassie", True, {"gains": {"kp": {"*": 80.0}, "kd": {"*": 2.0}}})],
)
def test_windows_of_a_linkage_start_closed(robot, in_air, add):
    spec = StandInSpec(str(DATA / f"models/{robot}.xml"), tolerance=0, in_air=in_air, add=add, timestep=0.002)
    twin, stand_in = build_standin(spec), StandIn(spec)
    log = record(stand_in, plan_motion("chirp", twin, 2.0, np.random.default_rng(0)), stand_in.signal)
    error = np.degrees(replay(twin, log, twin.space.nominal[None], window=0.5).rmse("q"))
    assert error.mean() < 0.3  # 0.7 and 2.6 deg where loops start at home


@needs_data
def test_a_robot_of_mixed_drives_is_recorded_and_replayed_in_the_units_of_each():
    spec = StandInSpec(str(DATA / "models/hello_robot_stretch_3.xml"), tolerance=0, in_air=True, timestep=0.002)
    twin, stand_in = build_standin(spec), StandIn(spec)
    log = record(stand_in, plan_motion("chirp", twin, 1.0, np.random.default_rng(0)), stand_in.signal)
    assert log["dq_cmd"].columns == ("joint_left_wheel", "joint_right_wheel")
    assert not set(log["q_cmd"].columns) & set(log["dq_cmd"].columns)
    assert replay(twin, log, twin.space.nominal[None]).rmse("q").max() < 1e-2
