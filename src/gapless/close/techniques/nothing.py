"""Nothing: the policy stays as it is."""

from gapless.close.technique import Technique
from gapless.close.training import on_robot

TECHNIQUE = Technique("nothing", "leaves the policy as it is", on_robot)
