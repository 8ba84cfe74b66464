"""What the names of columns say."""

import pytest

from gapless.logs.draft.words import read_name, time_column


@pytest.mark.parametrize(
    ("column", "signal", "unit"),
    [
        ("vel [deg/s]", "dq", "deg/s"), ("vel_rad_s", "dq", "rad/s"), ("velocity (dps)", "dq", "deg/s"),
        ("dq_deg", "dq", "deg/s"),
        ("tau [N m]", "tau", "N m"), ("torque_mNm", "tau", "mN m"), ("current_mA", "current", "mA"),
        ("temp_C", "temperature", "degC"),
        ("pos_mm", "q", "mm"), ("angle [°]", "q", "deg"),
    ],
)  # fmt: skip
def test_units_in_the_names_of_columns(column, signal, unit):
    reading = read_name(f"left_knee_{column}")
    assert reading and (reading.signal, reading.joint, reading.unit) == (signal, "left_knee", unit)


@pytest.mark.parametrize(
    ("column", "signal", "joint"),
    [("elbow_des_pos_store", "q_cmd", "elbow"), ("left_pos_knee", "q", "left_knee"), ("raw_hip_vel", "dq", "hip")],
)
def test_a_joint_is_named_by_the_words_that_mean_nothing_else(column, signal, joint):
    reading = read_name(column)
    assert reading and (reading.signal, reading.joint) == (signal, joint)


def test_a_tick_is_the_clock_where_there_is_no_time():
    assert time_column(["tick", "q_hip", "time"]) == ["time", "tick"]
