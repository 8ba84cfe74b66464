"""The protocol every live robot follows, hardware or stand-in: read, write, stop."""

from collections.abc import Mapping
from typing import Protocol

import numpy as np

Reading = Mapping[str, np.ndarray]
"""Measured signals by name: `time` on the robot's own clock [s], shape (); `q` [rad] and `dq` [rad/s], shape (joints,),
in the order of `Robot.joints`; where the robot has them `tau` [N m], shape (joints,), `gyro` [rad/s] and `acc` [m/s2],
shape (3,), `quat` (w, x, y, z), shape (4,), `temperature` of the drives [degC], shape (joints,), and `battery` [V], shape ().
A signal that was measured at another moment than the joints has a time of its own under its name with `_time` behind it."""

Command = Mapping[str, np.ndarray]
"""Commanded signals by name, shape (joints,), in the order of `Robot.joints`: `q` [rad] for position servos, `dq`
[rad/s] for velocity servos, `tau` [N m] for torque, and `kp`, `kd` where the robot takes gains with each command.

A drive that takes all five follows the MIT convention: it gives `kp * (q - measured q) + kd * (dq - measured dq) + tau`."""

MIT = ("q", "dq", "kp", "kd", "tau")
"""The signals of such a command, in the order of the rows of an array that holds them all, shape (5, joints)."""


class Robot(Protocol):
    """What can be commanded and read but not looked into."""

    @property
    def period(self) -> float:
        """Time between two commands [s]."""
        ...

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the driven joints, in the order of every reading and command."""
        ...

    def read(self) -> Reading:
        """The newest measurement; blocks until there is one."""
        ...

    def write(self, command: Command) -> None:
        """Send a command; it holds until the next one."""
        ...

    def stop(self) -> None:
        """Make the robot safe and let go of it; harmless when called twice."""
        ...
