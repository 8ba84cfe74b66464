"""What may have changed on a robot whose numbers moved between two recordings: suspicions in words, not certainties."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import mujoco
import numpy as np

from gapless.arrays import Array
from gapless.identify.result import NINETY, Fit
from gapless.report import few
from gapless.robots import limbs_of
from gapless.twin import Twin, quantities

if TYPE_CHECKING:
    from gapless.identify.compare import Change

ZERO = "offset.encoder"
SMALL = 0.02  # a common factor this near to 1 is no news
RARE = 0.01  # probability of calling something changed that has not
MOST = 0.5  # share of the numbers from which everything counts as moved
WORSE = 2.0  # times the other fit's held-out error
NEWS = 0.002  # rad: encoder zeros closer than this are no news, as in `twin.mechanisms.offset`
TURNED = 0.02  # rad
ALIKE = 0.5  # how far turns of one mount may differ, as a share of the largest
TINY = 1e-6  # of a direction that others have used up
PARALLEL = 0.9  # cosine between axes

Changes = Mapping[str, "Change"]


@dataclass(frozen=True)
class Shift:
    """A change that explains differences between two fits."""

    names: tuple[str, ...]
    """The numbers that it moves."""
    places: tuple[str, ...]
    quantity: str
    """Their quantity; empty for everything with torque in its unit."""
    common: bool
    """Whether it is a factor that several joints have in common."""
    size: float
    """The logarithm of that factor; else B less A, in the unit of the quantity."""


def explain(changes: Changes, apart: Array, covariance: Array, growth: Array) -> list[Shift]:
    """The fewest changes that explain all differences at once: of single numbers, or common factors of several.

    Fits know combinations of numbers better than each alone, so what moved is told from the whole covariance.

    Args:
        changes: numbers in both fits.
        apart: B less A, scaled. Shape: (numbers,).
        covariance: of that.
        growth: what each changes by where B is e times A, scaled. Shape: (numbers,).
    """
    names, rows, n = list(changes), list(changes.values()), len(changes)
    kinds = [g for g in _grouped(c.quantity for c in rows) if rows[g[0]].quantity != ZERO]
    weighs = [i for i, c in enumerate(rows) if any(u in c.unit for u in ("N", "kg")) and not c.unit.startswith("1/")]
    torques = [weighs] if len({rows[i].quantity for i in weighs}) > 1 else []
    groups = [[i] for i in range(n)] + [g for g in kinds if len(g) > 1 and all(rows[i].ratio > 0 for i in g)] + torques
    columns = np.zeros((n, len(groups)))
    for column, group in zip(columns.T, groups, strict=True):
        column[group] = growth[group] if len(group) > 1 else 1.0
    root = np.linalg.cholesky(covariance)
    chosen, sizes = _fewest(np.linalg.solve(root, columns), np.linalg.solve(root, apart))
    return [_shift([names[i] for i in groups[c]], changes, float(size)) for c, size in zip(chosen, sizes, strict=True)]


def _fewest(slopes: Array, whole: Array) -> tuple[list[int], Array]:
    """Columns that explain a vector up to standard normal errors, and their sizes.

    One after another is added, always the one that explains most; then those go that the others have made needless.
    """
    free, left, chosen = slopes.copy(), whole, list[int]()
    while len(chosen) < len(whole):
        length = np.maximum(np.linalg.norm(free, axis=0), TINY)
        gain = np.where(length > TINY, free.T @ left / length, 0.0)
        best = int(np.abs(gain).argmax())
        if slopes.shape[1] * probability(float(gain[best])) > RARE:
            break
        chosen.append(best)
        direction = free[:, best] / length[best]
        left, free = left - gain[best] * direction, free - np.outer(direction, direction @ free)
    while True:
        inverse = np.linalg.inv(slopes[:, chosen].T @ slopes[:, chosen])
        sizes = inverse @ (slopes[:, chosen].T @ whole)
        far = np.abs(sizes) / np.sqrt(np.diag(inverse))
        if not chosen or slopes.shape[1] * probability(float(far.min())) < RARE:
            return chosen, sizes
        del chosen[int(far.argmin())]


def _shift(names: Sequence[str], changes: Changes, factor: float) -> Shift:
    """A change of some numbers. factor: that several have in common, as a logarithm."""
    rows = [changes[name] for name in names]
    quantity = rows[0].quantity if len({c.quantity for c in rows}) == 1 else ""
    places = tuple(place for c in rows for place in c.places)
    common = len(rows) > 1 or (len(places) > 1 and rows[0].ratio > 0 and quantity != ZERO)
    if len(rows) == 1:
        factor = math.log(rows[0].ratio) if common else rows[0].b.value - rows[0].a.value
    return Shift(tuple(names), places, quantity, common, factor)


def meaning(shifts: Sequence[Shift], changes: Changes, fit: Fit) -> list[str]:
    """What may have changed, in sentences; the encoders' zeros are `mount`'s to explain."""
    single = {s.names[0]: changes[s.names[0]] for s in shifts if not s.common}
    kinds = _by_quantity(single)
    if len(single) > MOST * len(changes) and len(kinds) > max(1, MOST * len(_by_quantity(changes))):
        return [
            f"{len(single)} of {len(changes)} numbers changed, of {len(kinds)} kinds and by no common factor: they seem to "
            "depend on the motion, so the model probably lacks a structure (play, elasticity, friction that depends on load or "
            "speed, a torque limit); look at the left-over error of both fits, and fit both recordings together"
        ]
    out = [_common(s) for s in shifts if s.common and abs(s.size) > SMALL]
    place = [] if out else _one_place(single, changes, fit.twin)
    out += place
    for quantity, names in _by_quantity({n: c for n, c in single.items() if not (place and c.places)}).items():
        first = single[names[0]]
        if quantity != ZERO:
            values = f"{first.a.value:.3g} to {first.b.value:.3g} {first.unit}".rstrip()
            out.append(f"{few(names)} moved ({values}): {_perhaps(quantity)}")
    return out


def _perhaps(quantity: str) -> str:
    why = quantities.of(quantity).changes
    return f"perhaps {why}" if why else "no usual reason for that is known"


def _common(shift: Shift) -> str:
    """A common factor, in a sentence."""
    factor = f"{math.exp(shift.size):.2f} times as large in B"
    if shift.quantity:
        return f"{shift.quantity} is {factor} on {few(shift.places)}: {_perhaps(shift.quantity)}"
    like = "lighter or its drives stronger" if shift.size > 0 else "heavier or its drives weaker"
    return (
        f"what has torque in its unit is {factor}, as if the robot had become {like}: perhaps a payload, the supply voltage, "
        "the temperature or a unit changed"
    )


def probability(difference: float) -> float:
    """Of a difference as large as this, in joint standard deviations, by chance."""
    return math.erfc(abs(difference) / math.sqrt(2))


def mount(found: Sequence[Shift], a: Fit, b: Fit, zeros: Mapping[str, tuple[Array, Array]]) -> list[str]:
    """Encoder zeros that moved, a mount that tilted, and a recording that leaves more unexplained.

    A fit keeps no interval for the zeros of single logs: their scatter between logs stands for it.

    Args:
        found: what has changed.
        a: one fit.
        b: the other.
        zeros: joint to its encoder's zero in every log of A and of B, where logs have zeros of their own [rad].
    """
    shifts = {place: s.size for s in found if s.quantity == ZERO for place in s.places}
    for joint, (x, y) in zeros.items():
        scatter = math.hypot(*(float(z.std(ddof=1)) / math.sqrt(len(z)) for z in (x, y) if len(z) > 1))
        if abs(y.mean() - x.mean()) > NEWS + NINETY * scatter:
            shifts[joint] = float(y.mean() - x.mean())
    out = []
    if shifts:
        furthest = max(shifts, key=lambda joint: abs(shifts[joint]))
        text = f"the encoder's zero of {few(shifts)} moved, by {math.degrees(shifts[furthest]):.2g} deg on {furthest}"
        reason = f"perhaps {quantities.of(ZERO).changes}"
        if _tilted(b, shifts, furthest):
            reason = "that is how a mount looks which was tilted or moved between the recordings; or " + reason[8:]
        out.append(f"{text}: {reason}")
    for name, fit, column in (("A", a, 0), ("B", b, 1)):
        spans = {joint: float(np.ptp(both[column])) for joint, both in zeros.items()}
        worst = max(spans, key=lambda joint: spans[joint], default="")
        if spans and spans[worst] > TURNED and len(fit.zeros) > 1:
            out.append(
                f"within {name} the zero of {worst} differs by {math.degrees(spans[worst]):.2g} deg between its logs: perhaps "
                "the mount moves while it records, or the robot was homed in between"
            )
    errors = {"A": a.heldout.fit, "B": b.heldout.fit}
    best, worst = sorted(errors, key=lambda name: errors[name])
    if errors[worst] > WORSE * errors[best]:
        out.append(
            f"{worst} leaves {errors[worst] / errors[best]:.1f} times the held-out error of {best} "
            f"({math.degrees(errors[worst]):.2g} against {math.degrees(errors[best]):.2g} deg): if its motion is not larger, "
            "perhaps its mount gave way, or it shows something that the model lacks"
        )
    return out


def _one_place(left: Changes, determined: Changes, twin: Twin) -> list[str]:
    """Whether all that moved of joints is of one joint or of one limb, though the recordings determine others as well."""
    moved, every = ({place for c in changes.values() for place in c.places} for changes in (left, determined))
    limbs = limbs_of(twin.model)
    kinds = ", ".join(_by_quantity({n: c for n, c in left.items() if c.places}))
    if len(moved) == 1 < len(every):
        return [f"of all joints only {min(moved)} moved ({kinds}): look at it, for something loose, worn, warm or in its way"]
    if moved and all(place in limbs for place in every):
        ours, all_of_them = ({limbs[place] for place in places} for places in (moved, every))
        if len(ours) == 1 < len(all_of_them):
            return [
                f"only one limb moved ({few(sorted(moved))}; {kinds}): look at it, for something loose, carried or in its way"
            ]
    return []


def _grouped(keys: Iterable[str]) -> list[list[int]]:
    """The places of equal keys."""
    out: dict[str, list[int]] = {}
    for i, key in enumerate(keys):
        out.setdefault(key, []).append(i)
    return list(out.values())


def _tilted(fit: Fit, shifts: Mapping[str, float], furthest: str) -> bool:
    """Whether zeros moved as a tilt of the base would move them.

    That is about a level axis, by the same angle in every limb, and only at its first joint with such an axis.
    """
    model = fit.twin.model
    limbs, data = limbs_of(model), mujoco.MjData(model)
    for drive in fit.twin.drives:
        data.qpos[drive.qpos] = fit.pose[drive.name]
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    axes = {drive.name: data.xaxis[drive.joint] for drive in fit.twin.drives}
    down, axis = model.opt.gravity / max(float(np.linalg.norm(model.opt.gravity)), 1e-9), axes[furthest]
    first: dict[int, str] = {}
    for joint in sorted(axes, key=lambda j: _depth(model, j)):
        if abs(axes[joint] @ axis) > PARALLEL:
            first.setdefault(limbs[joint], joint)
    turns = [shifts[j] * math.copysign(1.0, float(axes[j] @ axis)) for j in first.values() if j in shifts]
    level = abs(float(down @ axis)) < 1 - ALIKE
    return level and set(first.values()) == set(shifts) and bool(np.ptp(turns) <= ALIKE * abs(shifts[furthest]))


def _depth(model: mujoco.MjModel, joint: str) -> int:
    """How many bodies lie between a joint and the ground."""
    body, depth = int(model.joint(joint).bodyid[0]), 0
    while body:
        body, depth = int(model.body_parentid[body]), depth + 1
    return depth


def _by_quantity(changes: Changes) -> dict[str, list[str]]:
    """Quantity to the names of its numbers."""
    out: dict[str, list[str]] = {}
    for name, change in changes.items():
        out.setdefault(change.quantity, []).append(name)
    return out
