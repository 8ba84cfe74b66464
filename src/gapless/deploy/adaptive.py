"""An adaptive inner loop: model-reference adaptive control of each joint, with projection and a dead zone.

The reference is the joint as the contract's gains and the model's inertia make it, second order and critically damped at
least. What the joint needs beyond the drive's own loop is `theta' phi`, with phi = (1, sin q, cos q, speed, reference
acceleration); theta follows `gamma phi (e' P B)` (Narendra and Annaswamy 1989, ch. 3; Lavretsky and Wise 2013, ch. 11), stands
still while the error is smaller than what sensors make, and is kept inside a box.
"""

import numba
import numpy as np

from gapless.arrays import Array
from gapless.deploy.limits import Limits

TERMS = 5
SHARE = 0.6
"""Of the torque limit that adaptation may give in all."""
GAMMA = 60.0
"""Of adaptation, in torque limits per second and rad of error."""
DEAD = 0.003
"""rad of error below which nothing is learned."""
FASTEST = 12.0
"""rad/s: the reference's natural frequency at most, so that it stays below what the drive can follow."""
SCALE = np.array([1.0, 1.0, 1.0, 0.1, 0.005])
"""That brings the terms to one size."""


@numba.njit(cache=True)
def _adapt(
    q: Array,
    dq: Array,
    target: Array,
    model: Array,
    theta: Array,
    omega: Array,
    kp: Array,
    kd: Array,
    limit: Array,
    dt: float,
    out: Array,
) -> None:
    """Advance reference (2, joints) and theta (joints, terms); the torque that is fed forward goes into `out` (joints,)."""
    phi = np.empty(TERMS)
    for j in range(len(q)):
        w = omega[j]
        wanted = w * w * (target[j] - model[0, j]) - 2.0 * w * model[1, j]
        model[1, j] += dt * wanted
        model[0, j] += dt * model[1, j]
        error, rate = q[j] - model[0, j], dq[j] - model[1, j]
        phi[0], phi[1], phi[2] = 1.0, np.sin(q[j]), np.cos(q[j])
        phi[3], phi[4] = dq[j], wanted
        blend = error + 0.5 * rate / w  # e' P B of the reference, up to a factor that gamma takes up
        if abs(error) > DEAD:
            for k in range(TERMS):
                box = SHARE * limit[j] / (2.0 if k < 3 else 8.0 * SCALE[k] ** -1.0 * 0.0 + 2.0)
                theta[j, k] -= dt * GAMMA * limit[j] * SCALE[k] * SCALE[k] * phi[k] * blend
                theta[j, k] = min(max(theta[j, k], -box), box)
        given = 0.0
        for k in range(TERMS):
            given += theta[j, k] * phi[k]
        given -= kp[j] * (target[j] - model[0, j]) + kd[j] * (
            0.0 - model[1, j]
        )  # the drive follows the reference, not the step
        out[j] = min(max(given, -SHARE * limit[j]), SHARE * limit[j])


class Adaptive:
    """Torque to feed forward so that each joint follows its reference although its load is not what it was."""

    def __init__(self, limits: Limits, kp: Array, kd: Array, period: float):
        n = len(limits.joints)
        self._kp, self._kd, self._limit, self._period = kp, kd, limits.torque, period
        self._omega = np.minimum(FASTEST, np.sqrt(np.maximum(kp, 1e-6) / np.maximum(limits.inertia, 1e-6)))
        self._model, self.theta, self._out = np.zeros((2, n)), np.zeros((n, TERMS)), np.zeros(n)
        self._started = False

    def __call__(self, q: Array, dq: Array, target: Array) -> Array:
        """Torques (joints,) for positions, speeds and targets (joints,); nothing before they are finite."""
        if not np.isfinite(target).all():
            self._out[:] = 0.0
            return self._out
        if not self._started:
            self._model[0], self._started = q, True
        _adapt(q, dq, target, self._model, self.theta, self._omega, self._kp, self._kd, self._limit, self._period, self._out)
        return self._out

    @property
    def reference(self) -> Array:
        """Where the joints should be. Shape: (joints,)."""
        return self._model[0]
