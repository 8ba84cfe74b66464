"""Other engines: the same robot, drives and policy in MuJoCo, Drake, SAPIEN (PhysX) and PyBullet, one small adapter each."""

from gapless.check.engines.build import ENGINES, EngineRobot, build
from gapless.check.engines.canonical import Canonical, canonical
