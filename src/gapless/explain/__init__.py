"""Explain: which cause of the gap matters: named, shared out, and what to do next.

    from gapless.explain import explain
    found = explain(twin, logs)

Every mechanism of the twin competes, each at the size of a real mismatch while all else may move only within its tolerance.
"""

from gapless.explain.explain import Cause, Explanation, explain
from gapless.explain.remainder import Remainder

__all__ = ["Cause", "Explanation", "Remainder", "explain"]
