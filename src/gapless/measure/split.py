"""Blocks of logs, the half that each is in, and stretches spread over them: what "held out" and "seconds used" mean.

split = split_logs(logs, twin.joints)
split.first, ~split.first                     # either half, over the blocks of all logs
split.numbers(0, since)                       # the block that each sample of the first log is in
split.spread(split.logs, 60.0)                # whole logs, or pieces of 4 s evenly spread over them that last a minute
random_halves(block, rng)                     # another two halves at each call, for distances between distributions
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gapless.arrays import Array, Bools, Ints
from gapless.logs import SHORTEST, Log

BLOCK = SHORTEST / 2  # s: errors closer in time are not independent of each other
MEASURED = 0.1  # share of its length, and of its samples, that a block must have
PIECE = 2  # blocks of a stretch of a log that is too long to be used whole: one of either half


@dataclass(frozen=True)
class Stretch:
    """Blocks of one log that follow each other; predictions of it start anew from its first sample."""

    log: int
    first: int
    """Number of its first block, over all logs."""
    end: int
    """Number of the block after its last."""


@dataclass(frozen=True)
class Split:
    """The blocks of several logs, numbered log after log."""

    begin: Ints
    """Number of each log's first block, and the number of all blocks. Shape: (logs + 1,)."""
    length: Array
    """Of each block [s]. Shape of this and the next two: (blocks,)."""
    measured: Bools
    """Whether positions were measured in it."""
    first: Bools
    """Whether it is of the first half; all others are the second."""

    def __len__(self) -> int:
        return int(self.begin[-1])

    @property
    def logs(self) -> list[Stretch]:
        """Each log from its first block to its last."""
        return [Stretch(i, int(a), int(b)) for i, (a, b) in enumerate(zip(self.begin[:-1], self.begin[1:], strict=True))]

    def numbers(self, log: int, since: Array) -> Ints:
        """The block of each time since a log's first position [s]. Shape: that of `since`."""
        return np.clip(self.begin[log] + blocks_at(since), self.begin[log], self.begin[log + 1] - 1)

    def held_out(self, block: Ints, by_first: Array, by_second: Array) -> Array:
        """What fits to the first and to the second half say of blocks or samples: of each, what the fit that lacks it says.

        block: the number of each one's block. Shape: (n,); of the others and of what is returned: (n, ...).
        """
        return np.where(self.first[block].reshape(-1, *[1] * (by_first.ndim - 1)), by_second, by_first)

    def place(self, block: int) -> tuple[int, float]:
        """The log of a block, and when it begins there [s]."""
        log = int(np.searchsorted(self.begin, block, side="right")) - 1
        return log, float(BLOCK * (block - self.begin[log]))

    def blocks(self, stretches: Sequence[Stretch]) -> Bools:
        """Which blocks some stretches have. Shape: (blocks,)."""
        out = np.zeros(len(self), dtype=bool)
        for s in stretches:
            out[s.first : s.end] = True
        return out

    def seconds(self, stretches: Sequence[Stretch]) -> float:
        """How long some stretches last [s]."""
        return float(self.length[self.blocks(stretches)].sum())

    def spread(self, stretches: Sequence[Stretch], seconds: float) -> list[Stretch]:
        """All stretches where they last no longer than this; else measured pieces of them, evenly spread."""
        if self.seconds(stretches) <= seconds + 1e-6:
            return list(stretches)
        pieces = [Stretch(s.log, a, min(a + PIECE, s.end)) for s in stretches for a in range(s.first, s.end, PIECE)]
        pieces = [p for p in pieces if self.measured[p.first : p.end].any()]
        return [pieces[i] for i in evenly(len(pieces), max(1, round(seconds / (PIECE * BLOCK))))]


def blocks_at(since: Array) -> Ints:
    """The number of the block at each time since the start of one log [s]."""
    return ((np.asarray(since) + 1e-9) / BLOCK).astype(np.int64)


def split_logs(logs: Sequence[Log], joints: Sequence[str]) -> Split:
    """Cut logs into blocks, of which every other measured one is of the first half, whatever the number of logs.

    A short rest at a log's end belongs to the block before.
    """
    measured, length = [], []
    for log in logs:
        since = log["q"].time - log["q"].time[0]
        whole = np.isfinite(log["q"].of(joints)).all(axis=1)
        count = max(1, int(np.ceil(since[-1] / BLOCK - MEASURED)))
        number = np.minimum(blocks_at(since), count - 1)
        measured.append(np.bincount(number, weights=whole, minlength=count) > MEASURED * BLOCK * log.rate("q"))
        length.append(np.diff([*(BLOCK * np.arange(count)), since[-1]]))
    begin = np.cumsum([0, *map(len, measured)])
    flat = np.concatenate(measured)
    return Split(begin, np.concatenate(length), flat, first_half(flat))


def first_half(measured: Bools) -> Bools:
    """The first half of blocks that follow each other: every other measured one. Shapes: (blocks,)."""
    return np.asarray(np.cumsum(measured) % 2 == 1)


def random_halves(block: Ints, rng: np.random.Generator) -> tuple[Bools, Bools]:
    """Samples of a random half of their blocks, and of the others: for distances that need many splits. Shapes: (samples,)."""
    every = rng.permutation(np.unique(block))
    first = np.isin(block, every[: len(every) // 2])
    return first, ~first


def evenly(count: int, most: int) -> list[int]:
    """At most so many of `count` places, evenly spread; all if `most` is 0."""
    few = min(count, most) if most else count
    return np.linspace(0, count - 1, few).round().astype(int).tolist() if few != 1 else [count // 2]
