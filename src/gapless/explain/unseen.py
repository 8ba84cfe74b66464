"""What a gap's logs cannot show: of each cause the smallest mismatch, its own tolerance and all, that is called a gap."""

import numpy as np

from gapless.explain.bounded_qp import boxed
from gapless.explain.contest import Contest
from gapless.identify import DetectionLimit, detection_limit

SIZES = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)  # scaled units


def unseen(contest: Contest, enough: float) -> list[DetectionLimit]:
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
        left = [0.0]
        for residual in moved:
            change = residual - nominal
            rest = change + contest.slopes @ boxed(contest.information, contest.slopes.T @ change, *contest.box)
            left.append(float(np.sqrt(rest @ rest / len(rest))))
        # what is left grows with the mismatch, roughly; beyond the largest one that is tried, as it did last. It must be enough
        # alone: stick and slip make up to a floor of it, however small the mismatch
        sizes, needed = [0.0, *SIZES], np.sqrt(enough)
        k = next((i for i, size in enumerate(left) if size > needed), len(left) - 1)
        slope = (left[k] - left[k - 1]) / (sizes[k] - sizes[k - 1])
        size = sizes[k] + (needed - left[k]) / slope if slope > 0 else np.inf
        out.append(detection_limit(contest.space.parameters[main[0]], float(size)))
    return out
