"""Inverse: a planner and an inverse-dynamics head, which is tuned on what the robot does, without reward."""

from pathlib import Path

from gapless.adapt import tune_head
from gapless.close.adapting import prepared
from gapless.close.case import ROBOT_TIME, Case
from gapless.close.stages import Stages
from gapless.close.technique import Technique


def remedy(case: Case, stages: Stages) -> Path:
    return prepared(case, stages, "inverse", tune_head)


SAYS = "trains a planner and a head in the ranges of the field, and tunes the head on what the robot does"
TECHNIQUE = Technique("inverse", SAYS, remedy, robot=ROBOT_TIME)
