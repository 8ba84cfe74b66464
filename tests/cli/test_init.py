"""`gapless init`: foreign logs of a stand-in go through inspect, replay and fit by the mapping that it drafts."""

from pathlib import Path

import numpy as np
import pytest

from gapless.cli import main
from gapless.logs import Log, read
from gapless.twin import Twin
from gapless.worlds import StandIn, StandInSpec, plan_motion, record
from tests.logs import bags

pytest.importorskip("rosbags")
LEGS = [f"{leg}_{part}" for leg in ("FR", "FL", "RR", "RL") for part in ("hip", "thigh", "calf")]


def recorded(robot: str, **more: object) -> Log:
    twin = Twin.load(robot, in_air=bool(more.get("in_air")))
    motion = plan_motion("rich", twin, 5.0, np.random.default_rng(0))
    return record(StandIn(StandInSpec(robot, seed=2, **more)), motion)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def arm() -> Log:
    return recorded("arm")


@pytest.fixture(scope="module")
def quadruped() -> Log:
    return recorded("quadruped", in_air=True)


def table(path: Path, columns: dict[str, np.ndarray], delimiter: str = ",", top: str = "", digits: int = 9) -> Path:
    rows = [delimiter.join(f"{v:.{digits}f}" for v in row) for row in np.column_stack(list(columns.values())).tolist()]
    text = "\n".join(rows)
    text = text.replace(".", ",") if delimiter == ";" else text
    path.write_text(f"{top}{delimiter.join(columns)}\n{text}\n")
    return path


def through(robot: str, files: list[Path], log: Log, capsys, *more: str, exact: float = 1e-6) -> str:
    """Draft, read, inspect and replay; what the draft says. The log must be the one that was recorded."""
    mapping = files[0].parent / "drafted.toml"
    main(["init", *map(str, files), "--robot", robot, "--out", str(mapping)])
    said = capsys.readouterr().out
    ours = read(files[0], mapping)
    for signal in ("q", "q_cmd"):
        np.testing.assert_allclose(ours[signal].of(log.joints), log[signal].values, atol=exact)
    given = [str(files[0]), "--mapping", str(mapping), *more]
    main(["inspect", *given, "--robot", robot, "--no-delay"])
    main(["replay", robot, *given, "--json"])
    capsys.readouterr()
    return said


@pytest.mark.parametrize("mcap", [True, False])
def test_a_bag_with_trajectories(arm, tmp_path, capsys, mcap):
    writer = bags.Writer(tmp_path / "bag", mcap)
    bags.states(writer, arm)
    bags.trajectories(writer, arm)
    writer.close()
    said = through("arm", [tmp_path / "bag"], arm, capsys)
    assert '"points.positions" = "q_cmd" }  # by its type, trajectory_msgs/JointTrajectory' in said


def test_a_bag_with_bare_numbers_whose_order_nobody_wrote_down(arm, tmp_path, capsys):
    writer = bags.Writer(tmp_path / "bag")
    bags.states(writer, arm)
    bags.arrays(writer, arm, [3, 1, 0, 2, 5, 4])
    writer.close()
    said = through("arm", [tmp_path / "bag"], arm, capsys)
    assert '["wrist_flex", "shoulder_lift", "shoulder_pan", "elbow_flex", "gripper", "wrist_roll"]' in said


def test_a_pair_of_unitree_tables(quadruped, tmp_path, capsys):
    parts = {"lowcmd": ("motor_cmd", {"q": "q_cmd"}), "lowstate": ("motor_state", {"q": "q", "dq": "dq"})}
    files = []
    for name, (part, fields) in parts.items():
        columns = {"timestamp": 1e3 * quadruped["q"].time}
        for field, signal in fields.items():
            values = quadruped[signal].of(LEGS) if signal != "q_cmd" else quadruped.at("q_cmd", quadruped["q"].time)
            values = values if signal != "q_cmd" else values[:, [quadruped.joints.index(j) for j in LEGS]]
            columns |= {f"{part}[{i}].{field}": values[:, i] for i in range(12)}
        files.append(table(tmp_path / f"walk_{name}.csv", columns))
    log = Log.from_arrays(
        quadruped.joints,
        quadruped["q"].time,
        {"q": quadruped["q"].values, "q_cmd": quadruped.at("q_cmd", quadruped["q"].time)},
    )
    said = through("quadruped", files, log, capsys, "--in-air")
    assert "in the order of Unitree's motors" in said and 'time_unit = "ms"  # gives 50 samples a second' in said


