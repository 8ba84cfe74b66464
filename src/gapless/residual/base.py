"""What no number explains about a floating base: a bounded pull along its own axes, found by evolution in the full model.

A base on its feet cannot be followed alone as joints can, since the ground answers; so twelve weights are evolved in batched
worlds (CMA-ES), on windows from measured states, and kept where they predict the half of the logs that they have not seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import mujoco
import numpy as np

from gapless.arrays import Array
from gapless.identify import Fit, gain_of
from gapless.logs import Log
from gapless.measure import FREE_WINDOW, Split, Windows, mean_by, windows
from gapless.residual.networks import LEAST, Physics, Tick
from gapless.residual.own_run import Recorder
from gapless.robots import base_joint
from gapless.twin import Residual, Twin, Wrench, base_speed
from gapless.worlds import Replayer

SIGNALS = ("quat", "gyro", "base_vel")
WINDOWS = 48  # of all logs
GENERATIONS, CHILDREN, FIRST = 20, 12, 0.2
SHARE = 0.2  # of the robot's weight that pulls along an axis at most
PENALTY = 0.02  # on the squared share of the bound, against errors in units of the usual one
RATE = 50.0  # Hz: samples that are compared
RARE = 0.002  # share of the steps that are outside of the support


@dataclass(frozen=True)
class LearntBase:
    """What was learned of a floating base."""

    kept: bool
    errors: dict[str, tuple[float, float]]
    """Held-out error of each signal before and after: joints and orientation [rad], turning [rad/s], velocity [m/s]."""
    gain: float
    """Share of the squared error that it takes away, held out, and the standard error of that."""
    gain_error: float
    outside: float
    """Share of the time in which the base moved otherwise than in training, and its velocity was clipped."""
    force: float
    """Root mean square of what it pulls with [N], and of its torque [N m]; and the most along an axis."""
    torque: float
    most_force: float
    most_torque: float


def pulled(fit: Fit, logs: Sequence[Log], split: Split, force: bool, tick: Tick) -> tuple[Fit, LearntBase | None]:
    """A fit of a floating robot with a pull at its base where that helps (or is forced), and how good it is."""
    if not fit.twin.floating:
        return fit, None
    speed = np.concatenate([_speeds(fit.twin, log, fit.values) for log in logs])
    blank = _blank(fit.twin, speed)
    twin = fit.twin.plus(Residual(base=blank))
    places = [twin.space.names.index(n) for n in fit.twin.space.names]
    mine = [i for i, name in enumerate(twin.space.names) if name.startswith("residual.wrench")]
    vectors = np.tile(twin.space.nominal, (3, 1))
    vectors[:, places] = [fit.values, *fit.halves]
    data = _watched(twin, logs, split)
    before = data.errors(vectors)
    for row, (label, blocks) in enumerate((("all", None), ("first half", split.first), ("second half", ~split.first))):
        tick(f"pull at the base, evolving in {label}")
        some = (
            data
            if blocks is None
            else windows(twin, logs, split, blocks, FREE_WINDOW, WINDOWS // 2, signals=data.signals, rate=RATE)
        )
        vectors[row, mine] = _evolved(some, vectors[row], mine)
    after = data.errors(vectors)
    held = [split.held_out(data.block, *errors[1:]) for errors in (before, after)]
    each = [mean_by(data.block, h**2, len(split)) for h in held]
    gain, error = gain_of(list(each[0].T), list(each[1].T))
    kept = force or gain > max(error, LEAST)
    wrench = blank.at(speed, np.tile(vectors[0, mine], (len(speed), 1)))
    judged = LearntBase(
        kept=kept,
        errors=_by_signal(data, *held),
        gain=gain,
        gain_error=error,
        outside=float(blank.outside(speed).mean()),
        force=float(np.sqrt((wrench[:, :3] ** 2).sum(axis=1).mean())),
        torque=float(np.sqrt((wrench[:, 3:] ** 2).sum(axis=1).mean())),
        most_force=blank.force,
        most_torque=blank.torque,
    )
    if not kept:
        return fit, judged
    learnt = replace(blank, members=tuple(float(f"{w:.6g}") for w in vectors[0, mine]))
    return replace(fit, twin=fit.twin.plus(Residual(base=learnt)), values=vectors[0], halves=vectors[1:]), judged


def carries(before: Physics, twin: Twin, vectors: Array, logs: Sequence[Log], split: Split) -> bool:
    """Whether a twin with networks predicts how its base moves as well as physics does, held out; true where none floats.

    Networks learn from positions of joints, and what they add there goes through the ground into the base.
    """
    if not twin.floating:
        return True
    square = []
    for model, values in ((before.twin, before.vectors), (twin, vectors)):
        data = _watched(model, logs, split)
        held = split.held_out(data.block, *data.errors(values)[1:])[:, len(twin.joints) :]
        square.append(list(mean_by(data.block, held**2, len(split)).T))
    return not square[0] or gain_of(*square)[0] >= 0


def _watched(twin: Twin, logs: Sequence[Log], split: Split) -> Windows:
    """Windows of all logs, compared in joints and in what was measured of the base."""
    signals = ("q", *(s for s in SIGNALS if all(s in log for log in logs)))
    return windows(twin, logs, split, None, FREE_WINDOW, WINDOWS, signals=signals, rate=RATE)


def _blank(twin: Twin, speed: Array) -> Wrench:
    """A pull that does nothing yet, with its bounds and the range of velocities (n, 6) that it will see."""
    low, high = np.quantile(speed, [RARE / 2, 1 - RARE / 2], axis=0)
    wide = np.maximum(high - low, 1e-3)
    free = base_joint(twin.model)
    assert free is not None  # the twin floats
    most = SHARE * twin.mass * float(np.linalg.norm(twin.model.opt.gravity))
    height = float(abs(twin.home[twin.model.jnt_qposadr[free] + 2]))  # a pull at the ground turns the base so far above it
    middle = (low + high) / 2
    return Wrench(most, most * height, tuple((middle - wide / 2).tolist()), tuple((middle + wide / 2).tolist()))


def _speeds(twin: Twin, log: Log, values: Array) -> Array:
    """Velocity of the base along its own axes in the twin's replay of a log, at each step of its windows. Shape: (steps, 6)."""
    made: list[Recorder] = []

    def engine(model: mujoco.MjModel, n: int, threads: int) -> Recorder:
        made.append(Recorder(model, n))
        return made[-1]

    Replayer(twin, log, FREE_WINDOW, engine=engine)(values[None])
    free = base_joint(twin.model)
    place, dof = int(twin.model.jnt_qposadr[free]), int(twin.model.jnt_dofadr[free])
    rolls = [roll for world in made[-1].kept for roll in world]
    poses = np.concatenate([poses for _, poses, _ in rolls])[:, place : place + 7]
    return base_speed(poses, np.concatenate([felt[1] for felt, _, _ in rolls])[:, dof : dof + 6])


