"""NoRML: a policy that takes one step on the robot without reward (Yang et al. 2019)."""

from pathlib import Path

from gapless.adapt import one_step
from gapless.close.adapting import prepared
from gapless.close.case import ROBOT_TIME, Case
from gapless.close.stages import Stages
from gapless.close.technique import Technique


def remedy(case: Case, stages: Stages) -> Path:
    return prepared(case, stages, "norml", one_step)


SAYS = "trains a policy in the ranges of the field that takes one step on the robot without its reward"
TECHNIQUE = Technique("norml", SAYS, remedy, robot=ROBOT_TIME)
