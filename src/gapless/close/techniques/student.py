"""Student: learns from a teacher that is told its world (Lee et al. 2020)."""

from pathlib import Path

from gapless.close.adapting import adapted
from gapless.close.case import Case
from gapless.close.stages import Stages
from gapless.close.technique import Technique


def remedy(case: Case, stages: Stages) -> Path:
    return adapted(case, stages, "student")


TECHNIQUE = Technique(
    "student", "trains a policy in the ranges of the field that learns from one that is told its robot", remedy
)
