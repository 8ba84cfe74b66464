"""An adaptive inner loop: model-reference adaptive control of each joint, with projection and a dead zone.

The reference of a joint is its drive with the contract's gains on the inertia of the model, `I x'' = kp (target - x) - kd x'`,
damped at least as well as DAMPING says. What the joint needs beyond its drive is `theta' phi`, with phi = (1, sin q, cos q,
speed, reference acceleration, sign of the reference speed). theta follows `-gamma phi (e' P B)` (Narendra and Annaswamy 1989,
ch. 3; Lavretsky and Wise 2013, ch. 11) with P from A'P + PA = -diag(a0, 7); it stands still while the error is no larger than
what sensors make, and is kept inside a box.
"""

import numba
import numpy as np

from gapless.arrays import Array
from gapless.deploy.clamp import BRAKES
from gapless.deploy.limits import Limits

TERMS = 6
SHARE = 0.7
"""Of the torque limit that adaptation may give in all, and each of its terms."""
GAMMA = 80.0
"""Of adaptation: torque limits per second and rad of error."""
DEAD = 0.002
"""rad of error below which nothing is learned."""
CREEP = 0.05
"""rad/s below which dry friction has no sign."""
DAMPING = 0.7
"""Least damping ratio of a reference."""
SIZES = np.array([1.0, 1.0, 1.0, 0.05, 0.02, 1.0])
"""What brings the terms to one size: a joint turns at 20 rad/s, and its reference accelerates by 50 rad/s2."""


@numba.njit(cache=True)
def _adapt(
    q: Array, dq: Array, target: Array, model: Array, theta: Array, a0: Array, a1: Array, limit: Array, dt: float, out: Array
) -> None:
    """Advance reference (2, joints) and theta (joints, terms); the torque that is fed forward goes into `out` (joints,)."""
    phi = np.empty(TERMS)
    for j in range(len(q)):
        acceleration = a0[j] * (target[j] - model[0, j]) - a1[j] * model[1, j]
        model[1, j] += dt * acceleration
        model[0, j] += dt * model[1, j]
        error, rate = q[j] - model[0, j], dq[j] - model[1, j]
        phi[0], phi[1], phi[2], phi[3], phi[4] = 1.0, np.sin(q[j]), np.cos(q[j]), dq[j], acceleration
        phi[5] = np.tanh(model[1, j] / CREEP)
        descent = (
            GAMMA * limit[j] * (0.5 * error + 4.0 * rate / a1[j]) if abs(error) > DEAD else 0.0
        )  # e' P B, times gamma and inertia
        given = 0.0
        for k in range(TERMS):
            box = SHARE * limit[j]
            scaled = phi[k] * SIZES[k]
            theta[j, k] = min(max(theta[j, k] - dt * descent * scaled, -box), box)
            given += theta[j, k] * scaled
        out[j] = min(max(given, -SHARE * limit[j]), SHARE * limit[j])


class Adaptive:
    """Torque to feed forward so that each joint follows its reference although its load is not what it was."""

    def __init__(self, limits: Limits, kp: Array, kd: Array, period: float):
        inertia = BRAKES * limits.torque / limits.braking
        self._a0 = np.maximum(kp, 1e-3) / inertia
        self._a1 = np.maximum(kd / inertia, 2 * DAMPING * np.sqrt(self._a0))
        self._limit, self._period, n = limits.torque, period, len(limits.joints)
        self._model, self._out = np.zeros((2, n)), np.zeros(n)
        self._started = False
        self.theta = np.zeros((n, TERMS))
        """What was learned, by joint and term [N m]; at most SHARE of the torque limit."""
        self(self._out, self._out, self._out)  # compiled before the run
        self._started = False

    def __call__(self, q: Array, dq: Array, target: Array) -> Array:
        """Torques (joints,) for positions, speeds and targets (joints,); none where a target is no number."""
        if not np.isfinite(target).all():
            self._out[:] = 0.0
            return self._out
        if not self._started:
            self._model[0], self._started = q, True
        _adapt(q, dq, target, self._model, self.theta, self._a0, self._a1, self._limit, self._period, self._out)
        return self._out

    @property
    def reference(self) -> Array:
        """Where the joints should be. Shape: (joints,)."""
        return self._model[0]
