"""Load any saved result from its folder."""

import os
from pathlib import Path

from gapless.check import PolicyCheck
from gapless.errors import BadInput
from gapless.explain import Diagnosis
from gapless.gap import Experiment
from gapless.identify import Comparison, Fit, WalkingFit
from gapless.learn import CourseResult
from gapless.logs import Inspection
from gapless.measure import Replays
from gapless.report import Result

KINDS: tuple[type[Result], ...] = (
    Fit,
    Diagnosis,
    Experiment,
    Comparison,
    WalkingFit,
    Inspection,
    Replays,
    CourseResult,
    PolicyCheck,
)


def load(folder: str | os.PathLike[str]) -> Result:
    """What a fit (walking or not), a comparison, a diagnosis, an experiment, an inspection, replays or a course saved.

    The folder may come from anywhere.
    """
    for kind in KINDS:
        if (Path(folder) / f"{kind.NAME}.json").is_file():
            return kind.load(folder)
    raise BadInput(f"{folder}: no saved result in it, which would be {', '.join(f'{k.NAME}.json' for k in KINDS)}")