def test_a_messy_table(arm, tmp_path, capsys):
    wanted = arm.at("q_cmd", arm["q"].time)
    columns = {"Zeit": 1e3 * arm["q"].time}
    for i, joint in enumerate(arm.joints):
        columns |= {
            f"{joint.title()} Winkel": np.degrees(arm["q"].values[:, i]),
            f"{joint.title()} Soll": np.degrees(wanted[:, i]),
        }
    path = table(tmp_path / "run 3.csv", columns, ";", "# lab 2\nArm, third try\n", 6)
    log = Log.from_arrays(arm.joints, arm["q"].time, {"q": arm["q"].values, "q_cmd": wanted})
    said = through("arm", [path], log, capsys)
    assert 'units = { q = "deg" }' in said and '"Shoulder_Pan" = "shoulder_pan"' in said


def test_a_table_of_blanks_is_fitted(tmp_path, capsys):
    log = recorded("bench")
    wanted = log.at("q_cmd", log["q"].time)[:, 0]
    columns = {"t": log["q"].time, "servo_pos": log["q"].values[:, 0], "servo_target": wanted}
    path = table(tmp_path / "run.txt", columns, " ")
    main(["init", str(path), "--robot", "bench"])
    main(["fit", "bench", str(path), "--out", str(tmp_path / "fit")])
    assert (tmp_path / "fit" / "twin.xml").is_file()


def test_a_sign_is_guessed_and_a_second_draft_is_not_written_over_the_first(arm, tmp_path, capsys):
    time = arm["q"].time
    columns = {"t": time} | {f"q_{j}": arm["q"].column(j) for j in arm.joints}
    columns |= {f"q_des_{j}": arm.at("q_cmd", time)[:, i] * (-1 if j == "gripper" else 1) for i, j in enumerate(arm.joints)}
    path = table(tmp_path / "run.csv", columns)
    main(["init", str(path)])
    assert '"q/gripper" = { sign = -1 }' in capsys.readouterr().out
    assert set(read(path).signals) == {"q", "q_cmd"}  # found beside the log
    with pytest.raises(SystemExit) as caught:
        main(["init", str(path)])
    assert caught.value.code == 2 and "is there already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("hello\nworld\n", "no column"),
        ("a,b\n1,2\n0,1\n1,2\n", "no column is a time by its name, and none rises"),
        ("time,a,b\n1,2,3\n2,3,4\n", "no column is known by its name (time, a, b)"),
    ],
)
def test_what_says_nothing_is_refused_in_a_sentence(tmp_path, capsys, text, message):
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(SystemExit) as caught:
        main(["init", str(tmp_path / "x.csv")])
    error = capsys.readouterr().err.strip()
    assert caught.value.code == 2 and message in error and "\n" not in error
    assert [p.name for p in tmp_path.iterdir()] == ["x.csv"]


def columns_of(log: Log, position: str, command: str) -> dict[str, np.ndarray]:
    """Positions and commands under names with {} or {i} for the joint."""
    wanted = log.at("q_cmd", log["q"].time)
    out = {position.format(j, i=i): log["q"].values[:, i] for i, j in enumerate(log.joints)}
    return out | {command.format(j, i=i): wanted[:, i] for i, j in enumerate(log.joints)}


@pytest.mark.parametrize(
    ("position", "command", "said"),
    [
        ("/robot1/{}/position", "/robot1/{}/target", '"robot1/shoulder_pan" = "shoulder_pan"'),  # a prefix of all
        ("act_{}", "set_{}", '"act_{joint}" = { signal = "q" }'),  # no quantity is named
        ("q{i}", "qd{i}", '"qd{joint}" = { signal = "q_cmd" }'),  # the desired one, not the velocity
        ("q_{}", "qref_{}", '"qref_{joint}" = { signal = "q_cmd" }'),  # two words in one
        ("{} (pos)", "{} (cmd)", '"{joint} (pos)" = { signal = "q" }'),
    ],
)
def test_names_as_people_give_them(arm, tmp_path, capsys, position, command, said):
    path = table(tmp_path / "run.csv", {"t": arm["q"].time} | columns_of(arm, position, command))
    log = Log.from_arrays(arm.joints, arm["q"].time, {"q": arm["q"].values, "q_cmd": arm.at("q_cmd", arm["q"].time)})
    assert said in through("arm", [path], log, capsys)


