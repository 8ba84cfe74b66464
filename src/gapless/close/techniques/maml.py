"""MAML: a policy from which one policy gradient on the robot gets far (Finn et al. 2017)."""

from pathlib import Path

from gapless.adapt import one_step
from gapless.close.adapting import prepared
from gapless.close.case import ROBOT_TIME, Case
from gapless.close.stages import Stages
from gapless.close.technique import Technique


def remedy(case: Case, stages: Stages) -> Path:
    return prepared(case, stages, "maml", one_step)


SAYS = "trains a policy in the ranges of the field from which one policy gradient on the robot gets far"
TECHNIQUE = Technique("maml", SAYS, remedy, robot=ROBOT_TIME)
