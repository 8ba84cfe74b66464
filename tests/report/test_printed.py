"""Robots, twins, logs and beliefs print as tables, and in a line where they stand in a list."""

import numpy as np
import pytest

from gapless.logs import Log
from gapless.robots import load_robot
from gapless.twin import Twin, within_tolerance


def log():
    time = np.arange(100) * 0.02
    return Log.from_arrays(("hip", "knee"), time, {"q": np.zeros((100, 2)), "q_cmd": np.ones((100, 2))})


TWIN = Twin.load("bench")


@pytest.mark.parametrize(
    ("thing", "words"),
    [
        (log(), ("2.0 s, 2 joints", "q_cmd", "50.0", "hip, knee")),
        (log()["q_cmd"], ("100 samples of 2 columns", "knee")),
        (load_robot("arm"), ("6 joints", "fixed base", "shoulder_pan", "torque limit")),
        (TWIN, ("1 joints", "parameters of latency, gains")),
        (TWIN.space, ("latency.action", "nominal", "N m/rad")),
        (within_tolerance(TWIN.space), ("90 % interval", "gains.kp/servo")),
    ],
)
def test_it_prints_a_table_and_shows_in_a_line(thing, words):
    printed = str(thing)
    assert all(word in printed for word in words)
    assert max(map(len, printed.splitlines())) <= 100
    assert "\n" not in repr(thing)
    assert repr(thing).startswith(f"<{type(thing).__name__}: ")
    assert words[0] in thing._repr_html_() or "<pre" in thing._repr_html_()


def test_the_interval_that_is_printed_is_the_belief_s():
    belief = within_tolerance(TWIN.space)
    rows = {row[0]: row for row in belief.described().table.rows}
    low, high = map(float, rows["gains.kp/servo"][2].split(" .. "))
    i = TWIN.space.names.index("gains.kp/servo")
    assert belief.low[i] < low < float(rows["gains.kp/servo"][1]) < high < belief.high[i]
