"""The result of a course: figures and falls by command, on a page and back from a folder."""

import re

import numpy as np
import pytest

from gapless.learn import CourseResult


def made() -> CourseResult:
    command, fell = np.array([[1.0, 0.3, 0.8]] * 2 + [[0.0, 0.0, 0.0]]), np.array([True, False, True])
    error, zero = np.array([np.nan, 1.044, np.nan]), np.zeros(3)
    columns = ("vx", "vy", "yaw_rate")
    return CourseResult(command, columns, fell, ~fell, error, error, zero, zero, zero, zero, zero, zero, "walk")


def test_runs_that_fell_at_once_do_not_make_an_error_look_smaller(tmp_path):
    made().page(tmp_path / "page.html")
    rows = re.findall(r"vx [^<]*</td>(.*?)</tr>", (tmp_path / "page.html").read_text(), re.DOTALL)
    assert [re.findall(r">([^<]+)</td>", row) for row in rows] == [
        ["100%", "0%", "none counted", "none counted"],
        ["50%", "50%", "1.044", "1.044"],
    ]


@pytest.mark.parametrize(
    ("success", "idle", "good", "sentence"),
    [(0.97, 0.03, True, "3.0%"), (0.97, 0.99, False, "no better"), (1.0, 1.0, True, "no better"), (0.5, 0.0, False, "50.0%")],
)
def test_a_policy_that_does_not_beat_doing_nothing_says_so(success, idle, good, sentence):
    done, zero = np.arange(100) < 100 * success, np.zeros(100)
    verdict = CourseResult(np.zeros((100, 0)), (), ~done, done, *[zero] * 8, idle={"success": idle}).verdict()
    assert verdict.good == good
    assert sentence in verdict.text


def test_a_result_comes_back_from_its_folder(tmp_path):
    made().save(tmp_path)
    back = CourseResult.load(tmp_path)
    assert back.summary() == made().summary()
    assert str(back) == str(made())
    assert "33.3% of 3 runs succeeded." in str(back)
