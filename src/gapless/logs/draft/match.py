"""The joints of a file and those of a model: matched by name, by order, or by which command explains which motion."""

import difflib
from collections.abc import Sequence

import numpy as np

from gapless.arrays import Array
from gapless.logs.draft.words import PARTS, tokens

SIDES = {"l": "left", "r": "right"}
ALIKE = 0.75
"""How alike two names must be to be one, from 0 to 1."""
LATE, LAGS, SAMPLES = 0.5, 25, 2000
"""s that a motion may come after its command; how many delays are tried, on how many samples."""
UNITREE_LEGS = ("fr", "fl", "rr", "rl")
"""The order of legs in Unitree's motors, each hip, thigh, calf."""


def by_name(names: Sequence[str], joints: Sequence[str]) -> dict[str, str]:
    """File's name to model's joint, for those that are found."""
    out: dict[str, str] = {}
    keys = {joint: _key(joint) for joint in joints}
    for same in (lambda n, j: n == j, lambda n, j: _key(n) == keys[j], lambda n, j: set(_key(n)) == set(keys[j])):
        for name in (n for n in names if n not in out):
            hits = [j for j in joints if j not in out.values() and same(name, j)]
            if len(hits) == 1:
                out[name] = hits[0]
    words = {n: set(_key(n)) for n in names}
    shared = set.intersection(*words.values()) if len(names) > 1 else set()
    for name in (n for n in names if n not in out):  # a robot's name before those of all joints
        hits = [j for j in joints if j not in out.values() and words[name] - shared == set(keys[j]) - shared]
        if len(hits) == 1:
            out[name] = hits[0]
    for name in (n for n in names if n not in out):
        free = [j for j in joints if j not in out.values()]
        near = difflib.get_close_matches(" ".join(_key(name)), [" ".join(keys[j]) for j in free], n=2, cutoff=ALIKE)
        if len(near) == 1:
            out[name] = next(j for j in free if " ".join(keys[j]) == near[0])
    return out | _numbered(names, joints, out)


def _numbered(names: Sequence[str], joints: Sequence[str], known: dict[str, str]) -> dict[str, str]:
    """Names such as FR_0, FR_1, FR_2: the joints of the model with that word, in its order."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for name in (n for n in names if n not in known):
        words = _key(name)
        if len(words) > 1 and words[-1].isdigit():
            groups.setdefault(words[:-1], []).append(name)
    out: dict[str, str] = {}
    for words, members in groups.items():
        hits = [j for j in joints if set(words) <= set(_key(j)) and j not in known.values()]
        if len(hits) == len(members):
            out |= dict(zip(sorted(members, key=lambda n: int(_key(n)[-1])), hits, strict=True))
    return out


def _key(name: str) -> tuple[str, ...]:
    """The words of a name that tell joints apart."""
    words = [SIDES.get(word, word) for word, _, _ in tokens(name)]
    return tuple(w for w in words if w not in PARTS) or tuple(words)


def by_order(names: Sequence[str], joints: Sequence[str], unitree: bool) -> dict[str, str]:
    """Numbered names to joints in the order of the model, or of Unitree's motors where it has such legs; else none."""
    if not all(any(word.isdigit() for word, _, _ in tokens(n)) and len(_key(n)) == 1 for n in names):
        return {}
    legs = [[j for j in joints if leg in _key(j)] for leg in UNITREE_LEGS]
    if unitree and all(len(leg) == 3 for leg in legs) and len(joints) == 12:
        joints = [j for leg in legs for j in leg]
    if len(names) < len(joints):
        return {}
    ordered = sorted(names, key=lambda n: int(next(w for w, _, _ in reversed(tokens(n)) if w.isdigit())))
    return dict(zip(ordered, joints, strict=False))


def explained(command: Array, motion: Array, rate: float) -> Array:
    """How well each command explains each motion: the best correlation with what was told some time before.

    command: (samples, commands); motion: (samples, joints) at the same times; rate: [Hz]. Shape: (commands, joints).
    """
    stretch = max(1, len(command) // SAMPLES)
    best = np.zeros((command.shape[1], motion.shape[1]))
    for lag in np.unique(np.linspace(0, LATE * rate, LAGS).astype(int)):
        u, q = command[: len(command) - lag : stretch], motion[lag::stretch]
        n = min(len(u), len(q))
        if n < 20:
            break
        u, q = (np.nan_to_num((x[:n] - np.nanmean(x[:n], axis=0)) / (np.nanstd(x[:n], axis=0) + 1e-12)) for x in (u, q))
        best = np.maximum(best, np.abs(u.T @ q) / n)
    return best


def by_motion(command: Array, motion: Array, rate: float) -> tuple[list[int], float]:
    """For each command the motion that it explains best, each once; and the least correlation among them."""
    from scipy.optimize import linear_sum_assignment

    alike = explained(command, motion, rate)
    rows, columns = linear_sum_assignment(-(alike**2))
    return columns.tolist(), float(alike[rows, columns].min(initial=1.0))
