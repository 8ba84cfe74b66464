"""Wide trained as long: the control, which has all that tuned policies have but for what the robot told."""

from pathlib import Path

from gapless.close.case import Case
from gapless.close.stages import Stages
from gapless.close.technique import Technique
from gapless.close.training import to_tune, trained


def remedy(case: Case, stages: Stages) -> Path:
    return trained(case, stages, "wide_longer", "wide", start=to_tune(case, stages))


TECHNIQUE = Technique("wide_longer", "trains on in the ranges of the field, as long as others are tuned", remedy)
