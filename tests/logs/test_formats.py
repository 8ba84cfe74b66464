"""Every format is read for what it says: names, units, clocks, orders."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.logs import find, load_mapping, read
from tests.logs import samples


def test_ros2_joint_states_commands_and_imu(tmp_path: Path) -> None:
    for chunked in (True, False):
        samples.ros2(tmp_path / "bag.mcap", chunked)
        log = read(tmp_path / "bag.mcap")
        assert log.joints == samples.JOINTS
        assert np.array_equal(log["q"].values, samples.Q) and np.array_equal(log["q_cmd"].values, samples.Q_CMD)
        assert np.array_equal(log["dq"].values[0], [1.0, 2.0]) and "tau" not in log
        assert log["q"].time == pytest.approx(samples.TIME + 5e-4, abs=2e-9), "device time is the stamp"
        assert log["q"].host_time == pytest.approx(samples.TIME, abs=2e-9), "host time is when it was recorded"
        assert np.array_equal(log["quat"].values[0], [0.9, 0.1, 0.2, 0.3])
        assert np.array_equal(log["gyro"].values[0], [1, 2, 3]) and np.array_equal(log["acc"].values[0], [0, 0, 9.81])


def test_ros2_agrees_with_the_field_s_own_decoder(tmp_path: Path) -> None:
    samples.ros2(tmp_path / "bag.mcap")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from mcap_ros2.reader import read_ros2_messages
    theirs = [m.ros_msg.position for m in read_ros2_messages(str(tmp_path / "bag.mcap"), topics=["/joint_states"])]
    assert np.array_equal(read(tmp_path / "bag.mcap")["q"].values, np.array(theirs))


def test_ros2_messages_of_other_joints_are_left_out_and_counted(tmp_path: Path) -> None:
    from mcap_ros2.writer import Writer

    with (tmp_path / "bag.mcap").open("wb") as file:
        writer = Writer(file)
        schema = writer.register_msgdef("sensor_msgs/msg/JointState", samples.JOINT_STATE)
        for i, names in enumerate([["a", "b"], ["a", "b"], ["a", "c"]]):
            header = {"stamp": {"sec": 1, "nanosec": i}, "frame_id": ""}
            message = {"header": header, "name": names, "position": [0.0, 1.0], "velocity": [], "effort": []}
            writer.write_message("/joint_states", schema, message, i, i, i)
        writer.finish()
    log = read(tmp_path / "bag.mcap")
    assert log.joints == ("a", "b") and len(log["q"].time) == 2
    assert "/joint_states: 1 of 3 messages have other joints or fields than most, and are not used" in log.provenance.notes


def test_lerobot_episodes_are_logs(tmp_path: Path) -> None:
    samples.lerobot(tmp_path / "ds", episodes=3)
    with pytest.raises(BadInput, match="episodes 0 to 2; name one, as in .*ds#0"):
        read(tmp_path / "ds")
    log = read(tmp_path / "ds#2")
    assert log.joints == samples.JOINTS and log["q"].values == pytest.approx(samples.Q, abs=1e-6)
    assert log["q_cmd"].values == pytest.approx(samples.Q_CMD, abs=1e-6)
    assert "does not state the unit" in " ".join(log.provenance.notes)
    with pytest.raises(BadInput, match="no episode 7, only 0 to 2"):
        read(tmp_path / "ds#7")


@pytest.mark.parametrize("packed", [True, False])
def test_sage_folders(tmp_path: Path, packed: bool) -> None:
    samples.sage(tmp_path / "motion", packed)
    log = read(tmp_path / "motion")
    assert log.joints == samples.JOINTS
    assert np.array_equal(log["q"].values, samples.Q) and np.array_equal(log["q_cmd"].values, samples.Q_CMD)
    assert log["q"].time == pytest.approx(samples.TIME), "microseconds"


def test_csv_units_signs_and_text_columns(tmp_path: Path) -> None:
    (tmp_path / "run.csv").write_text(samples.csv_text())
    (tmp_path / "run.toml").write_text(samples.CSV_MAPPING)
    log = read(tmp_path / "run.csv")
    assert log["q"].column("hip") == pytest.approx(np.radians(samples.Q[:, 0]))
    assert np.array_equal(log["q"].column("knee"), -samples.Q[:, 1])
    assert "q (hip): converted from deg to rad" in log.provenance.notes
    assert "run.csv: ignored columns: phase" in log.provenance.notes


def test_csv_of_other_habits(tmp_path: Path) -> None:
    """Semicolons, no header, comments, empty cells, text that changes."""
    mapping = '[[file]]\ntime = "{0}"\ntime_unit = "ms"\n[file.columns]\n{1} = {{ signal = "q", joint = "a" }}\n'
    habits = {
        "t;x;why\n0;1.5;a\n20;;b\n\n# break\n40;2.5;c\n": ("t", "x"),
        "0,1.5\n20,\n40,2.5\n": ("0", "1"),
        '# t, x, why\r\n0,1.5,"a,b"\r\n20,,""\r\n40,2.5,c\r\n': ("t", "x"),
    }
    for text, names in habits.items():
        (tmp_path / "run.csv").write_text(text, newline="")
        (tmp_path / "run.toml").write_text(mapping.format(*names))
        log = read(tmp_path / "run.csv")
        assert log["q"].time.tolist() == [0, 0.02, 0.04]
        assert np.array_equal(log["q"].values[:, 0], [1.5, np.nan, 2.5], equal_nan=True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("t,x\n0,1\n1,oops\n", "line 3, column 'x': 'oops' is not a number"),
        ("t,x\n0,1\n1,2,3\n", "line 3: 3 cells, but the header has 2"),
        ("t,x\n0,1\nnan,2\n", "line 3: time 't' is nan"),
        ("t,x\n0,1\n1,inf\n", "line 3: 'x' is infinite for a"),
        ("t,y\n0,1\n", "line 1: unknown column 'x'"),
        ("t,x\n", "no samples after the header"),
        ("", "the file is empty"),
        ("t,x\n" + "0" * (3 << 20), "longer than"),
    ],
)
def test_a_bad_csv_is_named_by_line_and_column(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "run.csv").write_text(text)
    (tmp_path / "run.toml").write_text('[[file]]\ntime = "t"\n[file.columns]\nx = { signal = "q", joint = "a" }\n')
    with pytest.raises(BadInput, match=said) as error:
        read(tmp_path / "run.csv")
    assert "run.csv" in str(error.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tim_unit = 's'", "unknown entry of the mapping 'tim_unit': did you mean 'time_unit'"),
        ("time_unit = 'h'", "unknown unit 'h'"),
        ("[[file]]\n[file.columns]\n", "which column is the time"),
        ("[[file]]\ntime='t'\n[file.columns]\nx = { signal = 'qq' }", "unknown signal 'qq'"),
        ("[[file]]\ntime='t'\n[file.columns]\nx = { signal = 'q', unit = 'V' }", "unknown unit 'V'"),
        ("[[file]]\ntime='t'\n[file.columns]\nx = { signal = 'q', joint = 'a', sing = -1 }", "did you mean 'sign'"),
        ("[[file]]\ntime='t'\n[file.columns]\nx = { signal = 'q', sign = 2 }", "sign must be 1 or -1"),
        ("[convert]\n'q/a' = { scale = 'big' }", "convert 'q/a': scale: a finite number was expected"),
        ("[file]\n", r"write \[\[file\]\]"),
        ("= 3", "not TOML"),
    ],
)
def test_a_bad_mapping_is_named_by_its_key(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "bad.toml").write_text(text)
    with pytest.raises(BadInput, match=said):
        load_mapping(tmp_path / "bad.toml")


def test_an_unknown_mapping_or_log_is_refused_with_the_valid_names(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="did you mean 'so101'"):
        load_mapping("so100")
    with pytest.raises(BadInput, match="there is no such log"):
        read(tmp_path / "nothing.xyz")
    (tmp_path / "x.bag").write_bytes(b"x")
    with pytest.raises(BadInput, match="known format"):
        read(tmp_path / "x.bag")
    (tmp_path / "x.csv").write_text("t,x\n0,1\n")
    with pytest.raises(BadInput, match="needs a mapping"):
        read(tmp_path / "x.csv")


def test_bam_constants_and_signed_load(tmp_path: Path) -> None:
    samples.bam(tmp_path / "bench.json")
    log = read(tmp_path / "bench.json")
    assert log.meta == {"mass": 0.5, "motor": "x", "firmware": {"P": 100}}
    assert np.all(log["load"].values == -6) and np.all(log["enabled"].values == 1)


def test_pace_without_names_numbers_the_joints(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="PACE files need torch")
    samples.pace(tmp_path / "traj.pt")
    log = read(tmp_path / "traj.pt")
    assert log.joints == ("joint0", "joint1") and log["q"].values == pytest.approx(samples.Q, abs=1e-6)


def test_folders_of_logs_are_found_in_order(tmp_path: Path) -> None:
    samples.sage(tmp_path / "b")
    samples.sage(tmp_path / "a")
    samples.bam(tmp_path / "c.json")
    assert [p.name for p in find(tmp_path)] == ["a", "b", "c.json"]


def test_a_stretch_of_a_log_is_named_by_its_seconds(tmp_path: Path) -> None:
    samples.bam(tmp_path / "bench.json")
    whole = read(tmp_path / "bench.json")
    log = read(f"{tmp_path}/bench.json@0.2:0.5")
    assert log["q"].time == pytest.approx(samples.TIME[10:25]) and log.name.endswith("bench.json@0.2:0.5")
    assert log.provenance.notes[-1] == "only 0.2 to 0.5 s of the file are used"
    assert np.array_equal(read(f"{tmp_path}/bench.json@0.2:")["q"].values, whole["q"].values[10:])
    assert np.array_equal(read(f"{tmp_path}/bench.json@:0.5")["q"].values, whole["q"].values[:25])
    with pytest.raises(BadInput, match=r"no samples in this stretch; the log lasts 1\.18 s"):
        read(f"{tmp_path}/bench.json@7:9")
    with pytest.raises(BadInput, match=r"bunch\.json: there is no such file"):
        read(f"{tmp_path}/bunch.json@7:9")


MESSY = """# robot 7, lab 2
% recorded by hand
Zeit [ms];hip_pos;knee_pos;hip_soll;knee_soll;note
ms;deg;deg;deg;deg;
0;1,5;-2,5;1,0;-2,0;ok
10;2,5;-3,5;2,0;-3,0;ok
# a pause
20;3,5;;3,0;-4,0;ok
"""
PATTERNS = """units = { q = "deg" }
[[file]]
time = "Zeit [ms]"
time_unit = "ms"
[file.columns]
"{joint}_pos" = { signal = "q" }
"{joint}_soll" = { signal = "q_cmd" }
"""


def test_a_table_as_people_write_it(tmp_path: Path) -> None:
    (tmp_path / "messy.csv").write_text(MESSY)
    (tmp_path / "messy.toml").write_text(PATTERNS)
    log = read(tmp_path / "messy.csv")
    assert log.joints == ("hip", "knee") and log["q"].time == pytest.approx([0, 0.01, 0.02])
    assert np.degrees(log["q"].column("hip")) == pytest.approx([1.5, 2.5, 3.5])
    assert np.degrees(log["q_cmd"].column("knee")) == pytest.approx([-2, -3, -4])
    assert np.isnan(log["q"].column("knee")[2])


@pytest.mark.parametrize(
    "text",
    [
        "# time a b\n0.0 1.0 2.0\n0.1 1.5 2.5\n",  # numpy.savetxt
        "Recording of Monday\n\ntime\ta\tb\n0,0\t1,0\t2,0\n0,1\t1,5\t2,5\n",
        "time;a;b;\n0.0;1.0;2.0;\n0.1;1.5;2.5;\n",
        "  time   a     b\n  0.0   1.0   2.0\n  0.1   1.5   2.5\n",
        "\ufefftime,a,b\r\n0.0,1.0,2.0\r\n0.1,1.5,2.5\r\n",
    ],
)
def test_the_same_numbers_in_other_clothes(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.txt").write_text(text)
    (tmp_path / "x.toml").write_text('[[file]]\ntime = "time"\n[file.columns]\n"{joint}" = { signal = "q" }\n')
    log = read(tmp_path / "x.txt")
    assert log.joints == ("a", "b") and log["q"].values.tolist() == [[1, 2], [1.5, 2.5]] and log["q"].time.tolist() == [0, 0.1]


def test_a_pattern_that_matches_nothing_and_a_unit_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "messy.csv").write_text(MESSY)
    (tmp_path / "m.toml").write_text(PATTERNS.replace("{joint}_pos", "{joint}_position"))
    with pytest.raises(BadInput, match=r"messy\.csv: no column is called '\{joint\}_position'; there are Zeit"):
        read(tmp_path / "messy.csv", tmp_path / "m.toml")
    (tmp_path / "m.toml").write_text(PATTERNS.replace('"deg"', '"degrees"'))
    with pytest.raises(BadInput, match=r"units: q: unknown unit 'degrees': did you mean"):
        read(tmp_path / "messy.csv", tmp_path / "m.toml")


def test_ros2_joints_in_messages_of_their_own_are_put_beside_the_others(tmp_path: Path) -> None:
    from mcap_ros2.writer import Writer

    with (tmp_path / "bag.mcap").open("wb") as file:
        writer = Writer(file)
        schema = writer.register_msgdef("sensor_msgs/msg/JointState", samples.JOINT_STATE)
        for i in range(41):  # an arm, and at every other message a gripper, a millisecond later
            for names, late in ((["a", "b"], 0), (["grip"], 1_000_000))[: 2 - i % 2]:
                at = 20_000_000 * i + late
                header = {"stamp": {"sec": 1, "nanosec": at}, "frame_id": ""}
                message = {"header": header, "name": names, "position": [at * 1e-9] * len(names), "velocity": [], "effort": []}
                writer.write_message("/joint_states", schema, message, at, at, at)
        writer.finish()
    log = read(tmp_path / "bag.mcap")
    assert log["q"].columns == ("a", "b", "grip")
    np.testing.assert_allclose(log["q"].column("grip")[1:], 0.02 * np.arange(1, 41), atol=1e-9)
    assert "grip is in messages of its own" in " ".join(log.provenance.notes)


@pytest.mark.parametrize("word", ["N/A", "null", "#NV"])
def test_words_for_missing_values_are_nan(tmp_path: Path, word: str) -> None:
    (tmp_path / "t.csv").write_text(f"time,pos,other\n0,{word},{word}\n0.1,2,{word}\n0.2,{word},1\n")
    (tmp_path / "t.toml").write_text('[[file]]\ntime = "time"\n[file.columns]\npos = { signal = "q", joint = "j" }\n')
    np.testing.assert_equal(read(tmp_path / "t.csv")["q"].values[:, 0], [np.nan, 2, np.nan])


def test_a_table_as_windows_saves_it_keeps_its_names(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("Zeit;Hüfte [°]\n0;1,5\n0,1;2\n".encode("cp1252"))
    (tmp_path / "t.toml").write_text('[[file]]\ntime = "Zeit"\n[file.columns]\n"Hüfte [°]" = { signal = "q", joint = "j" }\n')
    assert read(tmp_path / "t.csv")["q"].values[:, 0].tolist() == [1.5, 2.0]


def test_npz_with_texts_and_with_too_many_axes(tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text('[[file]]\ntime = "t"\n[file.columns]\npos = { signal = "q" }\n')
    np.savez(tmp_path / "a.npz", t=np.arange(3.0), pos=np.zeros((3, 2)), names=np.array(["a", "b"]))
    assert read(tmp_path / "a.npz", mapping=tmp_path / "t.toml")["q"].values.shape == (3, 2)
    np.savez(tmp_path / "a.npz", t=np.arange(3.0), pos=np.zeros((3, 2, 1)))
    with pytest.raises(BadInput, match=re.escape("has shape (3, 2, 1); (samples,) or (samples, joints) was expected")):
        read(tmp_path / "a.npz", mapping=tmp_path / "t.toml")
