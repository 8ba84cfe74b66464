"""RMA: a code of the world, estimated from history while it runs (Kumar et al. 2021)."""

from pathlib import Path

from gapless.close.adapting import adapted
from gapless.close.case import Case
from gapless.close.stages import Stages
from gapless.close.technique import Technique


def remedy(case: Case, stages: Stages) -> Path:
    return adapted(case, stages, "rma")


TECHNIQUE = Technique(
    "rma", "trains a policy in the ranges of the field that estimates a code of its robot from history", remedy
)
