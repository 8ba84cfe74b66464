"""Motions to record: what a robot is told so that its log tells something."""

import io
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from gapless.arrays import Array
from gapless.delay import rows_in_force
from gapless.errors import BadInput, unknown
from gapless.files import text
from gapless.twin import Twin
from gapless.worlds.clearance import cleared
from gapless.worlds.stance import stance_of

MAX_FILE = 256 * 2**20  # bytes
STEADY = (
    0.2  # share of the angle at which a standing robot tips that its joints move: more, and robots unlike their models fall
)


def plan(name: str, twin: Twin, seconds: float, rng: np.random.Generator) -> Array:
    """Commands at the control rate, by joint: home plus a motion that stays within the joints' limits and clear of the robot.

    A robot on its feet moves less and is held up against its weight, so that soft drives do not let it sag. What shifts load
    between its feet, tilts it or moves its centre of mass sideways is made smaller; jumps of that kind vanish.

    Args:
        name: "rich" (multisine, chirp, slow triangle, large square wave), "chirp", "steps", "prbs", "stand", or a CSV file
            with a column `time` and one for each joint.
        twin: whose joints, limits and control period.
        seconds: length; of a file, the most that is used.
        rng: phases and levels.

    Returns:
        Shape: (periods, joints); in rad for position servos, rad/s for velocity servos, N m for torque drives.
    """
    t = (np.arange(periods(seconds, twin.control_dt)) * twin.control_dt).astype(np.float64)
    if name.endswith(".csv"):
        return _from_file(name, twin, t)
    if name not in SHAPES:
        raise unknown("motion", name, [*SHAPES, "a .csv file", "the folder of a policy"])
    stance = stance_of(twin)
    centre, reach = _reach(twin, 0.35 if stance is None else min(0.35, STEADY * stance.tips))
    wave = SHAPES[name](t, len(twin.joints), rng)
    ease = np.minimum(1.0, t / (0.5 if stance is None else 1.0))[:, None]  # no jump at the start
    swing = reach * wave
    if stance is not None:
        centre = centre + stance.lift * np.minimum(1.0, t / 0.1)[:, None]  # from home, but before it sags
        swing = stance.steady(swing, twin.control_dt) * ease
    else:
        swing = cleared(twin, centre, swing * ease)
        home = np.array([twin.home[d.qpos] if d.signal == "q" else 0.0 for d in twin.drives])
        centre = home + ease * (centre - home)  # which is beside it where home is at a limit
    ends = [(d.low, d.high) if d.signal == "q" else (-np.inf, np.inf) for d in twin.drives]  # others: by their reach
    return np.clip(centre + swing, *np.reshape(ends, (-1, 2)).T)


def periods(seconds: float, control_dt: float) -> int:
    """How many control periods a motion lasts; one that is too short or too long is refused."""
    if not 0 < seconds <= 36000:
        raise BadInput(f"a motion lasts between 0 and 36000 s, not {seconds:g}")
    if round(seconds / control_dt) < 1:
        raise BadInput(f"a motion of {seconds:g} s is shorter than a control period of {control_dt:g} s")
    return round(seconds / control_dt)


def _reach(twin: Twin, most: float) -> tuple[Array, Array]:
    """The middle of each joint's motion and how far it may go to either side: for positions at most `most` [rad]."""
    centre, reach = np.zeros(len(twin.drives)), np.zeros(len(twin.drives))
    for i, d in enumerate(twin.drives):
        if d.signal == "q":
            centre[i], reach[i] = twin.home[d.qpos], most
            if np.isfinite(d.low):
                low, high = d.low, d.high
                reach[i] = min(most, 0.8 * max(min(centre[i] - low, high - centre[i]), 0.0))
                if reach[i] < 0.25 * min(most, (high - low) / 2):  # home is at a limit: move about a place beside it
                    reach[i] = min(most, 0.4 * (high - low))
                    centre[i] = np.clip(centre[i], low + 1.2 * reach[i], high - 1.2 * reach[i])
        elif d.signal == "dq":
            reach[i] = 3.0
        else:
            limited = twin.model.actuator_ctrllimited[d.actuator]
            reach[i] = 0.15 * abs(twin.model.actuator_ctrlrange[d.actuator, 1]) if limited else 0.5
    return centre, reach