def _evolved(data: Windows, vector: Array, mine: list[int]) -> Array:
    """The weights that predict windows best, other parameters as in a vector. Shape: (12,)."""
    import cma

    usual = 1.5 * np.median(np.abs(data.errors(vector[None])[0]), axis=0) + 1e-6

    def losses(weights: Array) -> Array:
        every = np.tile(vector, (len(weights), 1))
        every[:, mine] = weights
        share = weights / (1 + np.abs(weights))
        return np.asarray(
            (np.sqrt(1 + (data.errors(every) / usual) ** 2) - 1).mean(axis=(1, 2)) + PENALTY * (share**2).mean(axis=1)
        )

    options = {"popsize": CHILDREN, "seed": 1, "verbose": -9, "maxiter": GENERATIONS}
    search = cma.CMAEvolutionStrategy(np.zeros(len(mine)), FIRST, options)
    best, least = np.zeros(len(mine)), float(losses(np.zeros((1, len(mine))))[0])
    for _ in range(GENERATIONS):
        asked = np.array(search.ask())
        told = losses(asked)
        search.tell(list(asked), told.tolist())
        if told.min() < least:
            best, least = asked[np.argmin(told)], float(told.min())
    return best


def _by_signal(data: Windows, before: Array, after: Array) -> dict[str, tuple[float, float]]:
    """Root mean square of each signal's errors (samples, columns), mean over its columns."""
    out, first = {}, 0
    for signal in data.signals:
        width = len(data.twin.joints) if signal == "q" else 3
        sizes = [float(np.sqrt((e[:, first : first + width] ** 2).mean(axis=0)).mean()) for e in (before, after)]
        out[signal], first = (sizes[0], sizes[1]), first + width
    return out
