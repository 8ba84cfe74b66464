"""A hundred mistakes of users: each ends in one sentence that says what to do and exit code 2, or is said in the result."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gapless.cli import main
from gapless.logs import Log, Signal, write
from gapless.twin import Twin
from gapless.worlds import StandIn, StandInSpec, plan_motion, record

URDF = """<robot name="u"><link name="a"/><link name="b"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
<collision><geometry><mesh filename="gone.stl"/></geometry></collision></link>
<joint name="j" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/>
<limit lower="-2" upper="2" effort="1" velocity="1"/>
</joint></robot>"""
BARE = '<mujoco><worldbody><body><joint name="j"/><geom size=".1"/></body></worldbody></mujoco>'
MAPPING = """[[file]]
time = "time"
[file.columns]
pos = { signal = "q", joint = "servo" }
cmd = { signal = "q_cmd", joint = "servo" }
"""
ROWS = "time,pos,cmd\n" + "".join(f"{0.01 * i:.2f},{np.sin(i / 50):.5f},{np.sin(i / 50 + 0.1):.5f}\n" for i in range(600))


def changed(log: Log, *names: str, by: Callable[[np.ndarray], np.ndarray]) -> Log:
    """A copy in which the values of some signals are others."""
    return replace(log, signals=log.signals | {n: replace(log[n], values=by(log[n].values.copy())) for n in names})


def retimed(log: Log, by: Callable[[np.ndarray], np.ndarray]) -> Log:
    return replace(log, signals={n: replace(s, time=by(s.time.copy())) for n, s in log.signals.items()})


def without(log: Log, name: str) -> Log:
    return replace(log, signals={n: s for n, s in log.signals.items() if n != name})


def some(log: Log, joints: tuple[str, ...]) -> Log:
    kept = {n: Signal(n, s.time, s.of(joints), joints) for n, s in log.signals.items()}
    return Log(kept, joints)


def swap(values: np.ndarray) -> np.ndarray:
    values[:, [1, 2]] = values[:, [2, 1]]
    return values


def shifted(values: np.ndarray) -> np.ndarray:
    values[:, 2] += 0.3
    return values


def backwards(time: np.ndarray) -> np.ndarray:
    time[100:] -= 1.0
    return time


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with logs, models and mappings, each with one mistake in it."""
    folder = tmp_path_factory.mktemp("mistakes")
    for robot in ("arm", "bench"):
        twin = Twin.load(robot)
        motion = plan_motion("rich", twin, 5.0, np.random.default_rng(1))
        write(record(StandIn(StandInSpec(robot, seed=1)), motion), folder / f"{robot}.npz")
    import pyarrow as pa
    import pyarrow.parquet as parquet

    from gapless.logs import read

    arm = read(folder / "arm.npz")
    logs = {
        "degrees": changed(arm, "q", "q_cmd", by=np.degrees),
        "command_degrees": changed(arm, "q_cmd", by=np.degrees),
        "milliseconds": retimed(arm, lambda t: 1e3 * t),
        "nanoseconds": retimed(arm, lambda t: 1e9 * t + 1.7e18),
        "swapped": changed(arm, "q", by=swap),
        "zero": changed(arm, "q", by=shifted),
        "nan": changed(arm, "q", by=lambda v: v * np.nan),
        "dead": changed(arm, "q", by=lambda v: v * 0 + 0.1),
        "still": changed(arm, "q", "q_cmd", "dq", by=lambda v: v * 0),
        "mirrored": changed(arm, "q", by=np.negative),
        "backwards": retimed(arm, backwards),
        "apart": replace(arm, signals=arm.signals | {"q_cmd": replace(arm["q_cmd"], time=arm["q_cmd"].time + 1e3)}),
        "short": arm.slice(0, 0.41),
        "no_command": without(arm, "q_cmd"),
        "no_position": without(arm, "q"),
        "five_joints": some(arm, arm.joints[:5]),
        "misspelt": arm.rename({"gripper": "griper"}),
    }
    for name, log in logs.items():
        write(log, folder / f"{name}.npz")
    texts = {
        "empty.npz": "", "text.npz": "hello", "text.mcap": "hello", "text.db3": "hello", "x.xyz": "1", "run.bag": "1",
        "empty.csv": "", "text.parquet": "hello, world",
        "bare.csv": ROWS, "header.csv": "time,pos,cmd\n", "word.csv": ROWS.replace("0.05,", "0.05,abc", 1),
        "ragged.csv": ROWS + "7.0,1\n", "columns.csv": ROWS.replace("cmd", "target", 1), "table.csv": ROWS,
        "ok.toml": MAPPING, "j.toml": MAPPING.replace("servo", "j"),
        "broken.toml": "time = ", "single.toml": MAPPING.replace("[[file]]", "[file]"),
        "key.toml": "joint_name = ['a']", "signal.toml": MAPPING.replace('"q_cmd"', '"q_des"'),
        "unit.toml": MAPPING.replace('"q",', '"q", unit = "degree",'), "sign.toml": MAPPING.replace('"q",', '"q", sign = 2,'),
        "joint.toml": MAPPING + '[convert]\n"q/sevo" = { sign = -1 }\n', "topic.toml": '[topics]\n"/x" = { position = "p" }\n',
        "mesh.urdf": URDF, "bare.xml": BARE, "broken.xml": "<mujoco>", "belief.json": "{}", "words.json": "hello",
        "empty.xml": "<mujoco/>", "s.toml": 'robot = "bench"', "spec.toml": 'robot = "bench"\nfriction = 3\n',
    }  # fmt: skip
    told = [line.split(",") for line in ROWS.splitlines()[1:]]
    texts |= {
        "long.csv": "time,joint,pos\n" + "".join(f"{t},a,{q}\n{t},b,{q}\n{t},c,{q}\n" for t, q, _ in told),
        "dates.csv": "date,pos\n" + "".join(f"2026-05-01 10:00:{float(t):09.6f},{q}\n" for t, q, _ in told),
        "timeless.csv": "a_pos,a_cmd\n" + "".join(f"{q},{u}\n" for _, q, u in told),
        "coarse.csv": "time,pos,cmd\n" + "".join(f"{int(20 * float(t)) / 20},{q},{u}\n" for t, q, u in told),
        "args.urdf": URDF.replace("<limit", '<origin xyz="$(arg x) 0 0"/><limit'),
        "world.urdf": URDF.replace('"a"', '"world"'),
        "alone.urdf": '<robot name="u"><link name="world"/></robot>',
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / "wide.csv").write_text(ROWS, encoding="utf-16")
    (folder / "unmarked.csv").write_text(ROWS, encoding="utf-16-le")
    (folder / "half.csv").write_bytes(ROWS.encode("utf-16")[:-1])
    parquet.write_table(pa.table({"time": [0.0, 0.1], "pos": [0.0, 0.1]}), folder / "bare.parquet")
    for name in ("policy", "folder", "pair", "unfinished"):
        (folder / name).mkdir()
    (folder / "unfinished" / "policy.onnx").write_text("")
    shutil.copytree(Path(__file__).parents[2] / "src/gapless/close/policies/quadruped_nominal", folder / "walk")
    for robot in ("arm", "bench"):
        shutil.copy(folder / f"{robot}.npz", folder / "pair")
    (folder / "policy" / "contract.json").write_text("{}")
    for name, file in {"checked": "verdict.json", "certified": "certificate.json"}.items():
        (folder / name).mkdir()
        (folder / name / file).write_text("{}")
    return folder


