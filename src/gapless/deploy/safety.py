"""The safety layer: between any policy and any robot, on by default, at the rate of the inner loop."""

import math

import numpy as np

from gapless.arrays import Array
from gapless.deploy.clamp import HITS, clamp
from gapless.deploy.collision import Collisions
from gapless.deploy.ladder import OF_FAULT, SILENT, STALE, Ladder, Rung
from gapless.deploy.limits import BUILD_UP, Limits
from gapless.deploy.plausible import GLITCH, OF_THE_IMU, Fault, Plausible
from gapless.robots import RobotModel

AGE = 0.003
"""s between a reading and the moment at which a command that answers it acts: a period each way, and one to compute; never less
than two periods."""
FAST_TICKS = 3
"""Readings in a row above a joint's speed limit after which it is damped."""


class Safety:
    """Turns what a policy asks for into what a robot is told; once stopped it stays so until a person releases it.

        safety = Safety(limits, robot, period=0.001)
        safety.see(q, dq, imu, time, now)          # a reading, or `safety.unseen(now)` where none came
        command = safety.answer(wanted, fresh, now)  # (5, joints) by rows of MIT

    Nothing is allocated while it runs.
    """

    def __init__(self, limits: Limits, robot: RobotModel, period: float, policy_period: float = 0.02, age: float = AGE):
        """Stand ready.

        Args:
            limits: that no command may exceed.
            robot: its model, for predicted collisions.
            period: of the inner loop [s].
            policy_period: of the policy; three of them without an action are too many [s].
            age: of readings when a command acts [s].
        """
        self.limits, self.period, self.age = limits, period, max(age, 2 * period)
        self.patience = max(3 * policy_period, 0.05)
        self.ladder, self.plausible = Ladder(limits), Plausible(limits, robot.floating)
        self.collisions = Collisions(robot)
        n = len(limits.joints)
        self._bounds = np.stack(
            [limits.low, limits.high, limits.velocity, limits.torque, limits.power, limits.rate, limits.kp, limits.kd]
        )
        self._wanted, self._last, self._out = np.zeros((5, n)), np.zeros((5, n)), np.zeros((5, n))
        self._last[0] = np.nan  # nothing was sent yet
        self.hits = np.zeros(len(HITS))
        """How often a command was changed, by HITS."""
        self._heard, self._felt, self._asked, self._fast, self.ticks = math.nan, math.nan, math.nan, 0, 0
        self._blocked, self._upright = False, math.cos(limits.tilt)
        self._somewhere, self._still = np.zeros(n), np.zeros(n)
        self._compile(robot.floating)

    def _compile(self, floating: bool) -> None:
        """Before the run, not in its first period: a robot would wait for seconds where nothing was compiled before."""
        idle = self._still
        Plausible(self.limits, floating).take(idle, idle, np.zeros(7 if floating else 0), 0.0, 0.0)
        self._clamp(idle, idle, np.zeros_like(self._last), self.age)
        self.hits[:] = 0.0

    @property
    def rung(self) -> Rung:
        return self.ladder.rung

    def see(self, q: Array, dq: Array, imu: Array, time: float, now: float) -> None:
        """Take a reading: q, dq (joints,), imu (7,) quaternion and gyro or empty, its time and that of its arrival [s]."""
        fault = self.plausible.take(q, dq, imu, time, now, self._last[0])
        self._heard = now
        if self.plausible.last is Fault.NONE or self.plausible.last in OF_THE_IMU or math.isnan(self._felt):
            self._felt = now
        if fault is not Fault.NONE:
            self.climb(OF_FAULT[fault], now)
            return
        good = self.plausible
        self._fast = self._fast + 1 if (np.abs(good.dq) > self.limits.velocity).any() else 0
        if self._fast >= FAST_TICKS:
            self.climb("speed", now)
        if len(imu):
            w, x, y, z = good.imu[:4].tolist()
            if w * w - x * x - y * y + z * z < self._upright:
                self.climb("tilt", now)

    def unseen(self, now: float) -> None:
        """No new reading came in this period."""
        silence = now - self._heard
        if silence > SILENT:
            self.climb("silent", now)
        elif silence > STALE:
            self.climb("stale", now)

    def supply(self, temperature: Array, battery: float, now: float) -> None:
        """Look at drives' temperatures [degC] and the battery [V]; slow things, looked at now and then."""
        if not (temperature <= self.limits.temperature).all():  # a number that is none is too hot as well
            self.climb("heat", now)
        if not battery >= self.limits.battery:
            self.climb("battery", now)

    def climb(self, why: str, now: float) -> None:
        """Go to the rung of a reason."""
        held = self.plausible.q if math.isnan(self._last[0, 0]) else np.clip(self._last[0], self.limits.low, self.limits.high)
        self.ladder.climb(why, now, held, self._last[2])

    def answer(self, wanted: Array, fresh: bool, now: float) -> Array:
        """What the robot is told. The array is the layer's own, and written again with the next call.

        Args:
            wanted: what is asked for, shape (5, joints) by rows of MIT.
            fresh: whether the policy gave it since the last call.
            now: [s]
        """
        self.ticks += 1
        if math.isnan(self._asked) or fresh:
            self._asked = now
        if self.ladder.rung is Rung.RUN:
            if now - self._asked > self.patience:
                self.climb("policy late", now)
            elif not np.isfinite(wanted).all():
                self.climb("policy nan", now)
        if self.ladder.rung is Rung.RUN:
            self._wanted[:] = wanted
            if fresh:
                self._blocked = not self.collisions.clear(self.plausible.q, self._wanted[0], self.limits)
            if self._blocked:  # until the policy asks for something else
                self._wanted[0] = self.collisions.last
        else:
            self.ladder.command(now, self._wanted)
        if math.isnan(self._last[0, 0]):  # from nothing: as if the posture had been held without gains
            self._last[:] = 0.0
            self._last[0] = self.plausible.q
        old = max(0.0, now - self._felt) if math.isfinite(self._felt) else 0.0
        if self.ladder.rung >= Rung.DAMP and old > GLITCH and not self._last[2].any():
            # where the joints are and how fast they move, nobody knows: nothing but the drives' own damping is right then
            np.clip(self.plausible.q, self.limits.low, self.limits.high, out=self._somewhere)
            self._clamp(self._somewhere, self._still, self._last, self.age)
        else:
            self._clamp(self.plausible.q, self.plausible.dq, self._last, self.age + old)
        if self.ladder.rung is Rung.CUT:
            self._out[1:] = 0.0
        self._last[:] = self._out
        return self._out

    def _clamp(self, q: Array, dq: Array, last: Array, age: float) -> None:
        """Write into `_out` what no limit forbids of `_wanted` after `last`."""
        clamp(
            self._wanted, last, q, dq, self._bounds, self.limits.braking, self.limits.inertia, self.period, age, BUILD_UP,
            self._out, self.hits,
        )  # fmt: skip

    def release(self) -> None:
        """A person has looked at the robot."""
        self.ladder.release()
        self._asked, self._fast = math.nan, 0

    def counted(self) -> dict[str, float]:
        """Joints' commands that each limit changed, as a share of all."""
        every = max(1, self.ticks * len(self.limits.joints))
        return {name: float(count) / every for name, count in zip(HITS, self.hits, strict=True)}
