"""A policy on live robots: in process, over CAN and over UDP; recorded, refused, killed, steered."""

import dataclasses
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import gapless
from bench.motion import InStep, apart, can_config, motion, ways
from gapless.check import Check, PolicyCheck
from gapless.cli import main
from gapless.deploy import read_policy_frames, run
from gapless.deploy.can_motors import OnVirtualBus
from gapless.deploy.can_robot import frame, open_buses
from gapless.deploy.emulated import Emulated, InProcess
from gapless.deploy.fuzz import fuzzed_packet
from gapless.deploy.ladder import WHY
from gapless.deploy.limits import limits_of
from gapless.deploy.mit import Ranges, decode, encode
from gapless.deploy.runner import Runner
from gapless.deploy.serve import Server
from gapless.errors import BadInput
from gapless.logs import read
from gapless.policy import Estimator, Gait, Observer, load_policy
from gapless.robots import load_robot
from gapless.worlds import StandInSpec

POLICY = Path(gapless.__file__).parent / "close/policies/quadruped_wide"
pytestmark = pytest.mark.xdist_group("deploy")


@pytest.fixture(scope="module")
def policy():
    return load_policy(POLICY)


@pytest.fixture(scope="module")
def recorded(policy, tmp_path_factory):
    """A run in process, its recording and its result."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "spec.toml").write_text('robot = "quadruped"\nseed = 5\n')
    path = folder / "run.mcap"
    return path, run(policy, f"standin:{folder / 'spec.toml'}", command=(0.4, 0.0, 0.0), seconds=4.5, recording=path)


def test_a_policy_walks_and_the_run_is_a_log(recorded):
    path, result = recorded
    assert result.reason == "" and result.seconds >= 4.5 and result.answers >= 225
    log = read(path)
    assert log.rate("q") == pytest.approx(1000, rel=0.01)
    assert {"q", "dq", "tau", "quat", "gyro", "q_cmd", "kp", "kd", "tau_ff", "temperature"} <= set(log.signals)
    assert log.duration > 3.0


def test_the_gap_is_measured_in_the_policys_part_of_a_recording(recorded, capsys):
    _, result = recorded
    assert "policy's part of the" in str(result)
    main(["gap", "quadruped", result.stretch, "--measure-only", "--json"])
    assert "The model is" in json.loads(capsys.readouterr().out)["verdict"]


def test_the_robot_sees_what_training_saw(recorded, policy):
    """Observations of the runtime against those assembled from the recording's readings alone."""
    path, _ = recorded
    frames, log, contract = read_policy_frames(path), read(path), policy.contract
    observer, gait, robot = Observer(contract, 1), Gait(contract, 1), load_robot("quadruped")
    estimate, command = Estimator(robot, contract), np.array([[0.4, 0.0, 0.0]])
    action = np.zeros((1, 12), np.float32)
    order = contract.columns(log.joints)
    for i, when in enumerate(frames.time):
        row = int(np.argmin(np.abs(log["q"].time - when)))
        readings = {s: log[s].values[row][None] for s in ("q", "dq", "quat", "gyro")}
        readings |= estimate(readings)
        readings |= {s: readings[s][:, order] for s in ("q", "dq")}
        if i:
            gait.advance(command, readings)
        seen = observer(readings, command, action, gait)
        assert np.abs(seen[0] - frames.observation[i]).max() < 1e-6
        action = np.asarray(policy(seen), np.float32)
        assert np.abs(action[0] - frames.action[i]).max() < 1e-5


def test_a_recording_that_is_cut_off_anywhere_is_read_as_far_as_it_goes(recorded, tmp_path):
    path, _ = recorded
    data, whole = path.read_bytes(), read(path)
    for share in (0.3, 0.77, 0.999):
        cut = tmp_path / f"{share}.mcap"
        cut.write_bytes(data[: int(share * len(data))])
        log = read(cut)
        # what a run in step writes at once is 20 ms of this computer's time, more of the robot's where the computer is quick
        assert log.duration > (share - 0.05) * whole.duration
        assert np.array_equal(log["q"].values, whole["q"].values[: len(log["q"].time)])
        assert "never finished" in log.provenance.notes[-1]


