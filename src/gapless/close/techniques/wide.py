"""Wide: a policy trained in the ranges of the field, which needs nothing of the robot."""

from gapless.close.technique import Technique
from gapless.close.training import to_tune

TECHNIQUE = Technique("wide", "trains in the ranges of the field", to_tune)
