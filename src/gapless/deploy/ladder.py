"""The fallback ladder: which rung follows which reason, and what a robot is told on each."""

import threading
from enum import IntEnum

import numpy as np

from gapless.arrays import Array
from gapless.deploy.limits import Limits
from gapless.deploy.plausible import Fault


class Rung(IntEnum):
    """From a robot that runs its policy to one without power; a robot climbs and never comes back by itself."""

    RUN = 0
    HOLD = 1
    """The last posture is held, with the policy's gains."""
    CROUCH = 2
    """The posture is let go of slowly, with damping: a robot on legs sinks, an arm comes down."""
    DAMP = 3
    """Speed is damped, nothing else."""
    CUT = 4
    """No torque."""


HELD, SINKS = 0.3, 2.0
"""s for which a posture is held, and in which it is let go of."""
LEVELS = 50
"""Steps in which gains are let go of."""
STALE, SILENT = 0.025, 0.100
"""s without a reading after which a robot is damped, and after which it is let go of."""

WHY: dict[str, tuple[Rung, str]] = {
    "policy late": (Rung.HOLD, "the policy gave no action in time"),
    "policy nan": (Rung.HOLD, "the policy's action is not a number"),
    "watch": (Rung.HOLD, "the robot left the envelope in which the policy was checked"),
    "person": (Rung.HOLD, "somebody asked it to stop"),
    "battery": (Rung.CROUCH, "the battery is low"),
    "heat": (Rung.CROUCH, "a drive is too hot"),
    "imu": (Rung.CROUCH, "the IMU cannot be relied on"),
    "tilt": (Rung.DAMP, "the robot has fallen"),
    "joints": (Rung.DAMP, "the joints' readings cannot be relied on"),
    "frozen": (Rung.DAMP, "the readings do not change any more"),
    "clock": (Rung.DAMP, "the robot's clock went back or ran ahead"),
    "speed": (Rung.DAMP, "a joint is faster than its limit"),
    "stale": (Rung.DAMP, "no reading came in time"),
    "emergency": (Rung.DAMP, "somebody pressed the emergency stop"),
    "silent": (Rung.CUT, "the robot is silent"),
    "unsent": (Rung.CUT, "commands cannot be sent"),
    "mode": (Rung.CUT, "the robot left the mode in which it is commanded"),
    "second": (Rung.CUT, "somebody else commands the robot"),
    "policy broken": (Rung.HOLD, "the policy failed"),
    "broken": (Rung.CUT, "the inner loop failed"),
}
"""Reason to the rung that it leads to: the lowest that what still works allows. Joints without IMU are let down slowly; without
joints only the drives' own damping is left; without a robot that listens nothing is."""

OF_FAULT = {
    Fault.JOINT_NAN: "joints",
    Fault.JUMP: "joints",
    Fault.JOINT_FROZEN: "joints",
    Fault.IMPOSSIBLE: "joints",
    Fault.FROZEN: "frozen",
    Fault.CLOCK: "clock",
    Fault.IMU_NAN: "imu",
    Fault.IMU_IMPOSSIBLE: "imu",
    Fault.IMU_FROZEN: "imu",
}


def let_go(since: float) -> float:
    """Share of the gains that is left some seconds after a posture is let go of; in steps, as replays take few changes."""
    return max(0.0, 1.0 - np.ceil(since / SINKS * LEVELS) / LEVELS)


class Ladder:
    """Where a robot stands, why, since when; a stop is latched until a person releases it."""

    def __init__(self, limits: Limits):
        n = len(limits.joints)
        self.rung, self.reason, self.since = Rung.RUN, "", 0.0
        self.first = Rung.RUN
        """The rung that the first reason led to."""
        self.events: list[tuple[float, str, str]] = []
        """Time [s], rung and reason of every climb."""
        self._posture, self._kp, self._kd = np.zeros(n), np.zeros(n), limits.kd
        self._damping = np.minimum(limits.kd, 0.05 * limits.torque)
        self._lock = threading.Lock()  # policy, inner loop and steering climb: none may undo what another has just done

    @property
    def latched(self) -> bool:
        return self.rung is not Rung.RUN

    def climb(self, why: str, now: float, posture: Array, kp: Array) -> None:
        """Go to the rung of a reason, unless that is below; `posture` (joints,) with gains `kp` is what would be held."""
        rung, sentence = WHY[why]
        with self._lock:
            if rung <= self.rung:
                return
            if self.rung is Rung.RUN:
                self._posture[:], self._kp[:], self.first = posture, kp, rung
                self.reason = sentence
            self._stand(rung, now, sentence)

    def command(self, now: float, out: Array) -> None:
        """What the robot is told on its rung at `now` [s]; written into `out` (5, joints) by rows of MIT."""
        with self._lock:
            if self.rung is Rung.HOLD and now - self.since > HELD:
                self._stand(Rung.CROUCH, now, "the posture was held long enough")
            if self.rung is Rung.CROUCH and now - self.since > SINKS:
                self._stand(Rung.DAMP, now, "the robot has come down")
        out[1], out[4] = 0.0, 0.0
        out[0] = self._posture
        if self.rung is Rung.HOLD:
            out[2], out[3] = self._kp, self._kd
        elif self.rung is Rung.CROUCH:
            out[2], out[3] = self._kp * let_go(now - self.since), self._kd
        else:
            out[2], out[3] = 0.0, self._damping if self.rung is Rung.DAMP else 0.0

    def _stand(self, rung: Rung, now: float, why: str) -> None:
        self.rung, self.since = rung, now
        self.events.append((now, rung.name, why))

    def release(self) -> None:
        """A person has looked at the robot: it may run again."""
        self.rung, self.reason, self.first = Rung.RUN, "", Rung.RUN
