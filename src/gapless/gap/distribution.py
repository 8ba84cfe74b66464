"""Distances between the states a robot and its twin were in, for motion that cannot be aligned: gaits, other initial states.

In units of how much each signal moves, beside what is usual between two halves of the log itself. Blocks of 2 s are drawn into
two halves: the robot's first half is compared with the twin's second, so that nothing depends on what happened when.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gapless.arrays import Array, Bools, Ints
from gapless.rotations import rotate_back

SPLITS = 8
MOST_STATES = 4000
KERNEL_STATES = 400  # of each side: a kernel's cost is quadratic
SLICES = 64


@dataclass(frozen=True)
class Distance:
    """A distance between robot and twin, and the usual one between two halves of the robot's own log."""

    size: float
    usual: float

    @property
    def ratio(self) -> float:
        """1 for the same distribution."""
        return self.size / self.usual if self.usual > 0 else float("nan")


@dataclass(frozen=True)
class Distances:
    """By column (Wasserstein) and of whole states (sliced Wasserstein, maximum mean discrepancy)."""

    columns: dict[str, Distance]
    """Signal and joint, as in `dq/knee`; in units of how much it moves."""
    sliced: Distance
    mmd: Distance


def distances(
    runs: Sequence[tuple[Mapping[str, Array], Mapping[str, Array], Ints]],
    columns: Mapping[str, tuple[str, ...]],
    rng: np.random.Generator,
) -> Distances:
    """Between what was measured and what the twin did in free runs: both by signal, and the block of each sample."""
    names: list[str] = []
    robot, twin, block = [], [], []
    for measured, replayed, number in runs:
        names, ours = states(measured, columns)
        _, theirs = states(replayed, columns)
        whole = np.isfinite(ours).all(axis=1) & np.isfinite(theirs).all(axis=1)
        robot.append(ours[whole])
        twin.append(theirs[whole])
        block.append(number[whole])
    return between(names, robot, twin, block, block, rng)


def states(signals: Mapping[str, Array], columns: Mapping[str, tuple[str, ...]]) -> tuple[list[str], Array]:
    """Positions, velocities, where gravity points and how the base turns: the columns of a state, and one a row."""
    names, parts = [], []
    for signal in ("q", "dq", "quat", "gyro"):
        if signal in signals:
            axes = ("x", "y", "z") if signal == "quat" else columns[signal]
            names += [f"{'gravity' if signal == 'quat' else signal}/{c}" for c in axes]
            parts.append(rotate_back(signals[signal], np.array([0.0, 0.0, -1.0])) if signal == "quat" else signals[signal])
    return names, np.concatenate(parts, axis=1)


def between(
    names: Sequence[str],
    ours: Sequence[Array],
    theirs: Sequence[Array],
    our_blocks: Sequence[Ints],
    their_blocks: Sequence[Ints],
    rng: np.random.Generator,
) -> Distances:
    """Between two collections of states; blocks tell which states are of the same stretch of motion.

    Shape of each of `ours` and `theirs`: (states, columns); of each of the blocks: (states,).
    """
    nothing = Distances({}, Distance(float("nan"), float("nan")), Distance(float("nan"), float("nan")))
    one, one_block = _joined(ours, our_blocks)
    other, other_block = _joined(theirs, their_blocks)
    if not len(one) or not len(other):
        return nothing
    scale = one.std(axis=0)
    moving = scale > 1e-9
    one, other = one[:, moving] / scale[moving], other[:, moving] / scale[moving]
    kept = [n for n, m in zip(names, moving, strict=True) if m]
    split = []
    for _ in range(SPLITS):
        first, second = _halves(one_block, rng)
        far, near = _halves(other_block, rng)[1], second
        split.append((one[first], other[far], one[near]))
    if not kept or any(not len(part) for parts in split for part in parts):
        return nothing
    slices = rng.standard_normal((len(kept), SLICES))
    slices /= np.linalg.norm(slices, axis=0)
    width = _width(one, rng)

    def typical(distance: Callable[[Array, Array], Array]) -> tuple[Array, Array]:
        """Median over the splits: to the other, and to the own other half."""
        return (
            np.median([distance(a, b) for a, b, _ in split], axis=0),
            np.median([distance(a, c) for a, _, c in split], axis=0),
        )

    by_column = typical(wasserstein)
    sliced = typical(lambda a, b: wasserstein(a @ slices, b @ slices).mean())
    mmd = typical(lambda a, b: np.asarray(discrepancy(_some(a, rng), _some(b, rng), width)))
    return Distances(
        {n: Distance(float(d), float(u)) for n, d, u in zip(kept, *by_column, strict=True)},
        Distance(float(sliced[0]), float(sliced[1])),
        Distance(float(mmd[0]), float(mmd[1])),
    )


def wasserstein(a: Array, b: Array) -> Array:
    """Wasserstein-1 distance of each column: the area between the two distribution functions. Shape: (columns,)."""
    from scipy.stats import wasserstein_distance

    return np.array([wasserstein_distance(x, y) for x, y in zip(a.T, b.T, strict=True)])


def discrepancy(a: Array, b: Array, width: float) -> float:
    """Maximum mean discrepancy with a Gaussian kernel (Gretton et al. 2012, eq. 5: biased, so only for sets of one size)."""
    from scipy.spatial.distance import cdist

    def kernel(x: Array, y: Array) -> float:
        return float(np.exp(-cdist(x, y, "sqeuclidean") / (2 * width**2)).mean())

    return float(np.sqrt(max(kernel(a, a) + kernel(b, b) - 2 * kernel(a, b), 0.0)))


def _joined(parts: Sequence[Array], blocks: Sequence[Ints]) -> tuple[Array, Ints]:
    """All states, thinned, and the number of the block that each is of, over all logs."""
    first = np.cumsum([0] + [int(b.max()) + 1 if len(b) else 0 for b in blocks])
    states, numbers = np.concatenate(parts), np.concatenate([b + f for b, f in zip(blocks, first[:-1], strict=True)])
    every = max(1, len(states) // MOST_STATES)
    return states[::every], numbers[::every]


def _halves(block: Ints, rng: np.random.Generator) -> tuple[Bools, Bools]:
    """States of a random half of the blocks, and of the others."""
    every = rng.permutation(np.unique(block))
    first = np.isin(block, every[: len(every) // 2])
    return first, ~first


def _some(states: Array, rng: np.random.Generator) -> Array:
    return states[rng.permutation(len(states))[:KERNEL_STATES]]


def _width(states: Array, rng: np.random.Generator) -> float:
    """The usual distance of two states: the kernel's width."""
    from scipy.spatial.distance import pdist

    return float(np.median(pdist(_some(states, rng)))) or 1.0
