"""Other engines: the same robot, drives and policy in MuJoCo, Drake, SAPIEN (PhysX) and PyBullet, one small adapter each."""

from gapless.check.engines.canonical import Canonical, canonical
from gapless.check.engines.cross import CrossCheck, cross_check
from gapless.check.engines.load import ENGINES, EngineRobot, build, check_engines, installed
from gapless.check.engines.parity import Agreement, parity
