"""What a gap's logs cannot show: of each cause the smallest mismatch that would have been called a gap."""

import numpy as np

from gapless.explain.bounded_qp import boxed
from gapless.explain.contest import Contest
from gapless.identify import Limit, limit

SIZES = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)  # scaled units


def unseen(contest: Contest, enough: float) -> list[Limit]:
    """Each cause put into the model as given at several sizes, and what numbers within their tolerances leave of it.

    Args:
        contest: with slopes at the model as given.
        enough: mean square in units of the floor above which there is a gap.
    """
    out = []
    zero = np.zeros(len(contest.space))
    for cause, numbers in contest.causes.items():
        quantity = contest.space.parameters[numbers[0]].quantity
        main = [i for i in numbers if contest.space.parameters[i].quantity == quantity]
        sign = 1.0 if contest.reach[1][main].min() > SIZES[0] else -1.0
        tried = [zero] + [zero + sign * size * np.isin(np.arange(len(zero)), main) for size in SIZES]
        nominal, *moved = (f.residual for f in contest.replayed([((cause,), np.clip(x, *contest.reach)) for x in tried]))
        low, high = contest.box.copy()
        low[numbers] = high[numbers] = 0.0
        left = []
        for residual in moved:
            change = residual - nominal
            rest = change + contest.slopes @ boxed(contest.information, contest.slopes.T @ change, low, high)
            left.append(float(rest @ rest) / len(rest))
        # what is left grows with the square of the mismatch: as long as no size tried is enough, from the largest one on
        k = next((i for i, size in enumerate(left) if size > enough - 1), len(left) - 1)
        size = SIZES[k] * np.sqrt((enough - 1) / left[k]) if left[k] > 0 else np.inf
        out.append(limit(contest.space.parameters[main[0]], float(size)))
    return out
