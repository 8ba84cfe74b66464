"""Stages: done once, again where inputs change, resumed where they were interrupted, counted in robot time."""

import json

import pytest

from gapless.close.stages import Record, StageFailed, Stages, key_of, read_record
from gapless.errors import BadInput, PhysicsError


def counted(calls, value="made"):
    def make(folder):
        calls.append(sorted(path.name for path in folder.iterdir()))
        (folder / "result.txt").write_text(value)

    return make


def load(folder):
    return (folder / "result.txt").read_text()


def test_a_stage_is_done_once_and_again_only_where_its_inputs_change(tmp_path):
    calls = []
    for seconds, times in ((20, 1), (20, 1), (30, 2)):
        stages = Stages(tmp_path)
        assert stages.run("log", {"seconds": seconds}, counted(calls), load, robot=20.0) == "made"
        assert len(calls) == times and stages.spent == 20.0
    assert calls[1] == ["stage.json"]  # nothing of the old result is left


def test_the_order_of_inputs_does_not_matter_but_every_value_does():
    assert key_of({"a": 1, "b": [1.0, None]}) == key_of({"b": [1.0, None], "a": 1})
    assert key_of({"a": 1}) != key_of({"a": 2}) != key_of({"b": 2})


def test_an_interrupted_stage_finds_its_folder_as_it_left_it(tmp_path):
    def stopped(folder):
        (folder / "half.txt").write_text("")
        sum(range(3_000_000))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="stopped in stage fit: the same command goes on there"):
        Stages(tmp_path).run("fit", {}, stopped, load)
    calls, spent = [], read_record(tmp_path / "fit").computing
    Stages(tmp_path).run("fit", {}, counted(calls), load)
    assert calls == [["half.txt", "stage.json"]]
    assert 0 < spent <= read_record(tmp_path / "fit").computing


def test_a_stage_that_fails_names_itself_and_can_be_taken_up(tmp_path):
    def fails(folder):
        raise BadInput("the log is empty")

    def breaks(folder):
        raise PhysicsError("physics broke after 2 s")

    with pytest.raises(PhysicsError, match="stage fit: physics broke after 2 s; what was done before is kept"):
        Stages(tmp_path).run("fit", {}, breaks, load)

    def fills(folder):
        raise OSError(28, "No space left on device")

    with pytest.raises(StageFailed, match="stage fit: No space left on device; mend that and run the same again"):
        Stages(tmp_path).run("fit", {}, fills, load)
    with pytest.raises(StageFailed, match="stage fit: the log is empty; mend that and run the same again"):
        Stages(tmp_path).run("fit", {}, fails, load)
    assert Stages(tmp_path).run("fit", {}, counted([]), load) == "made"


def test_robot_time_is_counted_over_all_stages_and_once_for_each(tmp_path):
    stages = Stages(tmp_path, budget=30.0)
    for _ in range(2):
        stages.run("log", {}, counted([]), load, robot=20.0)
    with pytest.raises(StageFailed, match="stage trial: needs 16 s of robot time, and of 30 s 20 s are spent"):
        stages.run("trial", {}, counted([]), load, robot=16.0)
    assert stages.spent == 20.0


def test_a_second_round_has_folders_of_its_own_and_shares_the_robot_time(tmp_path):
    stages = Stages(tmp_path, budget=50.0)
    stages.run("log", {}, counted([]), load, robot=20.0)
    again = stages.below("again")
    again.run("log", {}, counted([], "another"), load, robot=20.0)
    assert stages.spent == 40.0 and list(stages.records) == ["log", "again/log"]
    assert load(again.place("log")) == "another" and again.key("log") == stages.records["again/log"].key
    with pytest.raises(StageFailed, match="stage again/trial: needs 16 s"):
        again.run("trial", {}, counted([]), load, robot=16.0)


def test_a_damaged_record_is_named(tmp_path):
    (tmp_path / "stage.json").write_text(json.dumps({"key": "a", "done": "yes"}))
    with pytest.raises(BadInput, match="stage.json"):
        read_record(tmp_path)
    assert read_record(tmp_path / "nowhere") is None
    assert Record("a", True).robot == 0.0
