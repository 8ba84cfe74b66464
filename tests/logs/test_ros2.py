"""ROS 2 bags, written by libraries of others, hold what the robot's log held; and other libraries read what we write."""

import sqlite3
from pathlib import Path

import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.logs import Log, read, write
from tests.logs import bags

pytest.importorskip("rosbags")
TIME = np.arange(200) * 0.01
JOINTS = ("shoulder", "elbow", "wrist")


@pytest.fixture(scope="module")
def log() -> Log:
    q = 0.3 * np.sin(TIME[:, None] * [3.0, 5.0, 7.0])
    told = 0.3 * np.sin((TIME[:, None] + 0.05) * [3.0, 5.0, 7.0])
    return Log.from_arrays(JOINTS, TIME, {"q": q, "dq": np.gradient(q, TIME, axis=0), "q_cmd": told})


def close_to(ours: Log, log: Log, signal: str, exact: float = 1e-9) -> None:
    assert ours[signal].columns == log[signal].columns
    np.testing.assert_allclose(ours[signal].values, log[signal].values, atol=exact)
    since = ours[signal].time - ours["q"].time[0]
    np.testing.assert_allclose(since, log[signal].time, atol=2e-4)


@pytest.mark.parametrize("mcap", [False, True])
def test_a_trajectory_of_one_point_is_a_command(log, tmp_path, mcap):
    writer = bags.Writer(tmp_path / "bag", mcap)
    bags.states(writer, log)
    bags.trajectories(writer, log)
    writer.close()
    ours = read(tmp_path / "bag")
    for signal in ("q", "dq", "q_cmd"):
        close_to(ours, log, signal)
    file = next(p for p in (tmp_path / "bag").iterdir() if p.suffix in (".db3", ".mcap"))
    assert np.array_equal(read(file)["q_cmd"].values, ours["q_cmd"].values)


def test_a_bag_of_humble_brings_no_definitions(log, tmp_path):
    writer = bags.Writer(tmp_path / "bag", version=8)
    bags.states(writer, log)
    bags.trajectories(writer, log)
    writer.close()
    with sqlite3.connect(tmp_path / "bag" / "bag.db3") as base:
        base.execute("DROP TABLE IF EXISTS message_definitions")
    close_to(read(tmp_path / "bag" / "bag.db3"), log, "q_cmd")


def test_a_trajectory_of_many_points_is_the_way_between_them(tmp_path):
    writer = bags.Writer(tmp_path / "bag")
    still = Log.from_arrays(["a"], np.arange(500) * 0.01, {"q": np.zeros((500, 1))})
    bags.states(writer, still)
    for start, points in ((1.0, [(0.0, 0.0), (1.0, 1.0), (2.0, 0.0)]), (2.5, [(0.5, 2.0)])):
        message = {"joint_names": ["a"], "points": [
            {"positions": [value], "time_from_start": {"sec": int(after), "nanosec": round(after % 1 * 1e9)}}
            for after, value in points
        ]}  # fmt: skip
        writer.write("/controller/joint_trajectory", "trajectory_msgs/msg/JointTrajectory", start, message)
    writer.close()
    ours = read(tmp_path / "bag")
    times = ours["q"].time[0] + np.array([1.5, 2.0, 2.45, 2.75, 3.0, 4.0])
    # the second trajectory takes over on the way back, at 0.5, and leads to 2 within half a second
    np.testing.assert_allclose(ours.at("q_cmd", times)[:, 0], [0.5, 1.0, 0.55, 1.25, 2.0, 2.0], atol=0.02)


def test_numbers_without_names_need_a_mapping_that_names_them(log, tmp_path):
    writer = bags.Writer(tmp_path / "bag")
    bags.states(writer, log)
    bags.arrays(writer, log, [2, 0, 1])
    writer.close()
    bare = read(tmp_path / "bag")
    assert "q_cmd" not in bare
    assert any("/forward_position_controller/commands" in note and "mapping" in note for note in bare.provenance.notes)
    mapping = tmp_path / "m.toml"
    mapping.write_text(
        '[topics]\n"/joint_states" = { position = "q" }\n'
        '"/forward_position_controller/commands" = { data = "q_cmd", joints = ["wrist", "shoulder", "elbow"] }\n'
    )
    ours = read(tmp_path / "bag", mapping)
    assert set(ours.signals) == {"q", "q_cmd"}
    np.testing.assert_allclose(ours["q_cmd"].of(JOINTS), log["q_cmd"].values)
    # stamps of the state are on the host's clock, to which the commands are bound
    np.testing.assert_allclose(ours["q"].time - ours["q_cmd"].time[0], log["q"].time + 1e-4, atol=1e-6)


