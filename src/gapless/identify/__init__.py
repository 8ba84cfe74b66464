"""Identify: the parameters that close the gap, found from logs.

Each joint is simulated alone along the measured trajectory (`along.py`, `joint.py`), which costs nanoseconds a step; its model
climbs a ladder as long as held-out error falls (`ladder.py`). The full model has what couples (`coupled.py`, `surroundings.py`)
and judges the result (`score.py`, `trust.py`, `unknown.py`). `excite.py` designs the motion to record next.
"""

from gapless.identify.fit import Fit, fit

__all__ = ["Fit", "fit"]
