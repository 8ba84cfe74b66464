"""The gait clock of n robots: sine and cosine of a phase that runs with the control periods."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from gapless.errors import BadInput
from gapless.policy.contract import Contract, Term, columns_of

Array = NDArray[np.float64]

WAVES = {"clock": (np.sin, np.cos), "clock_sin": (np.sin,), "clock_cos": (np.cos,)}


class Clock:
    """One clock term: shows the phase of every robot's legs and moves on by a period."""

    def __init__(self, contract: Contract, term: Term, at: slice, n: int):
        dt = contract.timing.control_dt
        if dt is None or term.frequency is None:
            raise BadInput(f"term {term.name!r}: a clock needs its frequency and the contract's control_dt")
        self.term, self._at = term, at
        self._step = math.tau * dt * term.frequency
        self._lead = np.array(term.phases)
        self._commands = columns_of(term.commands, tuple(contract.commands))
        self._periods = np.zeros(n)

    @property
    def phase(self) -> Array:
        """What is shown next, before any leg's lead [rad]. Shape: (n,)."""
        return self._periods * self._step % math.tau

    def reset(self, which: NDArray[np.bool_]) -> None:
        self._periods[which] = 0.0

    def __call__(self, readings: Mapping[str, NDArray], command: Array, action: Array, frame: NDArray[np.float32]) -> None:
        """Fill the term's columns of a frame (n, columns)."""
        phase = self.phase[:, None] + self._lead
        self._periods += 1.0
        still = None if self.term.standing == "run" else np.logical_not(command[:, self._commands].any(axis=1))
        if self.term.standing == "stance":
            phase[still] = math.pi
            self._periods[still] = 0.0
        into, legs = frame[:, self._at], len(self._lead)
        for i, wave in enumerate(WAVES[self.term.kind]):
            into[:, i * legs : (i + 1) * legs] = wave(phase)
        if self.term.standing == "zero":
            into[still] = 0.0