def test_a_controller_s_reference_is_the_command_and_a_joint_state_the_state(log, tmp_path):
    writer = bags.Writer(tmp_path / "bag")
    bags.states(writer, log)
    bags.trajectories(writer, log)
    bags.controller_states(writer, log)
    writer.close()
    ours = read(tmp_path / "bag")
    close_to(ours, log, "q_cmd")
    assert "dq" in ours and any("that of /arm_controller/joint_trajectory is not used" in n for n in ours.provenance.notes)


def test_unitree_s_low_state_and_command(log, tmp_path):
    writer = bags.Writer(tmp_path / "bag")
    bags.unitree(writer, log)
    writer.close()
    mapping = tmp_path / "m.toml"
    mapping.write_text('joint_names = ["shoulder", "elbow", "wrist"]\n')
    ours = read(tmp_path / "bag", mapping)
    close_to(ours, log, "q", 1e-6)
    close_to(ours, log, "q_cmd", 1e-6)
    assert (
        (ours["kp"].values == 20).all() and (ours["kd"].values == 0.5).all() and ours["quat"].values[0].tolist() == [1, 0, 0, 0]
    )
    assert read(tmp_path / "bag").joints[:2] == ("motor0", "motor1")


def test_two_topics_of_one_kind_ask_for_a_mapping(log, tmp_path):
    writer = bags.Writer(tmp_path / "bag")
    bags.states(writer, log)
    writer.write("/other/joint_states", "sensor_msgs/msg/JointState", 0.0, {"name": ["a"], "position": [1.0]})
    writer.close()
    with pytest.raises(BadInput, match=r"/joint_states and /other/joint_states both hold q: say in the \[topics\]"):
        read(tmp_path / "bag")


def test_bags_that_are_none_are_refused_in_a_sentence(tmp_path):
    (tmp_path / "text.db3").write_text("hello")
    with pytest.raises(BadInput, match=r"text\.db3: byte 0: this is no SQLite file"):
        read(tmp_path / "text.db3")
    with sqlite3.connect(tmp_path / "other.db3") as base:
        base.execute("CREATE TABLE notes (text TEXT)")
    with pytest.raises(BadInput, match="no table 'topics'"):
        read(tmp_path / "other.db3")
    with sqlite3.connect(tmp_path / "view.db3") as base:
        base.execute("CREATE TABLE topics (id, name, type, serialization_format)")
        base.execute("CREATE VIEW messages AS SELECT 1 AS topic_id, 2 AS timestamp, randomblob(1000000000) AS data")
    with pytest.raises(BadInput, match="no table 'messages'"):
        read(tmp_path / "view.db3")
    with sqlite3.connect(tmp_path / "made.db3") as base:
        base.execute("CREATE TABLE topics (id, name, type, serialization_format)")
        base.execute("CREATE TABLE messages (topic_id, timestamp, data AS (zeroblob(1000000000)))")
    with pytest.raises(BadInput, match="computed columns"):
        read(tmp_path / "made.db3")
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "metadata.yaml").write_text("")
    with pytest.raises(BadInput, match=r"a bag without a \.db3 or \.mcap"):
        read(tmp_path / "empty")


def test_others_read_our_mcap_with_names(log, tmp_path: Path):
    from mcap.reader import make_reader
    from mcap_ros2.decoder import DecoderFactory

    write(log, tmp_path / "log.mcap")
    with (tmp_path / "log.mcap").open("rb") as file:
        reader = make_reader(file, decoder_factories=[DecoderFactory()])
        seen = [(c.topic, m) for _, c, _, m in reader.iter_decoded_messages(topics=["/joint_states", "/joint_commands"])]
    state, order = ([m for topic, m in seen if topic == name] for name in ("/joint_states", "/joint_commands"))
    assert state[7].name == list(JOINTS) and len(state) == len(order) == len(TIME)
    assert list(state[7].position) == log["q"].values[7].tolist() and list(state[7].velocity) == log["dq"].values[7].tolist()
    assert list(order[7].position) == log["q_cmd"].values[7].tolist() and list(order[7].velocity) == []
    assert state[7].header.stamp.sec + 1e-9 * state[7].header.stamp.nanosec == pytest.approx(TIME[7])