def test_a_velocity_called_qd_stays_one(arm, tmp_path, capsys):
    columns = {"t": arm["q"].time} | {f"q_{j}": arm["q"].column(j) for j in arm.joints}
    path = table(tmp_path / "run.csv", columns | {f"qd_{j}": arm["dq"].column(j) for j in arm.joints})
    main(["init", str(path), "--robot", "arm"])
    said = capsys.readouterr().out
    assert '"qd_{joint}" = { signal = "dq" }' in said and "no commands were found" in said


def test_one_file_a_signal(arm, tmp_path, capsys):
    wanted, files = arm.at("q_cmd", arm["q"].time), []
    for name, values in {"position": arm["q"].values, "command": wanted}.items():
        files.append(
            table(tmp_path / f"{name}.csv", {"timestamp": arm["q"].time} | dict(zip(arm.joints, values.T, strict=True)))
        )
    log = Log.from_arrays(arm.joints, arm["q"].time, {"q": arm["q"].values, "q_cmd": wanted})
    through("arm", files, log, capsys)


def test_a_row_of_units_in_brackets(arm, tmp_path, capsys):
    path = table(tmp_path / "run.csv", {"Time": arm["q"].time} | columns_of(arm, "act_{}", "set_{}"), ";")
    first, *rows = path.read_text().splitlines()
    path.write_text("\n".join([first, ";".join(["[s]"] + ["[mrad]"] * 12), *rows]))
    main(["init", str(path), "--robot", "arm", "--out", str(tmp_path / "m.toml")])
    log = read(path, tmp_path / "m.toml")
    np.testing.assert_allclose(log["q"].of(arm.joints), 1e-3 * arm["q"].values, atol=1e-9)


def test_a_table_in_parquet_with_dates(arm, tmp_path, capsys):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {name: pa.array(values) for name, values in columns_of(arm, "{}_pos", "{}_cmd").items()}
    stamps = pa.array((1.7e15 + 1e6 * arm["q"].time).round().astype(np.int64)).cast(pa.timestamp("us"))
    table = pa.table({"run": pa.array(["third"] * len(stamps)), "stamp": stamps} | columns)
    parquet.write_table(table, tmp_path / "run.parquet")
    log = Log.from_arrays(arm.joints, arm["q"].time, {"q": arm["q"].values, "q_cmd": arm.at("q_cmd", arm["q"].time)})
    assert 'time_unit = "ns"  # gives 50 samples a second' in through("arm", [tmp_path / "run.parquet"], log, capsys)


def mixed(log: Log, position: str, command: str, factors: np.ndarray, commanded: np.ndarray) -> dict[str, np.ndarray]:
    """Times, positions and commands, of which some joints are in degrees."""
    columns, n = columns_of(log, position, command), len(log.joints)
    scaled = zip(columns.items(), [*factors, *commanded], strict=True)
    assert len(factors) == n
    return {"time": log["q"].time} | {name: values * factor for (name, values), factor in scaled}


EVERY_OTHER = np.where(np.arange(6) % 2, 180 / np.pi, 1.0)


def test_degrees_and_radians_in_one_table_are_told_apart_by_a_row_of_units(arm, tmp_path, capsys):
    columns = mixed(arm, "{}_pos", "{}_cmd", EVERY_OTHER, EVERY_OTHER)
    path = table(tmp_path / "run.csv", columns)
    first, *rows = path.read_text().splitlines()
    path.write_text("\n".join([first, ",".join(["s", *["rad", "deg"] * 6]), *rows]))
    log = Log.from_arrays(arm.joints, arm["q"].time, {"q": arm["q"].values, "q_cmd": arm.at("q_cmd", arm["q"].time)})
    assert '"gripper_pos" = { signal = "q", joint = "gripper", unit = "deg" }' in through("arm", [path], log, capsys)


