"""Ripple: torque that depends on the joint's angle, as cogging magnets, uneven windings and gear teeth make it."""

from collections.abc import Mapping
from dataclasses import dataclass

import mujoco
import numpy as np

from gapless.arrays import Array, Bools
from gapless.errors import BadInput
from gapless.robots import drives, torque_limit
from gapless.twin.mechanism import Bound, Fields, Mechanism, Motion, Quantity, StepState, Values

# Cogging and torque ripple of brushless motors is 1-5 % of the rated torque.
SIZE = 0.02  # of the torque limit: a ripple met in practice
FEWEST = 2.0  # periods that a joint must pass through before errors that repeat are taken for ripple
MOST = 200.0  # periods per turn that are looked for
SHARE = 0.2  # of a joint's error that ripple must explain in the half of the motion from which it was not found
SAMPLES = 1000  # that are looked at

RUNG = "+ torque ripple"
SINE, COSINE = (
    Quantity(
        f"ripple.{part}",
        "N m",
        "ripple.torque",
        "model a torque over the angle (`gapless fit` finds it), compensate it in the drive, or look at motor and gear",
        rungs=(RUNG,),
        structure=True,
        shows="slow motion through several of its periods shows it",
        ranges={"wide": ("scale", -1.0, 1.0)},
    )
    for part in ("sine", "cosine")
)
PERIODS = Quantity("ripple.periods", "1/turn", cause=None, rungs=(RUNG,), structure=True)


@dataclass(frozen=True)
class Ripple(Mechanism):
    """A torque of sine * sin(n q) + cosine * cos(n q) [N m] on each joint that is named, with n periods per turn.

    Two amplitudes instead of one and a phase: predictions are then smooth in both, also where there is no ripple.
    """

    quantities = (SINE, COSINE, PERIODS)
    periods: Mapping[str, float]
    """Joint to periods per turn of the joint: a motor's cogging steps per turn times the gear ratio."""

    @classmethod
    def suspected(cls, model: mujoco.MjModel, motion: Motion) -> "Ripple | None":
        """Joints whose error repeats over the angle, found in one half of the motion and confirmed in the other."""
        if motion.error is None or motion.first is None:
            return None
        every = max(1, len(motion.q) // SAMPLES)
        columns, first = (motion.q[::every].T, motion.dq[::every].T, motion.error[::every].T), motion.first[::every]
        joints = zip(drives(model), *columns, strict=True)
        periods_of = {d.name: _periods(q, dq, error, first) for d, q, dq, error in joints}
        periods = {name: n for name, n in periods_of.items() if n}
        return cls(periods) if periods else None

    rival = suspected

    def install(self, spec: mujoco.MjSpec, home: Mapping[str, float]) -> None:
        for joint, n in self.periods.items():
            if not n > 0:
                raise BadInput(f"the ripple of {joint} needs a positive number of periods per turn, not {n:g}")

    def bind(self, model: mujoco.MjModel) -> Bound:
        motors = [d for d in drives(model) if d.name in self.periods]
        missing = set(self.periods) - {d.name for d in motors}
        if missing:
            raise BadInput(f"ripple acts on driven joints, and {', '.join(sorted(missing))} is none")
        qpos, dofs = [d.qpos for d in motors], [d.dof for d in motors]
        limits = [torque_limit(model, d.actuator) for d in motors]
        sizes = [SIZE * limit if 0 < limit < np.inf else SIZE for limit in limits]
        parameters = [
            quantity.amount(d.name, 0.0, size, 0.1 * size, -50 * size, 50 * size)
            for quantity in (SINE, COSINE)
            for d, size in zip(motors, sizes, strict=True)
        ]
        stated = [(d.name, self.periods[d.name]) for d in motors]
        parameters += [PERIODS.amount(name, n, 1.0, 0.5, 0.5 * n, 2 * n) for name, n in stated]

        def apply(fields: Fields, values: Values) -> None:
            """No field of the model has it."""

        def force(state: StepState, values: Values) -> Array:
            angle = values[PERIODS.name] * state.qpos[:, qpos]
            out = np.zeros_like(state.qvel)
            out[:, dofs] = values[SINE.name] * np.sin(angle) + values[COSINE.name] * np.cos(angle)
            return out

        return Bound(parameters, apply, force)


def _periods(q: Array, dq: Array, error: Array, half: Bools) -> float:
    """Periods per turn of the ripple in an error (samples,), found in a half of it and confirmed in the rest; 0: none."""
    known = np.isfinite(q) & np.isfinite(dq) & np.isfinite(error)
    q, dq, error, half = q[known], dq[known], error[known], half[known]
    if min(half.sum(), (~half).sum()) < 50 or np.ptp(q) < 2 * np.pi * FEWEST / MOST:
        return 0.0
    way = np.tanh(dq / (0.1 * np.abs(dq).max() + 1e-9))
    plain = np.column_stack([np.ones_like(q), q, q**2, dq, way])  # what gains, friction and delay make of an error
    basis = np.linalg.qr(plain[half])[0]
    left = error[half] - basis @ (basis.T @ error[half])

    def waves(n: float) -> Array:
        """What ripple makes of an error: it lags behind the angle, so its phase depends on speed."""
        sine, cosine = np.sin(n * q), np.cos(n * q)
        return np.column_stack([wave * by for by in (1.0, way, dq) for wave in (sine, cosine)])

    def explained(n: float) -> float:
        wave = waves(n)[half]
        wave -= basis @ (basis.T @ wave)
        along = wave.T @ left
        return float(along @ np.linalg.solve(wave.T @ wave + 1e-9 * np.eye(6), along))

    step = 0.5 * np.pi / np.ptp(q)
    best = max(np.arange(2 * np.pi * FEWEST / np.ptp(q), MOST, step), key=explained)
    best = max(best + step * np.linspace(-1, 1, 21), key=explained)
    without, within = (
        float(((error - x @ np.linalg.lstsq(x[half], error[half], rcond=None)[0])[~half] ** 2).sum())
        for x in (plain, np.column_stack([plain, waves(best)]))
    )
    return float(best) if within < (1 - SHARE) * without else 0.0
