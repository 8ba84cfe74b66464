"""Identify: the parameters that close the gap, found from logs.

`per_joint/` simulates each joint alone along the measured trajectory, at nanoseconds a step, and chooses its friction and motor
model on a ladder, as long as held-out error falls. `full_model/` then fits what couples. `trust.py` judges the result and
`uncertainty.py` says what the logs leave open; `compare.py` says which numbers moved between two recordings. `walking/` fits a
robot that walks by itself, where nothing can be aligned. `excitation/` designs the motion to record next.
"""

from gapless.identify.amortised import (
    Amortised,
    Calibration,
    calibrate,
    learn_amortised,
    measure as measure_motion,
    posterior_space,
    robots_of,
)
from gapless.identify.amortised_result import AmortisedFit, ask_network
from gapless.identify.compare import Comparison, compare
from gapless.identify.detection_limits import DetectionLimit, detection_limit, hidden, hidden_section
from gapless.identify.excitation.design import WORK, excite
from gapless.identify.excitation.limits import Guard, limits_of
from gapless.identify.excitation.result import Excitation
from gapless.identify.fitting import SCORE_SECONDS, fit_admitted
from gapless.identify.flow import learn_flow
from gapless.identify.from_logs import fit
from gapless.identify.full_model.window_objective import Objective, solve as solve_windows, typical
from gapless.identify.least_squares import DIFFERENCE, colouring, least_squares
from gapless.identify.memory import key_of as fit_key
from gapless.identify.per_joint.inverse_dynamics import trajectory_of
from gapless.identify.per_joint.kernel import gather
from gapless.identify.per_joint.ladder import Rung, gain_of
from gapless.identify.per_joint.problem import problem, settle
from gapless.identify.result import Fit
from gapless.identify.score import Scorer, by_block, scores
from gapless.identify.walking.fitting import fit_walking, walking_distance
from gapless.identify.walking.inference import learn as learn_statistics, quantiles
from gapless.identify.walking.numbers import Numbers
from gapless.identify.walking.result import WalkingFit
from gapless.identify.walking.rollout import Crew
