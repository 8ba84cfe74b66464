"""Simulate: what robots that differ do when they are told a motion, from standing still where it starts."""

from dataclasses import dataclass

import numpy as np

from gapless.arrays import Array, Bools
from gapless.identify.excitation.limits import Limits
from gapless.twin import Point, Twin, quantities
from gapless.worlds import Sampler, Stream, Worlds

SETTLED = 0.5  # s: a robot stands where a motion starts before it is told the motion, as its encoders and its weight have it


@dataclass(frozen=True)
class Simulated:
    """What simulated robots did."""

    q: Array
    """As read, once a control period. Shape: (n, periods, joints)."""
    peaks: Limits
    """Extremes over all physics steps; of torque, over control periods, its root mean square in one: what a servo takes for a
    millisecond after a new command, its drive clips. Shape of each: (n, joints)."""
    failed: Bools
    """Shape: (n,)."""


class Simulator:
    """Runs motions on robots that differ: from standing still, free-running, without noise."""

    def __init__(self, twin: Twin, start: Array):
        """start: the command (joints,) that the robots have held; what other controls do is as at home."""
        self.twin = twin
        self._worlds: dict[int, Worlds] = {}  # by their number
        # left out where simulations are subtracted: what differs from one to the next
        self._random = [i for i, n in enumerate(twin.space.names) if not quantities.of(n).repeatable]
        self._command, self._pose = twin.home_command.copy(), twin.home.copy()
        for d, value in zip(twin.drives, start, strict=True):
            self._command[d.control] = value
            if d.signal == "q":
                self._pose[d.qpos] = value
        self.lead = max(1, round(SETTLED / twin.control_dt))
        """Control periods before a motion."""

    def __call__(self, motions: Array, robots: Array) -> Simulated:
        """Every motion (m, periods, joints) on every robot (k, all parameters): worlds in the order of motions, then robots."""
        twin, substeps = self.twin, self.twin.substeps
        m, periods, joints = motions.shape
        which, values = np.repeat(np.arange(m), len(robots)), np.tile(robots, (m, 1))
        values[:, self._random] = 0.0
        n, total = len(which), self.lead + periods
        if n not in self._worlds:
            self._worlds[n] = Worlds(twin, n, Point(twin.space, twin.space.nominal), signals=("q",))
        worlds = self._worlds[n]
        worlds.write(values)
        worlds.reset(qpos=self._pose, command=self._command, redraw=False)
        command = np.tile(self._command, (m, total, 1))
        command[:, self.lead :, [d.control for d in twin.drives]] = motions
        sent = (np.arange(m * total)[None] - total * np.arange(m)[:, None]) * float(substeps)
        places, dofs = np.array([d.qpos for d in twin.drives]), np.array([d.dof for d in twin.drives])
        times: Array = np.arange(self.lead, total, dtype=np.float64)[None] * twin.control_dt
        q = Sampler("qpos", places, worlds.age, times, np.zeros_like(which), twin.model.opt.timestep)
        offset = worlds.path["path.offset_q"][:, None]
        low, high = np.full((n, joints), np.inf), np.full((n, joints), -np.inf)
        speed, squares = np.zeros((n, joints)), np.zeros((n, total, joints))
        stream = Stream(sent, command.reshape(m * total, -1), which)
        for chunk in worlds.play(stream, total * substeps, ("qpos", "qvel", "qfrc_actuator")):
            q.take(chunk)
            counts = slice(max(0, self.lead * substeps - chunk.first), None)
            near = chunk.record["qpos"][:, counts][:, :, places] + offset
            low = np.minimum(low, near.min(axis=1, initial=np.inf))
            high = np.maximum(high, near.max(axis=1, initial=-np.inf))
            speed = np.maximum(speed, np.abs(chunk.record["qvel"][:, counts][:, :, dofs]).max(axis=1, initial=0.0))
            period = np.arange(chunk.first, chunk.first + chunk.record["qvel"].shape[1]) // substeps
            first = np.flatnonzero(np.diff(period, prepend=-1))  # steps of each period that is in this chunk
            squares[:, period[first]] += np.add.reduceat(chunk.record["qfrc_actuator"][:, :, dofs] ** 2, first, axis=1)
        torque = np.sqrt(squares[:, self.lead :].max(axis=1) / substeps)
        return Simulated(q.values + offset, Limits(low, high, speed, torque), worlds.failed)