def test_can_frames_clip_and_never_wrap():
    ranges = Ranges()
    q, dq, kp, kd, tau = decode(encode(1.0, 0.0, 50.0, 5.5, -99.0, ranges), ranges)
    assert q == pytest.approx(1.0, abs=25 / 65535)
    assert abs(dq) == pytest.approx(0.0159, abs=1e-4)  # zero cannot be told
    assert (kp, kd, tau) == (pytest.approx(50.0, abs=0.13), 5.0, -18.0)


def test_over_can_the_motion_is_the_one_in_process_with_numbers_rounded_to_the_last_bit():
    config = can_config(load_robot("quadruped").joints)
    plain, rounded, can = (motion(make, 0.002, 0.5)[0] for make in ways(config))
    assert not apart(can, rounded).any()
    assert 0.0 < apart(can, plain).max() < 0.1
    with pytest.raises(BadInput, match="more buses or a longer period"):
        dataclasses.replace(config, period=0.001)


def test_over_udp_in_step_the_motion_is_the_one_in_process_to_the_last_bit():
    assert not apart(motion(InStep, 0.001, 0.3)[0], motion(InProcess, 0.001, 0.3)[0]).any()


def test_another_program_on_the_bus_stops_the_robot(policy):
    model = load_robot("quadruped")
    config = can_config(model.joints)
    robot = OnVirtualBus(Emulated(StandInSpec("quadruped", seed=5), period=0.002), config)
    runner = Runner(robot, model, policy, (0.0, 0.0, 0.0), limits_of(model, policy.contract))
    runner.check()
    intruder = open_buses(config)[0]
    runner.on_tick = lambda now: intruder.send(frame(1, encode(0, 0, 0, 0, 0, Ranges()))) if now > 0.5 else None
    assert runner.run(2.0).reason == WHY["second"][1]
    assert robot.inside.mode == "stopped"
    assert runner.link.others()
    robot.close()
    intruder.shutdown()


