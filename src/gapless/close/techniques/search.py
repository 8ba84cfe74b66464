"""Search: a universal policy whose context is searched by trials on the robot (Yu et al. 2019)."""

from gapless.close.adapting import searched
from gapless.close.case import ROBOT_TIME
from gapless.close.technique import Technique

TECHNIQUE = Technique(
    "search", "tries on the robot what a policy of the field's ranges is best told about it", searched, robot=ROBOT_TIME
)
