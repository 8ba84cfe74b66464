"""Load any saved result from its folder."""

import os
from pathlib import Path

from gapless.adapt import Adapted, Believed
from gapless.check import Certificate, CrossCheck, GateVerdict, PolicyCheck, Stress
from gapless.close import Closed, Compared, Moved
from gapless.errors import BadInput
from gapless.explain import Diagnosis
from gapless.gap import Experiment
from gapless.identify import AmortisedFit, Comparison, Fit, WalkingFit
from gapless.learn import CourseResult
from gapless.logs import Inspection
from gapless.measure import Replays
from gapless.report import Result
from gapless.twin import BeliefHistory

OF_LOGS = (Fit, Diagnosis, Experiment, Comparison, WalkingFit, AmortisedFit, Inspection, Replays)
OF_CHECKS = (PolicyCheck, CrossCheck, Stress, GateVerdict, Certificate)
OF_POLICIES = (CourseResult, *OF_CHECKS, Closed, Compared, Moved, BeliefHistory, Adapted, Believed)
KINDS: tuple[type[Result], ...] = OF_LOGS + OF_POLICIES


def load(folder: str | os.PathLike[str]) -> Result:
    """What a fit (walking or not), a comparison, a diagnosis, an experiment, an inspection, replays, a course or a check saved.

    The folder may come from anywhere.
    """
    for kind in KINDS:
        if (Path(folder) / f"{kind.NAME}.json").is_file():
            return kind.load(folder)
    raise BadInput(f"{folder}: no saved result in it, which would be {', '.join(f'{k.NAME}.json' for k in KINDS)}")
