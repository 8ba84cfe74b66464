"""The result of a course: figures and falls by command, on a page and back from a folder."""

import re

import numpy as np

from gapless.learn import CourseResult


def made() -> CourseResult:
    command, fell = np.array([[1.0, 0.3, 0.8]] * 2 + [[0.0, 0.0, 0.0]]), np.array([True, False, True])
    error, zero = np.array([np.nan, 1.044, np.nan]), np.zeros(3)
    columns = ("vx", "vy", "yaw_rate")
    return CourseResult(command, columns, fell, ~fell, error, error, zero, zero, zero, zero, zero, zero, "walk")


def test_runs_that_fell_at_once_do_not_make_an_error_look_smaller(tmp_path):
    made().page(tmp_path / "page.html")
    rows = re.findall(r"vx [^<]*</td>(.*?)</tr>", (tmp_path / "page.html").read_text(), re.DOTALL)
    assert [re.findall(r">([^<]+)</td>", row) for row in rows] == [["100%", "all fell", "all fell"], ["50%", "1.044", "1.044"]]


def test_a_result_comes_back_from_its_folder(tmp_path):
    made().save(tmp_path)
    back = CourseResult.load(tmp_path)
    assert back.summary() == made().summary()
    assert str(back) == str(made())
    assert "33.3% of 3 runs succeeded." in str(back)
