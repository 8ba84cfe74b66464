"""Wake: a robot that is told to stand and is pushed walks on the spot until it is calm again, where the contract says so."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gapless.errors import BadInput
from gapless.policy.contract import Contract, columns_of

Array = NDArray[np.float64]
SMOOTH = 0.1
"""What the velocity is averaged over: that which legs suggest is noisy [s]."""
CALM = 1.0
"""How long a robot must be slow before it stands [s]."""
SPOT = 1e-6
"""A command that gait and clock take for one, and that no robot follows."""


class Wake:
    """Turns a command to stand into one to walk on the spot while a robot moves faster than its contract allows.

        wake = Wake(contract, n)
        command = wake(command, readings)          # each period, before the observer; the targets take it as well
        wake.reset(done)

    Commands of a contract without a waking gait stay as they are.
    """

    def __init__(self, contract: Contract, n: int):
        reference = contract.action.reference
        self.speed = None if reference is None else reference.wake
        if reference is None or self.speed is None:
            return
        dt = contract.timing.control_dt
        if dt is None:
            raise BadInput("a gait that wakes needs the contract's control_dt")
        self._dt, self._share = dt, 1 - math.exp(-dt / SMOOTH)
        self._columns = columns_of(reference.commands, tuple(contract.commands))
        self._velocity, self._left = np.zeros((n, 2)), np.zeros(n)

    def reset(self, which: NDArray[np.bool_]) -> None:
        """Forget how some robots moved, by a mask of shape (n,)."""
        if self.speed is not None:
            self._velocity[which] = self._left[which] = 0.0

    def __call__(self, command: ArrayLike, readings: Mapping[str, NDArray]) -> Array:
        """The command to go by, from that which was given and the "velocity" among the readings. Shape: (n, commands)."""
        command = np.asarray(command, float)
        if self.speed is None:
            return command
        if "velocity" not in readings:
            raise BadInput("a gait that wakes needs an estimate of the velocity among the readings")
        self._velocity += self._share * (readings["velocity"][:, :2] - self._velocity)
        self._left = np.where(np.hypot(*self._velocity.T) > self.speed, CALM, self._left - self._dt)
        pushed = (self._left > 0) & ~command[:, self._columns].any(axis=1)
        given = command.copy()
        given[:, self._columns] += SPOT * pushed[:, None]  # all of these are zero
        return given
