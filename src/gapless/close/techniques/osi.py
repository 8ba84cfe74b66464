"""UP-OSI: a universal policy whose parameters are identified while it runs (Yu et al. 2017)."""

from pathlib import Path

from gapless.close.adapting import adapted
from gapless.close.case import Case
from gapless.close.stages import Stages
from gapless.close.technique import Technique


def remedy(case: Case, stages: Stages) -> Path:
    return adapted(case, stages, "osi")


TECHNIQUE = Technique(
    "osi", "trains a policy in the ranges of the field that identifies its robot's parameters from history", remedy
)
