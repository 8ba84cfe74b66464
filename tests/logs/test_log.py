"""A log answers by name, on each signal's own clock."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from gapless.errors import BadInput
from gapless.logs import Log, Provenance, Signal


def test_signals_are_found_by_name_and_a_missing_one_is_named(small: Log) -> None:
    assert small["q"].values.shape == (40, 2)
    assert small["q"].unit == "rad"
    assert "tau" not in small
    with pytest.raises(BadInput, match="no signal 'tau', only"):
        small["tau"]
    with pytest.raises(BadInput, match="did you mean 'knee'"):
        small["q"].column("kne")


def test_rates_and_duration_come_from_the_clocks(small: Log) -> None:
    assert small.rate("q") == pytest.approx(100)
    assert small.rate("q_cmd") == pytest.approx(25)
    assert small.duration == pytest.approx(0.39)


def test_commands_are_held_and_measurements_interpolated(small: Log) -> None:
    q_cmd = small["q_cmd"]
    assert np.array_equal(small.at("q_cmd", q_cmd.time[4] + np.array([0, 0.01, 0.0399])), np.tile(q_cmd.values[4], (3, 1)))
    middle = small.at("dq", np.array([0.005]))[0]
    assert middle == pytest.approx(small["dq"].values[:2].mean(axis=0))


def test_the_nearest_sample_stands_outside_of_the_log(small: Log) -> None:
    for name in ("q_cmd", "dq"):
        outside = small.at(name, np.array([-5.0, 99.0]))
        assert np.array_equal(outside, small[name].values[[0, -1]])


def test_slice_cuts_every_signal_by_its_own_clock(small: Log) -> None:
    part = small.slice(0.1, 0.2)
    assert len(part["q"].time) == 10 and part["q"].host_time is not None and len(part["q"].host_time) == 10
    assert np.all((part["q_cmd"].time >= 0.1) & (part["q_cmd"].time < 0.2))


def test_renaming_reaches_every_signal_but_not_the_axes(small: Log) -> None:
    renamed = small.rename({"hip": "knee", "knee": "hip"})
    assert renamed["q"].columns == renamed.joints == ("knee", "hip")
    assert renamed["gyro"].columns == ("x", "y", "z")
    with pytest.raises(BadInput, match="unknown joint 'toe'"):
        small.rename({"toe": "hip"})
    with pytest.raises(BadInput, match="have the same name"):
        small.rename({"hip": "knee"})


def test_values_cannot_be_changed(small: Log) -> None:
    with pytest.raises(ValueError, match="read-only"):
        small["q"].values[0] = 1.0


@pytest.mark.parametrize(
    ("name", "shape", "columns", "said"),
    [
        ("tork", (5, 1), ("a",), "unknown signal 'tork'"),
        ("q", (5, 2), ("a",), "do not fit"),
        ("q", (5, 2), ("a", "a"), "named twice"),
        ("quat", (5, 4), ("x", "y", "z", "w"), "must be w, x, y, z"),
    ],
)
def test_signals_that_make_no_sense_are_refused(name: str, shape: tuple[int, int], columns: tuple[str, ...], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        Signal(name, np.arange(5.0), np.zeros(shape), columns)


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=30), st.lists(st.floats(-1.0, 40.0), min_size=1, max_size=10))
def test_a_held_value_is_always_one_that_was_logged(values: list[float], times: list[float]) -> None:
    log = Log.from_arrays(("a",), np.arange(len(values), dtype=float), {"q_cmd": np.array(values)[:, None]})
    held = log.at("q_cmd", np.array(times))[:, 0]
    expected = [values[int(np.clip(np.floor(t), 0, len(values) - 1))] for t in times]
    assert held.tolist() == expected


def test_messages_name_a_log_by_the_path_it_was_read_from() -> None:
    made = Log.from_arrays(["knee"], np.arange(3.0), {"q": np.zeros((3, 1))})
    assert made.name == "the log"
    with pytest.raises(BadInput, match="^the log has no signal 'tau'"):
        made["tau"]
    assert replace(made, provenance=Provenance("runs/a.npz")).name == "runs/a.npz"
