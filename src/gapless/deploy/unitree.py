"""Unitree's Go2 and G1 over DDS: `rt/lowcmd` and `rt/lowstate` with their checksum, joints by name.

A robot in its sport mode ignores low-level commands, or fights them: it has to be released first (by the maker's app or SDK).
Another publisher on `rt/lowcmd` is seen before the first command, and the robot is then left alone.
"""

import math
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from gapless.arrays import Array
from gapless.errors import BadInput
from gapless.files import refusing
from gapless.robots import MIT

PERIOD = 0.002
"""s between two states of either robot."""
KEPT = 32
"""States that wait for the loop, at most."""
LEGS = ("FR", "FL", "RR", "RL")
_LEG = ("hip_pitch", "hip_roll", "hip_yaw", "knee", "ankle_pitch", "ankle_roll")
_ARM = ("shoulder_pitch", "shoulder_roll", "shoulder_yaw", "elbow", "wrist_roll", "wrist_pitch", "wrist_yaw")
JOINTS = {
    "go2": tuple(f"{leg}_{joint}_joint" for leg in LEGS for joint in ("hip", "thigh", "calf")),
    "g1": (
        *(f"{side}_{joint}_joint" for side in ("left", "right") for joint in _LEG),
        *(f"waist_{axis}_joint" for axis in ("yaw", "roll", "pitch")),
        *(f"{side}_{joint}_joint" for side in ("left", "right") for joint in _ARM),
    ),
}
"""In the order of the motors."""
ON, HEAD, LOW_LEVEL = 0x01, (0xFE, 0xEF), 0xFF
LOOPBACK = (
    "<CycloneDDS><Domain Id='any'><General><Interfaces><NetworkInterface name='{}' multicast='{}'/></Interfaces>"
    "<AllowMulticast>{}</AllowMulticast></General><Discovery><ParticipantIndex>auto</ParticipantIndex>"
    "<MaxAutoParticipantIndex>40</MaxAutoParticipantIndex>{}</Discovery></Domain></CycloneDDS>"
)
PEERS = "<Peers><Peer address='localhost'/></Peers>"


def open_domain(domain: int, interface: str) -> tuple[Any, Any]:
    """A domain on one network interface ("lo" reaches this computer only), and a participant in it."""
    with refusing("Unitree robots need one more package: pip install 'gapless[deploy]'", ImportError):
        from cyclonedds.domain import Domain, DomainParticipant
    if not (interface.isalnum() and 0 <= domain <= 230):
        raise BadInput(f"DDS takes a domain from 0 to 230 and a network interface such as eth0, not {domain} and {interface!r}")
    local = interface == "lo"
    wide = "false" if local else "true"
    with refusing(f"DDS cannot use the network interface {interface}", Exception):
        settings = LOOPBACK.format(interface, wide, wide if not local else "false", PEERS if local else "")
        return Domain(domain, settings), DomainParticipant(domain)


