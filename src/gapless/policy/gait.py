"""The gait of n robots: whether each steps and how far it is into its cycle; clock terms, reference and reward all ask here."""

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gapless.arrays import Array, Bools
from gapless.errors import BadInput
from gapless.policy.contract import Contract, columns_of
from gapless.policy.parts import CLOCKS, Term

SMOOTH = 0.1
"""Time constant of the low-pass on the base velocity, whose estimate from the legs is noisy [s]."""
CALM = 1.0
"""How long a pushed robot must stay slow before it stands still again [s]."""
WAVES = {"clock": (np.sin, np.cos), "clock_sin": (np.sin,), "clock_cos": (np.cos,)}


class Gait:
    """The gait clock of n robots.

        gait = Gait(contract, n)
        observation = observer(readings, command, action, gait)
        sent = targets(contract, policy(observation), gait=gait, command=command)
        gait.advance(command, readings)        # once a control period, with the readings at its end
        gait.reset(done)

    A robot steps while one of its commands is not zero. Where the contract's reference has a `wake` speed, it also steps in
    place once its base moves faster than that, until it has been slower for `CALM` seconds. Nothing but `advance` and `reset`
    changes the state.
    """

    def __init__(self, contract: Contract, n: int):
        reference, dt = contract.action.reference, contract.timing.control_dt
        clocks = [t for t in contract.observation.terms if t.kind in CLOCKS]
        if dt is None and (clocks or reference):
            raise BadInput("a gait clock needs the contract's control_dt")
        self._dt, self._commands, self._reference = dt or 0.0, tuple(contract.commands), reference
        self._table = np.array(() if reference is None else reference.table)
        self._periods = np.zeros(n)
        self._since_stand = {t.name: (t.commands, np.zeros(n)) for t in clocks if t.standing == "stance"}
        self.wake = None if reference is None else reference.wake
        """Speed of the base above which a robot steps in place [m/s]; None for never."""
        self._velocity, self._awake = np.zeros((n, 2)), np.zeros(n)

    def cycles(self, frequency: float) -> Array:
        """How far each robot is into a gait of a frequency [Hz], in cycles since its reset. Shape: (n,)."""
        return self._periods * self._dt * frequency

    def reset(self, which: Bools) -> None:
        """Start the clock of some robots anew and forget how they moved, by a mask of shape (n,)."""
        for state in (self._periods, self._velocity, self._awake, *(periods for _, periods in self._since_stand.values())):
            state[which] = 0.0

    def advance(self, command: ArrayLike, readings: Mapping[str, NDArray]) -> None:
        """Move on by one control period.

        Args:
            command: what was asked for in that period, shape (n, commands).
            readings: at its end; only a contract with a wake speed needs one, the "velocity" of the base, shape (n, 3).
        """
        command = np.asarray(command)
        self._periods += 1.0
        for commands, periods in self._since_stand.values():
            periods += 1.0
            periods[~self.steps(command, commands)] = 0.0
        if self.wake is None:
            return
        if "velocity" not in readings:
            raise BadInput("a gait with a wake speed needs an estimate of the base velocity among the readings")
        self._velocity += (1 - math.exp(-self._dt / SMOOTH)) * (readings["velocity"][:, :2] - self._velocity)
        self._awake = np.where(np.hypot(*self._velocity.T) > self.wake, CALM, self._awake - self._dt)

    def steps(self, command: ArrayLike, commands: tuple[str, ...] = ()) -> Bools:
        """Which robots step under a command (n, commands); `commands` names those that are zero at rest, all unless given."""
        asked = np.asarray(command)[:, columns_of(commands, self._commands)].any(axis=1)
        return np.asarray(asked | (self._awake > 0))

    def clock(self, term: Term, command: ArrayLike) -> Array:
        """What a clock term shows. Shape: (n, columns)."""
        assert term.frequency is not None
        _, periods = self._since_stand.get(term.name, ((), self._periods))
        phase = (math.tau * self._dt * term.frequency * periods % math.tau)[:, None] + np.array(term.phases)
        stands = ~self.steps(command, term.commands)
        if term.standing == "stance":
            phase[stands] = math.pi
        shown = np.concatenate([wave(phase) for wave in WAVES[term.kind]], axis=1)
        if term.standing == "zero":
            shown[stands] = 0.0
        return shown

    def offset(self, command: ArrayLike) -> Array:
        """What the reference adds to the targets of the driven joints, zero for robots that stand. Shape: (n, joints)."""
        assert self._reference is not None
        added = reference_at(self._table, self.cycles(self._reference.frequency))
        return added * self.steps(command, self._reference.commands)[:, None]


def reference_at(table: Array, cycles: Array) -> Array:
    """A reference gait, linear between the rows of its table, at numbers of cycles (n,). Shape: (n, driven joints)."""
    share, row = np.modf(cycles % 1.0 * len(table))
    before = row.astype(int) % len(table)  # a phase just below a whole cycle may round up to one
    return np.asarray(table[before] + share[:, None] * (table[(before + 1) % len(table)] - table[before]))