CSV = "inspect table.csv --mapping "
REFUSED = {
    "a log that is not there": ("inspect none.mcap", "none.mcap: there is no such"),
    "a folder without logs": ("inspect folder", "there is no log in folder"),
    "no log at all": ("replay arm", "name at least one log"),
    "an unknown kind of file": ("inspect x.xyz", "export it as CSV, whose mapping `gapless init` drafts"),
    "a bag of ROS 1": ("init run.bag", "`rosbags-convert --src run.bag --dst run`"),
    "an empty file": ("inspect empty.npz", "the file is empty"),
    "text called npz": ("inspect text.npz", "text.npz: not a whole zip container"),
    "text called mcap": ("inspect text.mcap", "this is no MCAP file"),
    "text called db3": ("inspect text.db3", "this is no SQLite file"),
    "text called parquet": ("inspect text.parquet", "it does not begin and end as parquet does"),
    "a table in parquet without a mapping": ("inspect bare.parquet", "`gapless init bare.parquet` drafts a mapping"),
    "a stretch beyond the end": ("inspect arm.npz@90:95", "there are no samples in this stretch"),
    "a table without a mapping": ("inspect bare.csv", "`gapless init bare.csv` drafts one"),
    "an empty table": (CSV.replace("table", "empty") + "ok.toml", "the file is empty"),
    "a table in UTF-16 without its mark": (CSV.replace("table", "unmarked") + "ok.toml", "save the table as UTF-8 CSV"),
    "a table in UTF-16 that was cut off": (CSV.replace("table", "half") + "ok.toml", "save the table as UTF-8 CSV"),
    "a table with a header only": (CSV.replace("table", "header") + "ok.toml", "line 2: there are no samples after the header"),
    "text where a number belongs": (CSV.replace("table", "word") + "ok.toml", "line 7, column 'pos': 'abc"),
    "a line that was cut off": (CSV.replace("table", "ragged") + "ok.toml", "2 cells, but the header has 3"),
    "a column that is not there": (CSV.replace("table", "columns") + "ok.toml", "unknown column 'cmd'"),
    "a mapping that does not exist": (CSV + "so100", "unknown mapping 'so100': did you mean 'so101'"),
    "a mapping file that is not there": (CSV + "none.toml", "none.toml: there is no such file"),
    "a mapping that is no TOML": (CSV + "broken.toml", "broken.toml: not TOML"),
    "[file] for [[file]]": (CSV + "single.toml", "write [[file]], not [file]"),
    "an unknown key": (CSV + "key.toml", "unknown entry of the mapping 'joint_name': did you mean 'joint_names'"),
    "an unknown signal": (CSV + "signal.toml", "unknown signal 'q_des'"),
    "an unknown unit": (CSV + "unit.toml", "unknown unit 'degree': did you mean 'deg'"),
    "a sign that is none": (CSV + "sign.toml", "sign must be 1 or -1"),
    "a joint that the log does not have": (CSV + "joint.toml", "unknown joint 'sevo': did you mean 'servo'"),
    "a topic's signal that is none": (CSV + "topic.toml", "unknown signal 'p'"),
    "an unknown robot": ("replay armm arm.npz", "unknown robot 'armm': did you mean 'arm'"),
    "a model that is not there": ("replay none.xml arm.npz", "none.xml"),
    "a model that is no XML": ("replay broken.xml arm.npz", "broken.xml"),
    "a robot without drives": ("replay bare.xml arm.npz", "no drives"),
    "a model without mass": ("replay empty.xml arm.npz", "no drives"),
    "a log for a model": ("replay arm.npz arm", "the model is named first"),
    "the log of another robot": ("replay arm bench.npz", "no q of shoulder_pan"),
    "a joint misspelt": ("replay arm misspelt.npz", "no q of gripper, which arm drives; the log has"),
    "logs of two robots": ("gap arm pair", "are of different robots"),
    "degrees for radians": ("replay arm degrees.npz", "these look like degrees"),
    "degrees for radians in a fit": ("fit arm degrees.npz --out f", "these look like degrees"),
    "degrees for radians in a gap": ("gap arm degrees.npz", "these look like degrees"),
    "commands in degrees, measured in radians": ("replay arm command_degrees.npz", "is in degrees: commanded in degrees"),
    "milliseconds for seconds": ("replay arm milliseconds.npz", "is the time in ms?"),
    "milliseconds for seconds in a gap": ("gap arm milliseconds.npz", "is the time in ms?"),
    "swapped joints": ("replay arm swapped.npz", "their channels are swapped"),
    "swapped joints in a gap": ("gap arm swapped.npz", "their channels are swapped"),
    "a sign": ("replay arm mirrored.npz", "with the other sign it fits"),
    "NaN throughout": ("replay arm nan.npz", "no usable stretch is left"),
    "a dead encoder": ("replay arm dead.npz", "is told to move by"),
    "time that runs backwards": ("replay arm backwards.npz", "time runs backwards"),
    "commands on another clock": ("replay arm apart.npz", "not one clock"),
    "no commands": ("replay arm no_command.npz", "no q_cmd, which arm needs"),
    "no positions": ("replay arm no_position.npz", "no q, which arm needs"),
    "0.4 s to fit to": ("fit arm short.npz --out f", "only 0.4 s of usable data"),
    "0.4 s to explain": ("gap arm short.npz", "record at least 4 s"),
    "nothing moves": ("fit arm still.npz --out f", "no joint moves"),
    "the same log twice alone": ("fit arm short.npz short.npz --out f", "of usable data"),
    "a negative gain": ("replay arm arm.npz --kp=-5", "kp must be a positive number"),
    "a gain of a joint that is not there": ("replay arm arm.npz --set gains.kp/knee=5", "unknown parameter 'gains.kp/knee'"),
    "a parameter without a value": ("replay arm arm.npz --set gains.kp", "expected NAME=NUMBER"),
    "a window of nothing": ("replay arm arm.npz --window 0", "--window must be a positive number of seconds"),
    "a page into no folder": ("replay arm arm.npz --out none/x.html", "there is no folder none"),
    "a plot that is no page": ("inspect arm.npz --plot x.pdf", "a page is written as .html"),
    "a page over the log": ("replay arm arm.npz --out arm.npz", "arm.npz: a page is written as .html"),
    "a plot over the motion": ("excite bare.xml --out m.csv --plot arm.npz", "arm.npz: a page is written as .html"),
    "a picture over the model": ("robots bare.xml --out bare.xml", "bare.xml: a picture is written as .png"),
    "a picture into no folder": ("robots arm --out none/x.png", "there is no folder none"),
    "a mapping over the log": ("init bare.csv --out bare.csv", "bare.csv: a mapping is written as .toml"),
    "a film over the log": ("course policy --clip arm.npz", "arm.npz: a picture is written as .png"),
    "options for no robot": ("robots --kp 5", "say which robot the options are of"),
    "a gain that is no number": ("robots arm --kp nan", "kp of *: a finite number was expected"),
    "a gain of no joint": ("robots arm --kp nothing=4", "unknown joint 'nothing'"),
    "no time between commands": ("robots arm --control-dt 0", "control_dt: 0 is not from"),
    "joints that are not there": ("gap arm arm.npz --joints griper", "unknown joint 'griper': did you mean 'gripper'"),
    "a delay below none": ("replay arm arm.npz --set latency.action=-0.5", "is outside its bounds"),
    "a parameter that is no number": ("replay arm arm.npz --set latency.action=nan", "expected NAME=NUMBER"),
    "a folder for a model": ("replay folder arm.npz", "no robot file 'folder'"),
    "a window longer than the log": ("replay arm arm.npz --window 100", "as long as half a window of 100 s"),
    "a stretch that ends before it begins": ("inspect arm.npz@3:1", "there are no samples in this stretch"),
    "a stretch of words": ("inspect arm.npz@b:c", "there is no such log"),
    "a free base without orientation": ("replay quadruped arm.npz", "say that the base was held (--in-air)"),
    "a robot for a stand-in": ("standin arm --out l.npz", "arm: there is no such file"),
    "a log to nowhere": ("standin s.toml", "say where the log goes"),
    "a motion to nowhere": ("excite arm", "say where the motion goes"),
    "a motion as text": ("excite arm --out m.txt", "a motion is written as .csv"),
    "a draft of nothing": ("init", "name a log, such as"),
    "a row for each joint": ("init long.csv --out l.toml", "make it one row a time with a column for each"),
    "times in words": ("init dates.csv --out d.toml", "the times in column 'date' are words"),
    "no column of times": ("init timeless.csv --out t.toml", "add one of times"),
    "times that were rounded": ("replay bench coarse.csv --mapping ok.toml", "repeat the time of the one before"),
    "a URDF with arguments": ("robots args.urdf", "<origin xyz='$(arg x) 0 0'> of joint 'j': run xacro first"),
    "a URDF that lets go of a joint to the world": ("robots world.urdf --floating-base", "its base cannot be let go"),
    "a URDF whose only link is the world": ("robots alone.urdf", "no link but the world"),
    "results into a file": ("fit arm arm.npz --out arm.npz", "arm.npz"),
    "results into a file, of a gap": ("gap arm arm.npz --out arm.npz", "not a folder"),
    "results where nothing can be written": ("fit bench bench.npz --out /proc/none/x", "/proc/none"),
    "a belief that is none": ("replay arm arm.npz --belief words.json", "words.json"),
    "a belief without content": ("replay arm arm.npz --belief belief.json", "belief.json"),
    "a policy folder without a network": ("course policy", "policy"),
    "a course for no policy": ("course none", "none"),
    "an unknown motion": ("standin s.toml --motion dance --out l.npz", "unknown motion 'dance'"),
    "a stand-in with an unknown key": ("standin spec.toml --out l.npz", "friction"),
    "a stand-in drawn over a log": ("standin --random --out arm.npz", "arm.npz: a stand-in is written as .toml"),
    "a log of an unknown kind": ("standin s.toml --out log.txt", "written as .mcap, .npz or .csv"),
    "a motion of no length": ("standin s.toml --seconds=-1 --out l.npz", "a motion lasts between 0 and 36000 s"),
    "fits that are none": ("fit --compare folder pair", "folder"),
    "a fit without logs": ("fit arm", "name at least one log"),
    "an export of no fit": ("export folder --to mjlab", "folder"),
    "a command without its policy": ("course", "course needs POLICY, as in `gapless course runs/walk --robot quadruped`"),
    "a command without its robot": ("run policy", "run needs --robot, as in `gapless run"),
    "a word for a whole number": ("train velocity --iterations many", "--iterations takes a whole number, not 'many'"),
    "a word for a number": ("excite arm --out m.csv --speed fast", "--speed takes a number, not 'fast'"),
    "a choice misspelt": ("train velocity --out r --adapt rmaa", "unknown --adapt 'rmaa': did you mean 'rma'"),
    "an option without its value": ("excite arm --out m.csv --seconds", "--seconds takes a value, and none follows it"),
    "a negative seed": ("actuator arm.npz --out d --seed -1", "--seed: a whole number from 0"),
    "fewer threads than none": ("train velocity --out r --threads -1", "--threads: a whole number from 0"),
    "training that learns nothing": ("train velocity --out r --rate 0", "rate: 0 is not from"),
    "more robots than anybody needs": ("course policy --draws 1000000000", "--draws: a whole number from 1 to 1000"),
    "drives learned from NaN": ("actuator nan.npz --out d", "q of shoulder_pan: 251 of 251 values are missing"),
    "drives learned from degrees": ("actuator degrees.npz --out d", "q of shoulder_pan is in degrees"),
    "a loop for a policy that is no policy": ("close --policy unfinished --out c", "unfinished/policy.onnx: the file is empty"),
    "a loop that tunes what was not trained": ("close --base walk --out c", "walk: has no best.npz, so it cannot be tuned"),
    "a loop without robot time": ("close --robot-time 0 --out c", "0 s of robot time are too few"),
    "a training that goes on from nothing": ("train velocity --from gone --out r", "gone/run.json: there is no such file"),
    "drives of two robots": ("actuator arm.npz bench.npz --out d", "are of different robots"),
    "a network for its folder": ("course walk/policy.onnx", "is not a policy folder, which holds policy.onnx"),
    "a loop with one command of three": ("close --command 1 --out c", "velocity takes 3 numbers (vx, vy, yaw_rate), not 1"),
    "a loop that is told to fly": ("close --command 100,0,0 --out c", "--command: vx: 100 is not from"),
    "a loop with a mapping that is none": ("close --mapping none --out c", "unknown mapping 'none'"),
    "observations without their log": ("check walk --observations none.npz", "give the log, too (--log)"),
    "a mapping without its log": ("check walk --mapping so101", "--mapping is about a log"),
    "a policy for a robot without drives": ("check walk --robot bare.xml", "(it has no driven joints)"),
    "a hand that is none": (
        "run walk --robot standin:s.toml --steer telepathy",
        "--steer takes keyboard, udp:PORT or a gamepad",
    ),
    "a log for a gamepad": ("run walk --robot standin:s.toml --steer arm.npz", "--steer takes keyboard, udp:PORT or a gamepad"),
    "a run recorded as a table": ("run walk --robot standin:s.toml --out run.csv", "a run is written as .mcap"),
    "a run over a log": ("run walk --robot standin:s.toml --out text.mcap", "a recording replaces nothing"),
    "a port that is none": ("run walk --robot standin:s.toml --steer udp:70000", "--steer takes keyboard"),
    "a keyboard that is none": ("run walk --robot standin:s.toml --steer keyboard", "needs a terminal to type in"),
    "a check over an earlier one": ("check walk --out checked", "holds verdict.json of an earlier run"),
    "a certificate for another robot": ("certify walk --robot arm", "FL_hip"),
    "a certificate over an earlier one": (
        "certify walk --out certified --on s.toml",
        "holds certificate.json of an earlier run",
    ),
    "an option misspelt": ("replay arm arm.npz --windw 1", "--windw"),
    "a command misspelt": ("inspct arm.npz", "inspct"),
}
FOUND = {
    "a table in UTF-16, as Excel saves it": (CSV.replace("table", "wide") + "ok.toml", "wide.csv: 6.0 s; q, q_cmd"),
    "a URDF without its mesh": ("replay mesh.urdf table.csv --mapping j.toml --out u.html", "gone.stl"),
    "a log that lacks a joint": ("replay arm five_joints.npz --out five.html", "gripper"),
    "degrees for radians": ("inspect degrees.npz --robot arm", "in degrees"),
    "no motion in a replay": ("replay arm still.npz --out still.html", "record motion"),
    "milliseconds for seconds": ("inspect milliseconds.npz", "is the time in ms?"),
    "swapped joints": ("inspect swapped.npz --robot arm", "their channels are swapped"),
    "a zero": ("inspect zero.npz --robot arm", "check its zero"),
    "a zero in a replay": ("replay arm zero.npz --out zero.html", "check its zero"),
    "no motion": ("inspect still.npz --robot arm", "no joint moves"),
    "0.4 s": ("inspect short.npz --robot arm", "lasts only 0.4 s"),
    "another robot": ("inspect arm.npz --robot quadruped", "is it a log of another robot?"),
    "no commands": ("inspect no_command.npz", "there are no commands"),
    "NaN throughout": ("inspect nan.npz", "values are missing"),
    "one bad log among good ones": ("replay arm arm.npz nan.npz --out two.html", "left out nan.npz"),
}