class UnitreeRobot:
    """A Go2 or G1 of the protocol."""

    realtime = True

    def __init__(self, kind: str, domain: int = 0, interface: str = "lo"):
        from cyclonedds.builtin import BuiltinDataReader, BuiltinTopicDcpsPublication
        from cyclonedds.pub import DataWriter
        from cyclonedds.qos import Policy, Qos
        from cyclonedds.sub import DataReader
        from cyclonedds.topic import Topic

        from gapless.deploy import unitree_types as types

        if kind not in JOINTS:
            raise BadInput(f"unitree:{kind}: the robots are {', '.join(JOINTS)}")
        self.kind, self.joints, self.period, self._types = kind, JOINTS[kind], PERIOD, types
        self._domain, participant = open_domain(domain, interface)
        sent, told = (types.GoLowCmd, types.GoLowState) if kind == "go2" else (types.HgLowCmd, types.HgLowState)
        kept = Qos(Policy.History.KeepLast(KEPT))  # else what came while the loop was busy would count as lost
        self._reader = DataReader(participant, Topic(participant, "rt/lowstate", told), qos=kept)
        self._seen_by = BuiltinDataReader(participant, BuiltinTopicDcpsPublication)
        self._participant, self._topic, self._make = participant, Topic(participant, "rt/lowcmd", sent), DataWriter
        self._writer: Any = None
        self._message = types.zero(sent)
        if kind == "go2":
            self._message.head, self._message.level_flag = list(HEAD), LOW_LEVEL
        self._theirs: set[str] = set()
        self._reading: dict[str, Array] = {}
        self._tick, self._turns, self.ignored, self.lost, self.mode, self._stopped = -1, 0, 0, 0, "idle", False
        """States with a wrong checksum, and states that never came."""
        end = time.monotonic() + 3.0
        while not self.poll():
            if time.monotonic() > end:
                raise BadInput(
                    f"unitree:{kind}: no rt/lowstate on domain {domain} at {interface}: is the robot on, and its cable in?"
                )
            time.sleep(0.01)

    def others(self) -> int:
        """Programs that publish commands to this robot, besides this one."""
        mine = str(self._participant.guid)
        for sample in self._seen_by.take(100):
            if getattr(sample, "topic_name", "") == "rt/lowcmd" and str(sample.participant_key) != mine:
                self._theirs.add(str(sample.key))
        return len(self._theirs)

    def poll(self) -> bool:
        """Take what has arrived; whether there is a newer state now."""
        newest: Any = None
        states = self._reader.take(KEPT)
        for state in reversed(states):
            if hasattr(state, "crc") and state.crc == self._types.checksum(state):
                newest = state
                break
            self.ignored += 1
        if newest is None or newest.tick == self._tick:
            return False
        if self._tick >= 0:
            step = (newest.tick - self._tick) & 0xFFFFFFFF
            self._turns += step if step < 1 << 31 else step - (1 << 32)
            self.lost += max(0, round(1e-3 * min(step, 1 << 31) / PERIOD) - len(states)) if step < 1 << 31 else 0
        self._tick = newest.tick
        n, motors, imu = len(self.joints), newest.motor_state, newest.imu_state
        table = np.array([(m.q, m.dq, m.tau_est, np.max(m.temperature)) for m in motors[:n]]).T
        self._reading = dict(zip(("q", "dq", "tau", "temperature"), table, strict=True))
        self._reading |= {"quat": np.array(imu.quaternion), "gyro": np.array(imu.gyroscope), "acc": np.array(imu.accelerometer)}
        self._reading |= {"time": np.array(1e-3 * self._turns), "battery": np.array(getattr(newest, "power_v", math.inf))}
        if self.kind == "g1":
            self._message.mode_machine = newest.mode_machine
        return True

    def latest(self) -> dict[str, Array]:
        """The newest state by signal."""
        return self._reading

    def read(self) -> Mapping[str, Array]:
        end = time.monotonic() + 1.0
        while not self.poll():
            if time.monotonic() > end:
                raise BadInput("the robot is silent")
            time.sleep(self.period / 10)
        return self._reading

    def write(self, command: Mapping[str, Array]) -> None:
        self.send(np.stack([np.asarray(command[name], float) for name in MIT]))

    def send(self, command: Array) -> None:
        """A command (5, joints) by rows of MIT."""
        if self._stopped:
            return
        if self._writer is None:
            self._writer, self.mode = self._make(self._participant, self._topic), "driven"
        for motor, (q, dq, kp, kd, tau) in zip(self._message.motor_cmd, command.T.tolist(), strict=False):
            motor.mode, motor.q, motor.dq, motor.kp, motor.kd, motor.tau = ON, q, dq, kp, kd, tau
        self._put()

    def _put(self) -> None:
        self._message.crc = self._types.checksum(self._message)
        self._writer.write(self._message)

    def stop(self) -> None:
        if not self._stopped and self._writer is not None:
            for motor in self._message.motor_cmd:
                motor.mode = motor.q = motor.dq = motor.kp = motor.kd = motor.tau = 0
            for _ in range(3):
                self._put()
        self._stopped, self.mode = True, "stopped"