@pytest.mark.parametrize("commanded", [EVERY_OTHER, np.ones(6)])
def test_degrees_and_radians_in_one_table_are_told_apart_by_velocities(arm, tmp_path, capsys, commanded):
    columns = mixed(arm, "{}_pos", "{}_cmd", EVERY_OTHER, commanded)
    path = table(tmp_path / "run.csv", columns | {f"{j}_vel [rad/s]": arm["dq"].column(j) for j in arm.joints})
    log = Log.from_arrays(arm.joints, arm["q"].time, {"q": arm["q"].values, "q_cmd": arm.at("q_cmd", arm["q"].time)})
    assert '"q/gripper" = { unit = "deg" }' in through("arm", [path], log, capsys)


def test_degrees_and_radians_in_one_table_that_nothing_tells_apart_are_doubted(arm, tmp_path, capsys):
    path = table(tmp_path / "run.csv", mixed(arm, "{}_pos", "{}_cmd", EVERY_OTHER, EVERY_OTHER))
    main(["init", str(path)])
    assert "(but shoulder_pan, elbow_flex, wrist_roll may be in rad: check)" in capsys.readouterr().out


def test_an_angle_that_is_a_turn_away_is_no_angle_in_degrees(arm, tmp_path, capsys):
    columns = {"t": arm["q"].time} | columns_of(arm, "{}_pos", "{}_cmd")
    columns["shoulder_pan_pos"] = columns["shoulder_pan_pos"] + 2 * np.pi
    path = table(tmp_path / "run.csv", columns)
    log = Log.from_arrays(arm.joints, arm["q"].time, {"q": arm["q"].values, "q_cmd": arm.at("q_cmd", arm["q"].time)})
    said = through("arm", [path], log, capsys)
    assert 'units = { q = "rad" }' in said and "q is +1 turns from its command" in said


def test_degrees_measured_and_radians_commanded(arm, tmp_path, capsys):
    columns = columns_of(arm, "{}_pos", "{}_cmd")
    turned = {name: np.degrees(v) if name.endswith("pos") else v for name, v in columns.items()}
    path = table(tmp_path / "run.csv", {"t": arm["q"].time} | turned)
    log = Log.from_arrays(arm.joints, arm["q"].time, {"q": arm["q"].values, "q_cmd": arm.at("q_cmd", arm["q"].time)})
    assert 'units = { q = "deg", q_cmd = "rad"' in through("arm", [path], log, capsys)


def test_arrays_with_their_joints_names(arm, tmp_path, capsys):
    path, wanted = tmp_path / "run.npz", arm.at("q_cmd", arm["q"].time)
    np.savez(path, t=arm["q"].time, joint_pos=arm["q"].values, joint_pos_target=wanted, joint_names=np.array(arm.joints))
    log = Log.from_arrays(arm.joints, arm["q"].time, {"q": arm["q"].values, "q_cmd": wanted})
    assert "# the file lists them" in through("arm", [path], log, capsys)


def test_states_and_commands_in_files_of_their_own(arm, tmp_path, capsys):
    wanted, files = arm.at("q_cmd", arm["q"].time), []
    for name, values in {"run_state": arm["q"].values, "run_command": wanted}.items():
        files.append(table(tmp_path / f"{name}.csv", {"t": arm["q"].time} | dict(zip(arm.joints, values.T, strict=True))))
    through("arm", files, Log.from_arrays(arm.joints, arm["q"].time, {"q": arm["q"].values, "q_cmd": wanted}), capsys)


def test_one_of_two_topics_that_say_the_same_is_drafted(arm, tmp_path, capsys):
    writer = bags.Writer(tmp_path / "bag", False)
    bags.states(writer, arm)
    for i, t in enumerate(arm["q"].time.tolist()):
        message = {"header": bags.stamp(t), "name": list(arm.joints), "position": arm["q"].values[i]}
        writer.write("/other/joint_states", "sensor_msgs/msg/JointState", t, message)
    bags.trajectories(writer, arm)
    writer.close()
    (tmp_path / "bag" / "metadata.yaml").unlink()  # and a bag whose .db3 was copied alone
    log = Log.from_arrays(arm.joints, arm["q"].time, {"q": arm["q"].values, "q_cmd": arm.at("q_cmd", arm["q"].time)})
    assert '# "/other/joint_states": sensor_msgs/JointState, not used' in through("arm", [tmp_path / "bag"], log, capsys)