def multisine(t: Array, joints: int, rng: np.random.Generator) -> Array:
    """Ten sines from 0.2 to 5 Hz of falling size with random phases; their sum rarely leaves +-1."""
    tones = np.geomspace(0.2, 5.0, 10)
    size = tones**-0.5
    phase = rng.uniform(0, 2 * np.pi, (joints, len(tones)))
    wave = np.stack([np.sin(2 * np.pi * np.outer(t, tones) + p) @ size for p in phase], axis=1)
    return np.asarray(wave / (2.2 * np.linalg.norm(size) / np.sqrt(2)))


def _chirp(t: Array, joints: int, rng: np.random.Generator) -> Array:
    """0.2 to 6 Hz, smaller as it gets faster, so that speed and torque stay bounded; joints a little apart."""
    length = max(t[-1], 1e-9) if len(t) else 1.0
    low, high = 0.2, 6.0
    ratio = np.log(high / low) / length
    cycles = low * (np.exp(ratio * t) - 1) / ratio
    size = np.minimum(1.0, 1.0 / (low * np.exp(ratio * t)))
    return np.asarray(np.sin(2 * np.pi * cycles[:, None] + rng.uniform(0, 2 * np.pi, joints)) * size[:, None])


def _triangle(t: Array, joints: int, rng: np.random.Generator) -> Array:
    """So slow that only friction and gravity count: a period of 5 s."""
    cycles = t[:, None] / 5.0 + rng.random(joints)
    return np.asarray(4 * np.abs(cycles - np.floor(cycles + 0.5)) - 1)


def _square(t: Array, joints: int, rng: np.random.Generator) -> Array:
    """Large jumps every second or so, which saturate what can saturate."""
    cycles = t[:, None] / rng.uniform(1.6, 2.4, joints) + rng.random(joints)
    return np.where(cycles % 1 < 0.5, 1.0, -1.0)


def _steps(t: Array, joints: int, rng: np.random.Generator) -> Array:
    """A new level every second."""
    levels = rng.uniform(-1, 1, (int(t[-1]) + 2 if len(t) else 1, joints))
    return np.asarray(levels[t.astype(int)])


def _prbs(t: Array, joints: int, rng: np.random.Generator) -> Array:
    """One of two levels, drawn anew every 0.15 s."""
    slots = (t / 0.15).astype(int)
    return np.asarray(rng.choice([-0.6, 0.6], (slots[-1] + 1 if len(t) else 1, joints))[slots])


def _stand(t: Array, joints: int, rng: np.random.Generator) -> Array:
    return np.zeros((len(t), joints))


def _rich(t: Array, joints: int, rng: np.random.Generator) -> Array:
    """A quarter each of multisine, chirp, slow triangle and large square wave."""
    parts = np.array_split(np.arange(len(t)), 4)
    kinds: tuple[Callable[[Array, int, np.random.Generator], Array], ...] = (multisine, _chirp, _triangle, _square)
    return np.concatenate([kind(t[: len(p)], joints, rng) for kind, p in zip(kinds, parts, strict=True)])


SHAPES: dict[str, Callable[[Array, int, np.random.Generator], Array]] = {
    "rich": _rich,
    "chirp": _chirp,
    "steps": _steps,
    "prbs": _prbs,
    "stand": _stand,
}


def _from_file(path: str | os.PathLike[str], twin: Twin, t: Array) -> Array:
    """Commands from a CSV file, held between its rows."""
    file = Path(path)
    head, _, body = text(file, MAX_FILE).partition("\n")
    header = [h.strip() for h in head.split(",")]
    try:
        rows = np.loadtxt(io.StringIO(body), delimiter=",", ndmin=2) if body.strip() else np.empty((0, len(header)))
    except ValueError as error:
        raise BadInput(f"{file}: {error}") from None
    if "time" not in header or not len(rows) or rows.shape[1] != len(header):
        raise BadInput(f"{file}: a motion needs a header with `time` and the joints, and at least one row of as many numbers")
    for joint in twin.joints:
        if joint not in header:
            raise BadInput(f"{file}: {unknown('joint', joint, [h for h in header if h != 'time'])}")
    clock = rows[:, header.index("time")]
    if np.any(np.diff(clock) <= 0) or not np.isfinite(rows).all():
        raise BadInput(f"{file}: time must rise and every number be finite")
    t = t[t <= clock[-1] - clock[0] + twin.control_dt]
    return rows[rows_in_force(clock - clock[0], t + 1e-9)][:, [header.index(j) for j in twin.joints]]
