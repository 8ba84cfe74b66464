"""Robots: five built-in models, loading of any other, and the protocol that every live robot follows.

`load("quadruped")`, `load("my_robot.urdf")` or `load("menagerie:unitree_go2")` gives a `RobotModel`: a MuJoCo model,
its driven joints, base, feet, mass and control period by name, and a sentence for everything that had to be assumed.
"""

from gapless.robots.load import BUILT_IN, load
from gapless.robots.model import Joint, RobotModel
from gapless.robots.protocol import Command, Reading, Robot

__all__ = ["BUILT_IN", "Command", "Joint", "Reading", "Robot", "RobotModel", "load"]
