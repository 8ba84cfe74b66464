"""Emulated drives on CAN buses: an emulated robot that takes MIT frames and answers each, as real drives do."""

from typing import Any

import numpy as np

from gapless.deploy import mit
from gapless.deploy.can_robot import MASTER, SPIN, CanConfig, CanRobot, frame, open_buses
from gapless.deploy.emulated import Emulated
from gapless.robots import MIT


class CanMotors:
    """The drives' side of the buses. `turn` lets a period pass: frames, physics, and an answer to each frame."""

    def __init__(self, robot: Emulated, config: CanConfig, buses: list[Any]):
        self.robot, self.config, self._buses = robot, config, buses
        self._place = {(d.bus, d.id): (robot.joints.index(name), d) for name, d in config.drives.items()}
        self._command, self._on = np.zeros((5, len(robot.joints))), np.zeros(len(robot.joints), bool)
        self.ignored = 0

    def turn(self) -> None:
        """Take what has arrived, let a period pass, and answer."""
        asked: list[tuple[int, int]] = []
        for number, bus in enumerate(self._buses):
            while (message := bus.recv(timeout=0)) is not None:
                self._take(number, message, asked)
        if asked and self._on.all():
            self.robot.take(self._command)
        self.robot.step()
        reading, ranges = self.robot.readings(), self.config.ranges
        for bus, id in asked:
            j, d = self._place[bus, id]
            q, dq, tau = d.sign * (reading["q"][j] - d.zero), d.sign * reading["dq"][j], d.sign * reading["tau"][j]
            self._buses[bus].send(frame(MASTER, mit.encode_reply(id, q, dq, tau, ranges)))
        if self.config.imu is not None and "quat" in reading:
            quat = np.rint(reading["quat"] * 32767).astype("<i2").tobytes()
            gyro = np.rint(np.clip(reading["gyro"] / SPIN, -1, 1) * 32767).astype("<i2").tobytes()
            self._buses[0].send(frame(self.config.imu.id, quat))
            self._buses[0].send(frame(self.config.imu.id + 1, gyro))

    def close(self) -> None:
        for bus in self._buses:
            bus.shutdown()

    def _take(self, bus: int, message: Any, asked: list[tuple[int, int]]) -> None:
        place = self._place.get((bus, message.arbitration_id))
        data = bytes(message.data)
        if place is None or len(data) != mit.COMMAND:
            self.ignored += 1
            return
        j, d = place
        if data == mit.DISABLE:
            self._on[j] = False
            self.robot.stop()
        elif data == mit.ENABLE:
            self._on[j] = True
        else:
            q, dq, kp, kd, tau = mit.decode(data, self.config.ranges)
            self._command[:, j] = d.sign * q + d.zero, d.sign * dq, kp, kd, d.sign * tau
            asked.append((bus, message.arbitration_id))


class OnVirtualBus(CanRobot):
    """A CAN robot and its emulated drives on python-can's virtual bus, in step: time passes with each command."""

    def __init__(self, inside: Emulated, config: CanConfig):
        self.motors = CanMotors(inside, config, open_buses(config))
        super().__init__(config, open_buses(config), clock=lambda: inside.time)
        self.realtime = False
        self.inside = inside
        super()._tell(np.zeros((5, len(self.joints))))
        self.motors.turn()

    def read(self) -> Any:
        self._listen()
        return self._reading

    def write(self, command: Any) -> None:
        super().write({name: command[name] for name in MIT})
        self.motors.turn()

    def stop(self) -> None:
        super().stop()
        self.motors.turn()

    def close(self) -> None:
        super().close()
        self.motors.close()
