"""Unitree's messages: their layout and checksum, and a Go2 stand-in on loopback in another process."""

import struct
import subprocess
import sys
import time

import numpy as np
import pytest

pytest.importorskip("cyclonedds")
from gapless.deploy import unitree_types as types
from gapless.deploy.unitree import JOINTS, UnitreeRobot
from gapless.errors import BadInput

STAND_IN = """
from gapless.deploy import Emulated, UnitreeStandIn
from gapless.worlds import StandInSpec
served = UnitreeStandIn(Emulated(StandInSpec("quadruped", seed=5), period=0.002), "go2", 43)
print("up", flush=True)
served.run(30.0)
"""

G1 = """
from gapless.deploy import Emulated, UnitreeStandIn
from gapless.worlds import StandInSpec
served = UnitreeStandIn(Emulated(StandInSpec({path!r}), period=0.002), "g1", 44)
print("up", flush=True)
served.run(30.0)
"""

RIVAL = """
import time
import numpy as np
from gapless.deploy import UnitreeRobot
robot = UnitreeRobot("go2", 43)
robot.send(np.zeros((5, 12)))
print("sent", flush=True)
time.sleep(30)
"""


@pytest.mark.parametrize(("kind", "size"), [("GoLowCmd", 812), ("GoLowState", 1180), ("HgLowCmd", 1004), ("HgLowState", 2092)])
def test_layouts_have_the_published_sizes(kind, size):
    assert struct.calcsize("@" + types.layout(getattr(types, kind))) == size


def test_the_checksum_is_that_of_crc_32_mpeg_2():
    # bit by bit, as its definition says, over the big-endian bytes of the same words
    message = types.zero(types.GoLowCmd)
    message.head, message.motor_cmd[3].q = [0xFE, 0xEF], 1.25
    numbers = []
    types._flat(message, numbers)
    words = np.frombuffer(types._packer(types.GoLowCmd).pack(*numbers), "<u4")[:-1]
    crc = 0xFFFFFFFF
    for byte in words.astype(">u4").tobytes():
        crc ^= byte << 24
        for _ in range(8):
            crc = (crc << 1 ^ 0x04C11DB7) & 0xFFFFFFFF if crc & 0x80000000 else crc << 1
    assert types.checksum(message) == crc


def test_joints_are_the_motors_of_both_robots():
    assert len(JOINTS["go2"]) == 12 and len(JOINTS["g1"]) == 29


def test_all_motors_of_a_g1_are_commanded_by_name(tmp_path):
    """Its joints on a bar, in the order of the motors."""
    bodies = "".join(
        f'<body pos="{0.3 * i} 0 1"><joint name="{name}" axis="0 1 0" range="-2 2" armature="0.05" damping="0.1"/>'
        '<geom type="capsule" fromto="0 0 0 0 0 -0.1" size="0.02"/></body>'
        for i, name in enumerate(JOINTS["g1"])
    )
    drives = "".join(f'<position name="{n}" joint="{n}" kp="40" kv="1" forcerange="-30 30"/>' for n in JOINTS["g1"])
    path = tmp_path / "g1.xml"
    path.write_text(f'<mujoco><compiler angle="radian"/><worldbody>{bodies}</worldbody><actuator>{drives}</actuator></mujoco>')
    server = subprocess.Popen([sys.executable, "-c", G1.format(path=str(path))], stdout=subprocess.PIPE, text=True)
    try:
        server.stdout.readline()
        robot = UnitreeRobot("g1", 44)
        target, still = 0.01 * np.arange(29), np.zeros(29)
        for _ in range(400):
            robot.write({"q": target, "dq": still, "kp": still + 40.0, "kd": still + 1.0, "tau": still})
            last = robot.read()
        assert last["q"] == pytest.approx(target, abs=0.02)
        robot.stop()
    finally:
        server.kill()


def test_a_stand_in_in_another_process_is_read_and_commanded():
    server = subprocess.Popen([sys.executable, "-c", STAND_IN], stdout=subprocess.PIPE, text=True)
    try:
        server.stdout.readline()
        robot = UnitreeRobot("go2", 43)
        assert robot.others() == 0
        first = robot.read()
        assert first["q"][:3] == pytest.approx([0.0, 0.9, -1.8], abs=0.3)
        gains = {"kp": np.full(12, 50.0), "kd": np.full(12, 1.5), "dq": np.zeros(12), "tau": np.zeros(12)}
        target = np.array(first["q"])
        target[5] += 0.3  # FL_calf in Unitree's order
        last, end = first, time.monotonic() + 10
        while last["q"][5] - first["q"][5] < 0.1 and time.monotonic() < end:
            robot.write({"q": target, **gains})
            last = robot.read()
        assert last["q"][5] - first["q"][5] > 0.1
        assert last["time"] > first["time"] and robot.ignored == 0
        assert robot.others() == 0  # itself is none
        rival = subprocess.Popen([sys.executable, "-c", RIVAL], stdout=subprocess.PIPE, text=True)
        try:
            rival.stdout.readline()
            end = time.monotonic() + 10
            while not robot.others() and time.monotonic() < end:
                time.sleep(0.05)
            assert robot.others() == 1
        finally:
            rival.kill()
        robot.stop()
    finally:
        server.kill()
    with pytest.raises(BadInput, match="the robots are go2, g1"):
        UnitreeRobot("spot")
