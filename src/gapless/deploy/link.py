"""The line between an inner loop and any robot: readings and commands in the model's order of joints."""

import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from gapless.arrays import Array, Ints
from gapless.deploy.realtime import Times
from gapless.errors import BadInput
from gapless.report import few
from gapless.robots import MIT, RobotModel

KEPT = 4096
"""Commands whose time of sending is kept."""


def matched(names: Sequence[str], among: Sequence[str]) -> Ints | slice:
    """Where each joint is among others, by place or, in the same order, all; makers call one joint FL_hip and FL_hip_joint."""
    places = {name.removesuffix("_joint"): i for i, name in enumerate(among)}
    odd = sorted({n.removesuffix("_joint") for n in names} ^ set(places))
    if odd or len(places) < len(among):
        raise BadInput(f"the robot's joints are not those of its model: {few(odd)} are only on one side")
    order = [places[name.removesuffix("_joint")] for name in names]
    return slice(None) if order == sorted(order) else np.array(order)  # a view is had at once, a choice is a copy


class Link:
    """Newest readings of a robot as arrays that are written again and again; commands by rows of MIT."""

    def __init__(self, robot: Any, model: RobotModel):
        theirs, ours = tuple(robot.joints), model.joints
        self.robot, self.period = robot, float(robot.period)
        self.realtime = bool(getattr(robot, "realtime", True))
        self._in, self._out = matched(ours, theirs), matched(theirs, ours)
        n = len(ours)
        self.q, self.dq, self.tau, self.temperature = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)
        self.imu = np.zeros(7 if model.floating else 0)
        self.battery, self.time, self.arrived = math.inf, -math.inf, math.nan
        """V, when it was measured on the robot's clock, and when it came on ours [s]."""
        self.offset = math.inf
        """Least difference of our clock to the robot's: what a reading takes at least is in it [s]."""
        self._sent, self._number, self._answered = np.zeros(KEPT), 0, 0
        self.round_trip = Times()
        """From a command to the first reading that is known to come after it."""
        self._fast = hasattr(robot, "poll")
        self._lost_before, self._began = 0, math.nan
        self.trouble, self.unsent = "", 0
        """What went wrong last with readings or commands, and how many commands in a row could not be sent."""
        self.senses_base = not len(self.imu)
        """Whether the robot has an IMU, where its model has a base that moves."""

    def now(self) -> float:
        """The clock of the loop: this computer's, or the periods that a simulated robot was commanded for [s]."""
        return time.monotonic() if self.realtime else self._began + self._number * self.period

    def look(self) -> bool:
        """Take the newest reading; whether it is a new one. A driver that fails, and a reading that is none, are `trouble`."""
        try:
            return self._look()
        except Exception as error:
            self.trouble = f"{type(error).__name__}: {error}"
            return False

    def _look(self) -> bool:
        if self._fast and not self.robot.poll():
            return False
        reading = self.robot.latest() if self._fast else self.robot.read()
        if float(reading["time"]) == self.time:  # a robot that hangs may send the same one for ever
            return False
        self.q[:], self.dq[:] = reading["q"][self._in], reading["dq"][self._in]
        for name, into in (("tau", self.tau), ("temperature", self.temperature)):
            if name in reading:
                into[:] = reading[name][self._in]
        if len(self.imu) and "quat" in reading:
            self.imu[:4], self.imu[4:], self.senses_base = reading["quat"], reading["gyro"], True
        self.battery, self.time = float(reading.get("battery", math.inf)), float(reading["time"])
        self._began = self.time if math.isnan(self._began) else self._began
        self.arrived = self.now()
        if math.isfinite(self.time):
            self.offset = min(self.offset + 1e-9, self.arrived - self.time)
        answered = getattr(self.robot, "answered", 0)
        if answered > self._answered and self._number - answered < KEPT:
            self.round_trip.add(self.arrived - self._sent[answered % KEPT])
            self._answered = answered
        return True

    def send(self, command: Array, computed: float) -> None:
        """A command (5, joints); `computed`: when what it answers was computed [s]."""
        self._number += 1
        self._sent[self._number % KEPT] = time.monotonic() if self.realtime else 0.0
        try:
            if self._fast:
                self.robot.computed = computed
                self.robot.send(command[:, self._out])
            else:
                self.robot.write({name: command[row, self._out] for row, name in enumerate(MIT)})
            self.unsent = 0
        except Exception as error:
            self.trouble, self.unsent = f"{type(error).__name__}: {error}", self.unsent + 1

    @property
    def mode(self) -> str:
        """What the robot says that it does; empty where it says nothing."""
        return str(getattr(self.robot, "mode", ""))

    def others(self) -> int:
        """Programs besides this one that command the robot, where it can tell."""
        count = getattr(self.robot, "others", None)
        return int(count()) if callable(count) else 0

    @property
    def lost(self) -> int:
        """Readings that never came since the run began."""
        return int(getattr(self.robot, "lost", 0)) - self._lost_before

    def begin(self) -> None:
        """The run begins: what nobody listened for until now is not lost."""
        self.look()
        self._lost_before = int(getattr(self.robot, "lost", 0))

    def stop(self) -> None:
        try:
            self.robot.stop()
        except Exception as error:
            self.trouble = f"{type(error).__name__}: {error}"
