"""Explain: which cause of the gap matters: named, shared out, and what to do next.

    from gapless.explain import explain
    found = explain(twin, logs)

Every mechanism of the twin competes, each at the size of a real mismatch while all else may move only within its tolerance.
"""

from gapless.explain.calibrate import noise as noise_of
from gapless.explain.causes import Cause, Explanation, explain
from gapless.explain.page import page as gap_page
from gapless.explain.page import verdict as gap_verdict
from gapless.explain.physics import physics
from gapless.explain.remainder import Remainder
from gapless.explain.shares import shapley
from gapless.explain.terminal import show as show_gap

__all__ = [
    "Cause",
    "Explanation",
    "Remainder",
    "explain",
    "gap_page",
    "gap_verdict",
    "noise_of",
    "physics",
    "shapley",
    "show_gap",
]
