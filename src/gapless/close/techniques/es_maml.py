"""ES-MAML: a policy from which a hill climb of few trials on the robot gets far (Song et al. 2020)."""

from pathlib import Path

from gapless.adapt import climb
from gapless.close.adapting import prepared
from gapless.close.case import ROBOT_TIME, Case
from gapless.close.stages import Stages
from gapless.close.technique import Technique


def remedy(case: Case, stages: Stages) -> Path:
    return prepared(case, stages, "es", climb)


SAYS = "trains a policy in the ranges of the field from which a hill climb on the robot gets far"
TECHNIQUE = Technique("es_maml", SAYS, remedy, robot=ROBOT_TIME)
