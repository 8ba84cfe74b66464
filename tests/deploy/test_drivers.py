"""Drivers, buses, packets and disks that fail or are not what they should be; robots that are refused untouched."""

import errno
import os
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import gapless
from bench.motion import _hello, can_config
from gapless.deploy import MitRanges, OnVirtualBus, encode_mit, fuzzed_packet, run
from gapless.deploy.can_robot import CanRobot, frame, open_buses
from gapless.deploy.emulated import Emulated, InProcess
from gapless.deploy.ladder import WHY
from gapless.deploy.limits import limits_of
from gapless.deploy.runner import Runner
from gapless.deploy.serve import Server
from gapless.deploy.udp import UdpRobot
from gapless.errors import BadInput
from gapless.logs import read
from gapless.policy import load_policy
from gapless.robots import load_robot
from gapless.worlds import StandInSpec

POLICY = Path(gapless.__file__).parent / "close/policies/quadruped_wide"
pytestmark = pytest.mark.xdist_group("deploy")
QUADRUPED = load_robot("quadruped")
HOME = np.array([QUADRUPED.home[d.qpos] for d in QUADRUPED.drives])


class Driver:
    """A live robot whose driver fails at some call."""

    joints, period, realtime = QUADRUPED.joints, 0.004, True

    def __init__(self):
        self.breaks, self.stopped, self.commands = "", 0, 0

    def read(self):
        if self.breaks == "read":
            raise OSError("no cable")
        now = time.monotonic()
        noise = 1e-4 * np.random.default_rng(int(1e6 * now)).normal(size=12)
        whole = {"time": now, "q": HOME + noise, "dq": noise, "quat": np.array([1.0, 0, 0, 0]), "gyro": noise[:3]}
        missing = {"imu": ("quat", "gyro"), "joints": ("q",)}.get(self.breaks, ())
        return {name: value for name, value in whole.items() if name not in missing}

    def write(self, command):
        if self.breaks == "write":
            raise OSError("the queue is full")
        self.commands += 1

    def stop(self):
        self.stopped += 1


@pytest.fixture(scope="module")
def policy():
    return load_policy(POLICY)


def a_runner(policy, robot, **options):
    return Runner(robot, QUADRUPED, policy, (0.0, 0.0, 0.0), limits_of(QUADRUPED, policy.contract), **options)


@pytest.mark.parametrize(("breaks", "says"), [("read", "no cable"), ("joints", "'q'"), ("imu", "needs an IMU")])
def test_a_driver_whose_readings_cannot_be_used_is_refused_in_one_sentence(policy, breaks, says):
    robot = Driver()
    robot.breaks = breaks
    with pytest.raises(BadInput, match=says):
        run(policy, "", command=(0.0, 0.0, 0.0), robot=robot)
    assert robot.commands == 0


@pytest.mark.parametrize(("breaks", "reason"), [("read", "stale"), ("joints", "stale"), ("write", "unsent")])
def test_a_driver_that_fails_while_it_runs_ends_the_run_on_its_rung(policy, breaks, reason):
    robot = Driver()
    runner = a_runner(policy, robot)
    runner.check()
    runner.on_tick = lambda now: setattr(robot, "breaks", breaks) if runner.outcome.ticks > 100 else None
    out = runner.run(20.0)
    assert out.reason == WHY[reason][1] and robot.stopped
    assert any("of the robot's driver" in why for _, _, why in out.events)
    assert all(0.0 <= at < 5.0 for at, _, _ in out.events)  # since the first command


def test_a_robot_that_dies_before_the_first_command_is_not_waited_for(policy):
    robot = Driver()
    runner = a_runner(policy, robot)
    runner.check()
    robot.breaks = "read"
    assert runner.run(20.0).reason == WHY["silent"][1]
    assert robot.commands == 0


def test_a_person_who_stops_a_robot_that_is_getting_up_need_not_wait(policy):
    inside = Emulated(StandInSpec("quadruped", seed=1))
    runner = a_runner(policy, InProcess(inside))
    runner.on_tick = lambda now: runner.stop() if now > 0.3 else None
    out = runner.run(5.0)
    assert out.reason == "" and out.answers == 0 and inside.time < 3.0


def test_a_policy_that_raises_is_stopped_like_one_that_answers_no_number(policy):
    runner = a_runner(policy, InProcess(Emulated(StandInSpec("quadruped", seed=1))))
    runner.on_tick = lambda now: setattr(runner, "pilot", None) if now > 1.8 else None
    out = runner.run(5.0)
    assert out.reason == WHY["policy broken"][1] and out.rung == "DAMP"
    assert any("TypeError" in why for _, _, why in out.events)


class Glitch(InProcess):
    """One reading is no number."""

    def read(self):
        reading = dict(super().read())
        return reading | ({"q": reading["q"] * np.nan} if 1.8 < self.inside.time < 1.8015 else {})


