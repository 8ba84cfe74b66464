"""Inspection: the object of an inspection prints itself, makes its page, and comes back from its folder."""

from dataclasses import replace

import numpy as np

from gapless.logs import Inspection, Log, inspect


def test_an_inspection_prints_draws_saves_and_loads(tmp_path):
    t = np.arange(400) * 0.01 + 1e9  # a device clock far from 0
    q = np.degrees(0.5 * np.sin(3 * (t - t[0] - 0.03)))[:, None]
    log = Log.from_arrays(("<b>j</b>",), t, {"q_cmd": 0.5 * np.sin(3 * (t - t[0]))[:, None], "q": q})
    found = inspect(log, {"other": (-1.0, 1.0)})
    assert found.errors == 2
    assert "is in degrees" in str(found)
    assert found.verdict().text == "2 errors found."
    found.save(tmp_path)
    page = (tmp_path / "report.html").read_text().split("<body>")[1]
    assert "</i>command" in page
    assert "<b>j" not in page
    back = Inspection.load(tmp_path)
    assert back.findings == found.findings
    assert str(back) == str(found)
    back.page(tmp_path / "again.html")  # without the log: no curves
    assert replace(found, findings=()).verdict().text == "Nothing wrong was found."


def test_a_joint_that_is_pushed_far_beside_a_small_command_is_not_in_degrees():
    t = np.arange(400) * 0.01
    q_cmd, q = 0.03 * np.sin(3 * t)[:, None], 0.9 * np.sin(0.7 * t)[:, None]
    assert "in degrees" not in str(inspect(Log.from_arrays(("j",), t, {"q_cmd": q_cmd, "q": q})))
