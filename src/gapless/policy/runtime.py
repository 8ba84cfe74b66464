"""Runtime: a network that answers readings with targets, period by period, with its history, gait, last action and filter."""

from collections.abc import Callable
from typing import Any

import numpy as np

from gapless.arrays import Array
from gapless.policy.act import targets
from gapless.policy.contract import Contract
from gapless.policy.gait import Gait
from gapless.policy.observe import Frame, Observer, Readings

Network = Callable[[Any], Any]
"""Observations (n, width) to actions (n, driven joints)."""


class Runtime:
    """What every robot that is commanded live has in common: hardware, any engine, and a walk in the robot's own model."""

    def __init__(self, network: Network, contract: Contract, command: Array):
        """Forget what the network remembers.

        Args:
            network: its `reset` is called if it has one.
            contract: as the runtime would read it.
            command: what each robot is asked for until `command` is changed, shape (n, commands).
        """
        if callable(reset := getattr(network, "reset", None)):
            reset()
        n = len(command)
        self._network, self._contract, self.command = network, contract, np.array(command, float)
        """What each robot is asked for; may be changed while it runs."""
        self._observer, self._gait = Observer(contract, n), Gait(contract, n)
        self.observation: Frame = np.zeros((n, contract.width), np.float32)
        """What the network saw last, and below what it answered."""
        self.action: Frame = np.zeros((n, len(contract.action.joints)), np.float32)
        self._targets: Array | None = None

    def __call__(self, readings: Readings) -> Array:
        """Targets of all joints, in the contract's order, as the readings are. Shape: (n, joints)."""
        if self._targets is not None:  # a period has passed since the last targets
            self._gait.advance(self.command, readings)
        self.observation = self._observer(readings, self.command, self.action, self._gait)
        self.action = np.asarray(self._network(self.observation), np.float32)
        self._targets = targets(self._contract, self.action, self._targets, self._gait, self.command)
        return self._targets