def test_a_log_in_nanoseconds_is_no_log_of_centuries(made, capsys, monkeypatch):
    monkeypatch.chdir(made)
    with pytest.raises(SystemExit) as stopped:  # with the delay, whose stretches were counted by the second
        main(["inspect", "nanoseconds.npz", "--robot", "arm"])
    assert stopped.value.code == 1
    assert "is the time in ns?" in " ".join(capsys.readouterr().out.split())


def call(line: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.chdir(folder)
    try:
        main([*line.split(), "--no-delay"] if line.startswith("inspect") else line.split())
    except SystemExit as stopped:
        return int(stopped.code or 0)
    return 0


@pytest.mark.parametrize("mistake", REFUSED)
def test_a_mistake_ends_in_one_sentence(made, capsys, monkeypatch, mistake):
    line, sentence = REFUSED[mistake]
    before = sorted(made.iterdir())
    assert call(line, made, monkeypatch) == 2
    said = capsys.readouterr().err.strip()
    assert sentence in said
    assert "\n" not in said and said.startswith("gapless: ") and "Traceback" not in said
    assert sorted(made.iterdir()) == before, "nothing is left behind"


@pytest.mark.parametrize("mistake", FOUND)
def test_a_mistake_is_said(made, capsys, monkeypatch, mistake):
    line, sentence = FOUND[mistake]
    assert call(line, made, monkeypatch) in (0, 1)
    assert sentence in " ".join(capsys.readouterr().out.split())


def test_there_are_a_hundred():
    assert len(REFUSED) + len(FOUND) >= 100
