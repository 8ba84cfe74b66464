"""A stand-in that speaks a Unitree robot's topics: an emulated robot behind `rt/lowcmd` and `rt/lowstate`, in real time."""

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from gapless.deploy.emulated import Emulated
from gapless.deploy.link import matched
from gapless.deploy.realtime import Pace, claim
from gapless.deploy.unitree import JOINTS, ON, PERIOD, open_domain


class UnitreeStandIn:
    """Serves an emulated robot on a domain."""

    def __init__(self, robot: Emulated, kind: str, domain: int = 0, interface: str = "lo"):
        from cyclonedds.pub import DataWriter
        from cyclonedds.sub import DataReader
        from cyclonedds.topic import Topic

        from gapless.deploy import unitree_types as types

        assert robot.period == PERIOD
        self.robot, self._types, self.ignored = robot, types, 0
        self._domain, participant = open_domain(domain, interface)
        told, sent = (types.GoLowCmd, types.GoLowState) if kind == "go2" else (types.HgLowCmd, types.HgLowState)
        self._reader = DataReader(participant, Topic(participant, "rt/lowcmd", told))
        self._writer = DataWriter(participant, Topic(participant, "rt/lowstate", sent))
        self._state, self._in = types.zero(sent), np.arange(len(robot.joints))[matched(JOINTS[kind], robot.joints)]
        self._command = np.zeros((5, len(robot.joints)))

    def run(self, seconds: float = math.inf, ended: Callable[[], bool] = lambda: False) -> None:
        """Serve in real time."""
        claim(50)
        pace, start = Pace(PERIOD), time.monotonic()
        while time.monotonic() - start < seconds and not ended():
            pace.wait()
            self.tick()

    def tick(self) -> None:
        """One period: commands, physics, state."""
        message: Any
        for message in self._reader.take(16):
            if not hasattr(message, "crc") or message.crc != self._types.checksum(message):
                self.ignored += 1
                continue
            motors = message.motor_cmd[: len(self._in)]
            if any(m.mode != ON for m in motors):
                self.robot.stop()
                continue
            for j, m in zip(self._in, motors, strict=True):
                self._command[:, j] = m.q, m.dq, m.kp, m.kd, m.tau
            self.robot.take(self._command)
        self.robot.step()
        self._tell()

    def _tell(self) -> None:
        reading, state = self.robot.readings(), self._state
        state.tick = round(1e3 * float(reading["time"])) & 0xFFFFFFFF
        for j, motor in zip(self._in, state.motor_state, strict=False):
            motor.mode, motor.q, motor.dq = ON, float(reading["q"][j]), float(reading["dq"][j])
            motor.tau_est = float(reading["tau"][j])
        if "quat" in reading:
            state.imu_state.quaternion, state.imu_state.gyroscope = reading["quat"].tolist(), reading["gyro"].tolist()
        if hasattr(state, "power_v"):
            state.power_v = float(reading["battery"])
        state.crc = self._types.checksum(state)
        self._writer.write(state)