def served(tmp_path):
    (tmp_path / "spec.toml").write_text('robot = "quadruped"\nseed = 7\n')
    cli = [sys.executable, "-c", "from gapless.cli import main; main()"]
    words = ["standin", str(tmp_path / "spec.toml"), "--serve", "--port", "0", "--seconds", "60"]
    server = subprocess.Popen([*cli, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return server, int(server.stderr.readline().split(":")[-1].split()[0])


def test_over_udp_a_killed_program_leaves_a_readable_log_and_a_robot_that_falls_back(tmp_path):
    server, port = served(tmp_path)
    out = tmp_path / "run.mcap"
    cli = [sys.executable, "-c", "from gapless.cli import main; main()"]
    words = ["run", str(POLICY), "--robot", f"udp://127.0.0.1:{port}", "--command", "0.4,0,0", "--unchecked", "--out", str(out)]
    program = subprocess.Popen([*cli, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 40
        while not (out.exists() and out.stat().st_size > 400_000) and time.monotonic() < end:
            time.sleep(0.05)
        program.send_signal(signal.SIGKILL)
        killed = time.monotonic()
        program.wait()
        assert killed - read(out)["q_cmd"].host_time[-1] < 0.25  # 0.1 on a machine that is not shared by tests
        time.sleep(0.2)
    finally:
        server.terminate()
        told = json.loads(server.communicate()[0])
    assert told["mode"] == "fallback" and told["fallback_after"] < 0.2
    assert all(limit["exceeded"] == 0 for name, limit in told["limits"].items() if name not in ("impact", "rate"))


def test_fuzzed_packets_are_counted_and_nothing_moves():
    inside = Emulated(StandInSpec("bench", seed=9))
    server = Server(inside, port=0)
    for _ in range(300):
        server.tick(time.monotonic())
    before, rng = inside.data.qpos.copy(), np.random.default_rng(0)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.connect(("127.0.0.1", server.port))
        for i in range(400):
            line.send(fuzzed_packet(rng, inside.joints, i))
            server.tick(time.monotonic())
    assert server.ignored == 400 and inside.accepted == 0
    assert np.abs(inside.data.qpos - before).max() < 1e-3
    server.close()


def refused(capsys, *words):
    with pytest.raises(SystemExit) as caught:
        main(["run", *words])
    assert caught.value.code == 2
    return capsys.readouterr().err


def test_what_may_not_run_is_refused_in_one_sentence(tmp_path, capsys, policy):
    (tmp_path / "q.toml").write_text('robot = "quadruped"\nseed = 1\n')
    (tmp_path / "arm.toml").write_text('robot = "arm"\nseed = 1\n')
    command = ("--command", "0.4,0,0")
    robot = ("--robot", f"standin:{tmp_path / 'q.toml'}")
    assert "has no verdict" in refused(capsys, str(POLICY), *robot, *command, "--verdict", str(tmp_path))
    assert "joints are not those" in refused(
        capsys, str(POLICY), "--robot", f"standin:{tmp_path / 'arm.toml'}", *command, "--unchecked"
    )
    assert "no robot answers" in refused(capsys, str(POLICY), "--robot", "udp://127.0.0.1:9", *command, "--unchecked")
    assert "an address is" in refused(capsys, str(POLICY), "--robot", "my robot", *command, "--unchecked")
    assert "only be made tighter" in refused(capsys, str(POLICY), *robot, *command, "--unchecked", "--limit", "torque=99")
    assert "takes 3 commands" in refused(capsys, str(POLICY), *robot, "--unchecked")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:  # answers, and is no robot
        other.bind(("127.0.0.1", 0))
        thread = threading.Thread(target=lambda: other.sendto(b"what?", other.recvfrom(4096)[1]))
        thread.start()
        where = f"udp://127.0.0.1:{other.getsockname()[1]}"
        assert "something else answers" in refused(capsys, str(POLICY), "--robot", where, *command, "--unchecked")
        thread.join()
    slow = Emulated(StandInSpec("quadruped", seed=1), period=0.05)
    with pytest.raises(BadInput, match="cannot keep that time"):
        run(policy, "", command=(0.4, 0, 0), robot=InProcess(slow))


def test_only_a_passed_verdict_about_this_network_and_this_robot_counts(tmp_path, policy):
    robot = InProcess(Emulated(StandInSpec("quadruped", seed=1)))
    passed = PolicyCheck("walk", "gapless", "quadruped", [], {}, [], None, "simulation", policy.sha256)
    failed = Check("joint order", "robot", "fail", "The legs are swapped.")
    for changed, says in (
        ({"sha256": "0" * 64}, "another network"),
        ({"robot": "arm"}, "is about arm"),
        ({"checks": [failed]}, "verdict is 'fail' .joint order"),
    ):
        dataclasses.replace(passed, **changed).save(tmp_path / says[:5])
        with pytest.raises(BadInput, match=says):
            run(policy, "", command=(0.0, 0.0, 0.0), robot=robot, verdict=tmp_path / says[:5])
    assert robot.inside.accepted == 0
    passed.save(tmp_path / "passed")
    result = run(policy, "", command=(0.0, 0.0, 0.0), seconds=0.2, robot=robot, verdict=tmp_path / "passed")
    assert result.reason == "" and not result.unchecked


def test_a_robot_that_is_not_ready_is_not_started(policy):
    model = load_robot("quadruped")
    inside = Emulated(StandInSpec("quadruped", seed=1))
    inside.data.qpos[7] += 1.2
    for _ in range(3):
        inside.step()
    inside.stop()
    runner = Runner(InProcess(inside), model, policy, (0.4, 0.0, 0.0), limits_of(model, policy.contract))
    with pytest.raises(BadInput, match="mode is 'stopped'") as caught:
        runner.check()
    assert "FL_hip" in str(caught.value)


def test_a_robot_of_ones_own_is_a_file_with_connect(tmp_path, policy, capsys):
    example = Path(__file__).parents[2] / "examples/own_robot.py"
    own = tmp_path / "own.py"
    own.write_text(example.read_text())
    result = run(policy, str(own), command=(0.0, 0.0, 0.0), seconds=0.3)
    assert result.reason == ""
    own.write_text("x = 1")
    with pytest.raises(BadInput, match="needs a function"):
        run(policy, str(own), command=(0.0, 0.0, 0.0))
