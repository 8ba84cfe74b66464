"""Identify: the parameters that close the gap, found from logs.

Each joint is simulated alone along the measured trajectory (`along.py`, `joint.py`), which costs nanoseconds a step; the
friction model climbs a ladder as long as held-out error falls (`ladder.py`); the full model judges the result (`score.py`).
"""

from gapless.identify.fit import Fit, fit

__all__ = ["Fit", "fit"]
