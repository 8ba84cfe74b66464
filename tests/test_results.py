"""Any saved result loads from its folder without saying what it is; another folder is refused in a sentence."""

import numpy as np
import pytest

import gapless
from gapless.errors import BadInput
from gapless.learn import CourseResult


def test_a_folder_gives_back_the_kind_of_result_that_was_saved(tmp_path):
    t = np.arange(100) / 50
    log = gapless.Log.from_arrays(("j",), t, {"q": np.sin(t)[:, None], "q_cmd": np.sin(t)[:, None]})
    gapless.inspect(log).save(tmp_path / "log")
    assert type(gapless.load(tmp_path / "log")).__name__ == "Inspection"
    zero = np.zeros(2)
    CourseResult(np.zeros((2, 0)), (), zero > 0, zero == 0, *[zero] * 8).save(tmp_path / "course")
    assert gapless.load(tmp_path / "course").verdict().text == "100.0% of 2 runs succeeded."
    with pytest.raises(BadInput, match=r"no saved result in it, which would be fit\.json, gap\.json"):
        gapless.load(tmp_path)
