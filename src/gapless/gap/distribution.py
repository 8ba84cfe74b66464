"""Distances between the states a robot and its twin were in, for motion that cannot be aligned: gaits, other initial states.

In units of how much each signal moves, beside what is usual between two halves of the log itself. Blocks of 2 s are drawn into
two halves: the robot's first half is compared with the twin's second, so that nothing depends on what happened when.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gapless.arrays import Array, Ints
from gapless.measure import random_halves
from gapless.rotations import rotate_back

SPLITS = 8
MOST_STATES = 4000
KERNEL_STATES = 400  # of each side: a kernel's cost is quadratic
SLICES = 64
Motion = tuple[Mapping[str, Array], Ints]
"""What was measured or replayed, by signal (samples, columns), and which samples are of the same stretch (samples,)."""


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

    @property
    def mean(self) -> Distance:
        """Over columns."""
        every = list(self.columns.values()) or [Distance(float("nan"), float("nan"))]
        return Distance(float(np.mean([d.size for d in every])), float(np.mean([d.usual for d in every])))


def states(signals: Mapping[str, Array], columns: Mapping[str, tuple[str, ...]]) -> tuple[list[str], Array]:
    """Positions, velocities, where gravity points and how the base turns: the columns of a state, and one a row.

    So is what the drives are told ("action"), where it is given. Signals may have more axes in front.
    """
    names, parts = [], []
    for signal in ("q", "dq", "action", "quat", "gyro"):
        if signal in signals:
            axes = ("x", "y", "z") if signal == "quat" else columns[signal]
            names += [f"{'gravity' if signal == 'quat' else signal}/{c}" for c in axes]
            parts.append(rotate_back(signals[signal], np.array([0.0, 0.0, -1.0])) if signal == "quat" else signals[signal])
    return names, np.concatenate(parts, axis=-1)


def joined(motions: Sequence[Motion]) -> Motion:
    """Several motions as one, whose blocks are numbered on."""
    firsts = np.cumsum([0, *(int(block.max(initial=-1)) + 1 for _, block in motions)])
    blocks = [first + block for first, (_, block) in zip(firsts, motions, strict=False)]
    return {s: np.concatenate([m[s] for m, _ in motions]) for s in motions[0][0]}, np.concatenate(blocks)


def between(
    ours: Sequence[Motion], theirs: Sequence[Motion], columns: Mapping[str, tuple[str, ...]], rng: np.random.Generator
) -> Distances:
    """Between the states of two collections of motions, whenever they were in them."""
    nothing = Distances({}, Distance(float("nan"), float("nan")), Distance(float("nan"), float("nan")))
    names, one, one_block = _states(ours, columns)
    _, other, other_block = _states(theirs, columns)
    if not len(one) or not len(other):
        return nothing
    scale = one.std(axis=0)
    moving = scale > 1e-9
    one, other = one[:, moving] / scale[moving], other[:, moving] / scale[moving]
    kept = [n for n, m in zip(names, moving, strict=True) if m]
    split = []
    for _ in range(SPLITS):
        first, second = random_halves(one_block, rng)
        far, near = random_halves(other_block, rng)[1], second
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


def _states(motions: Sequence[Motion], columns: Mapping[str, tuple[str, ...]]) -> tuple[list[str], Array, Ints]:
    """The columns of a state, all states that are whole, thinned, and the number of the block that each is of."""
    signals, block = joined(motions)
    names, every = states(signals, columns)
    whole = np.isfinite(every).all(axis=1)
    step = max(1, int(whole.sum()) // MOST_STATES)
    return names, every[whole][::step], block[whole][::step]


def _some(states: Array, rng: np.random.Generator) -> Array:
    return states[rng.permutation(len(states))[:KERNEL_STATES]]


def _width(states: Array, rng: np.random.Generator) -> float:
    """The usual distance of two states: the kernel's width."""
    from scipy.spatial.distance import pdist

    return float(np.median(pdist(_some(states, rng)))) or 1.0