def test_one_wrong_reading_leaves_the_adaptive_loop_as_it_is(policy):
    runner = a_runner(policy, Glitch(Emulated(StandInSpec("quadruped", seed=1))), adaptive=True)
    assert runner.run(1.0).reason == ""
    assert runner.safety.plausible.left_out == 1 and np.isfinite(runner.adaptive.theta).all()


def test_a_full_disk_ends_the_log_and_not_the_run(policy, tmp_path, monkeypatch):
    written, write = [0], os.write

    def full(file, data):
        written[0] += len(data)
        if written[0] > 300_000:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(file, data)

    monkeypatch.setattr("gapless.deploy.recording.os.write", full)
    log, robot = tmp_path / "run.mcap", InProcess(Emulated(StandInSpec("quadruped", seed=1)))
    out = run(policy, "", command=(0.0, 0.0, 0.0), seconds=1.0, recording=log, robot=robot)
    assert out.reason == "" and "No space left" in out.events[-1][2]
    assert read(log).duration > 0.05


def test_what_the_policy_was_not_trained_for_and_gains_that_no_drive_can_have_are_refused(policy):
    robot = InProcess(Emulated(StandInSpec("quadruped", seed=1)))
    with pytest.raises(BadInput, match="was trained for"):
        run(policy, "", command=(99.0, 0.0, 0.0), robot=robot)
    with pytest.raises(BadInput, match="limits can be kept"):
        run(policy, "", command=(0.0, 0.0, 0.0), robot=InProcess(Emulated(StandInSpec("quadruped", seed=1), period=0.01)))
    hard = replace(policy.contract, joints=replace(policy.contract.joints, kd=(1.5, 3.0) * 6))
    with pytest.raises(BadInput, match="kd = 3 .* of FL_thigh"):
        limits_of(QUADRUPED, hard)
    weak = OnVirtualBus(
        Emulated(StandInSpec("quadruped", seed=1), period=0.002),
        replace(can_config(QUADRUPED.joints), ranges=MitRanges(kp=30.0, tau=40.0)),
    )
    with pytest.raises(BadInput, match="kp = 50, and the robot's drives take 30"):
        run(policy, "", command=(0.0, 0.0, 0.0), robot=weak)
    weak.close()
    assert robot.inside.accepted == 0


def test_a_bus_that_somebody_commands_is_left_alone():
    config = can_config(QUADRUPED.joints)
    mine, theirs = open_buses(config), open_buses(config)
    ended = threading.Event()

    def command():
        while not ended.wait(0.01):
            theirs[0].send(frame(1, encode_mit(0, 0, 0, 0, 0, MitRanges())))

    thread = threading.Thread(target=command)
    thread.start()
    try:
        with pytest.raises(BadInput, match="another program"):
            CanRobot(config, mine).read()
    finally:
        ended.set()
        thread.join()
    assert theirs[0].recv(timeout=0.05) is None  # nothing was sent
    for bus in (*mine, *theirs):
        bus.shutdown()


def test_odd_frames_on_a_bus_are_ignored_and_counted():
    config, rng = can_config(QUADRUPED.joints), np.random.default_rng(0)
    robot = OnVirtualBus(Emulated(StandInSpec("quadruped", seed=1), period=0.002), config)
    reading, intruder = robot.read(), open_buses(config)[0]
    for id in [*rng.integers(20, 2047, 300), 0, 80, 81, 80, 81]:
        intruder.send(frame(int(id), rng.bytes(int(rng.choice([0, 1, 5, 7])))))
    assert robot.read() is reading and robot.ignored == 305 and not robot.others()
    intruder.shutdown()
    robot.close()


def test_fuzzed_packets_to_a_program_are_ignored_and_counted():
    server = Server(Emulated(StandInSpec("bench", seed=1)), port=0)
    robot, rng = _hello(server), np.random.default_rng(0)
    server.tick(0.0)
    assert robot.poll()
    before = robot.latest()["q"].copy()
    for i in range(500):
        server._socket.sendto(fuzzed_packet(rng, robot.joints, i), server._peer)
        assert not robot.poll()
    assert robot.ignored == 500
    assert (robot.latest()["q"] == before).all()
    robot.close()
    server.close()


def test_a_robot_that_answers_late_has_one_session_however_often_it_was_asked():
    server, connected = Server(Emulated(StandInSpec("bench", seed=1)), port=0), list[UdpRobot]()
    client = threading.Thread(target=lambda: connected.append(UdpRobot("127.0.0.1", server.port)))
    client.start()
    time.sleep(0.8)  # s, in which it has asked three times
    end = time.monotonic() + 10
    while not connected and time.monotonic() < end:
        server.tick(time.monotonic())
        time.sleep(0.001)
    client.join()
    for _ in range(3):  # what was asked again is answered again, and changes nothing
        server.tick(time.monotonic())
    assert connected[0].poll() and connected[0].ignored <= 2
    server.close()
    with pytest.raises(BadInput, match="silent"):
        connected[0].read()
    connected[0].close()
