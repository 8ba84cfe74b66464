"""Identify: the parameters that close the gap, found from logs.

Each joint is simulated alone along the measured trajectory (`along.py`, `joint.py`), which costs nanoseconds a step; its model
climbs a ladder as long as held-out error falls (`ladder.py`). The full model has what couples (`coupled.py`, `surroundings.py`)
and judges the result (`score.py`, `trust.py`, `unknown.py`). `excite.py` designs the motion to record next.
"""

from gapless.identify.admission import admit
from gapless.identify.excitation.design import WORK, Excitation, excite
from gapless.identify.excitation.limits import Guard, limits_of
from gapless.identify.fitting import Fit, fit
from gapless.identify.full_model.window_objective import Objective, typical, windows
from gapless.identify.full_model.window_objective import solve as solve_windows
from gapless.identify.least_squares import DIFFERENCE, colouring, least_squares
from gapless.identify.memory import Memory, key_of
from gapless.identify.page import page as fit_page
from gapless.identify.page import verdict as fit_verdict
from gapless.identify.per_joint.inverse_dynamics import course
from gapless.identify.per_joint.kernel import gather
from gapless.identify.per_joint.ladder import RUNGS
from gapless.identify.per_joint.problem import problem, settle
from gapless.identify.posteriors import particles, posterior
from gapless.identify.score import Trace
from gapless.identify.temperature import growth

__all__ = [
    "DIFFERENCE",
    "RUNGS",
    "WORK",
    "Excitation",
    "Fit",
    "Guard",
    "Memory",
    "Objective",
    "Trace",
    "admit",
    "colouring",
    "course",
    "excite",
    "fit",
    "fit_page",
    "fit_verdict",
    "gather",
    "growth",
    "key_of",
    "least_squares",
    "limits_of",
    "particles",
    "posterior",
    "problem",
    "settle",
    "solve_windows",
    "typical",
    "windows",
]
