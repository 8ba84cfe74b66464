"""Search: which z suits one robot, by trials on it whose time is counted; what all searches share.

result = search(trials, Evolution(trials.size, rng), budget=50)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gapless.arrays import Array
from gapless.errors import BadInput

GIVE_UP = 10
"""Trials that all fall, after which a search stops: the next would fall as well, and falls break robots."""
MOST = 10_000
"""Trials."""


@dataclass(frozen=True)
class Trial:
    """One episode on the robot with one z."""

    z: Array
    reward: float
    """Per second of a whole episode; a robot that fell earns nothing more."""
    fell: bool
    seconds: float
    """Of robot time."""


class Searcher(Protocol):
    """Asks for trials and is told what came of them."""

    def ask(self, left: int) -> Array:
        """What to try next, at most this many; none where that is too few. Shape: (k, size)."""
        ...

    def tell(self, trials: list[Trial]) -> None: ...

    def best(self) -> Array:
        """What it takes for the best. Shape: (size,)."""
        ...


Robot = Callable[[Array], list[Trial]]
"""From (k, size) to as many trials."""


@dataclass(frozen=True)
class Found:
    """What a search came to."""

    z: Array
    trials: list[Trial]
    stopped: str
    """Why it ended before its budget; empty where it did not."""


def search(
    robot: Robot, searcher: Searcher, size: int, budget: int, tell: Callable[[list[Trial]], None] = lambda trials: None
) -> Found:
    """Search for the z that suits a robot. The first trial is of z = 0, the middle of what training knew.

    Args:
        robot: runs trials.
        searcher: what to try next.
        size: numbers of z.
        budget: trials in all.
        tell: told all trials so far, after each batch.
    """
    if not 1 <= budget <= MOST:
        raise BadInput(f"a search needs a budget of 1 to {MOST} trials on the robot, not {budget}")
    trials = robot(np.zeros((1, size)))
    searcher.tell(trials)
    tell(trials)
    while len(trials) < budget:
        if len(trials) >= GIVE_UP and all(t.fell for t in trials):
            return Found(max(trials, key=lambda t: t.reward).z, trials, f"all of the first {len(trials)} trials fell")
        wanted = searcher.ask(budget - len(trials))
        if not len(wanted):
            break
        done = robot(wanted)
        searcher.tell(done)
        trials = [*trials, *done]
        tell(trials)
    if all(t.fell for t in trials):
        return Found(max(trials, key=lambda t: t.reward).z, trials, f"all {len(trials)} trials fell")
    return Found(np.clip(searcher.best(), -1.0, 1.0), trials, "")
