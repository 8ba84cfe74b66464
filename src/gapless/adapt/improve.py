"""Improve: a learner's iterations, of whose policies the best on unseen robots is kept."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gapless.learn import Deterministic, Learner, Progress


def improve(
    learner: Learner,
    judged: Callable[[Deterministic], tuple[float, Callable[[], None]]],
    tell: Callable[[Progress, float], None],
) -> None:
    """Learn to the end, comparing the policy at the start, at each checkpoint and at last.

    Args:
        learner: at its start.
        judged: reward per second of a policy on unseen robots, and how it is saved.
        tell: told each iteration's progress and the best reward so far.
    """
    settings, best = learner.settings, -np.inf
    while True:
        if learner.iteration % settings.every == 0 or learner.iteration == settings.iterations:
            score, save = judged(learner.deterministic())
            if score > best:
                best = score
                save()
        if learner.iteration == settings.iterations:
            return
        tell(learner.iterate(), best)
