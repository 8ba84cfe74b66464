"""Anything with read, write and stop is a robot; no base class is needed."""

import numpy as np

from gapless.robots import Command, Reading, Robot


class Echo:
    """A robot that measures what it was last told."""

    period = 0.02
    joints = ("servo",)

    def __init__(self) -> None:
        self.q, self.stopped = np.zeros(1), False

    def read(self) -> Reading:
        return {"time": np.array(0.0), "q": self.q}

    def write(self, command: Command) -> None:
        self.q = command["q"]

    def stop(self) -> None:
        self.stopped = True


def test_a_plain_class_follows_the_protocol():
    robot: Robot = Echo()
    robot.write({"q": np.array([0.5])})
    assert robot.read()["q"] == 0.5
    robot.stop()
    robot.stop()
