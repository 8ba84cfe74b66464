"""Your own robot: one file, two methods. `gapless run POLICY --robot own_robot.py` calls `connect()`.

Replace the lines marked SDK with those of your robot's SDK. Here a stand-in takes its place, so that the file runs as it is.
"""

from collections.abc import Mapping

import numpy as np

from gapless.deploy import Emulated
from gapless.robots import MIT
from gapless.worlds import StandInSpec


class MyRobot:
    realtime = False  # True for a robot with a clock of its own

    def __init__(self) -> None:
        self.sdk = Emulated(StandInSpec("quadruped", seed=1))  # SDK: connect
        self.joints = self.sdk.joints  # names, in the SDK's order
        self.period = self.sdk.period  # s between two commands

    def read(self) -> Mapping[str, np.ndarray]:
        """time [s], q [rad], dq [rad/s]; tau, quat (w first), gyro, temperature and battery where there are any."""
        return self.sdk.readings()  # SDK: the newest state

    def write(self, command: Mapping[str, np.ndarray]) -> None:
        """q, dq, kp, kd and tau of every joint: torque = kp (q - measured) + kd (dq - measured) + tau."""
        self.sdk.take(np.stack([command[name] for name in MIT]))  # SDK: send
        self.sdk.step()

    def stop(self) -> None:
        self.sdk.stop()  # SDK: switch the drives off


def connect() -> MyRobot:
    return MyRobot()
