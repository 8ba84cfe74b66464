"""Close: the whole loop, from a policy that fails on a robot to one that works; and the remedies that are compared.

    case = Case("quadruped", standin=load_standin("robot.toml"))
    print(close(case, "out/close"))

A loop is made of stages (`stages.py`), each a call of its package. A technique (`technique.py`) is a remedy in one file.
"""

from gapless.close.belief import Identified, identified
from gapless.close.case import ROBOT_TIME, STANDIN, TUNING, Case, shipped
from gapless.close.compare import Plan, compare, plan_comparison
from gapless.close.compare_result import Compared, Row
from gapless.close.field import scored
from gapless.close.loop import close
from gapless.close.mismatch import MISMATCHES, Mismatch
from gapless.close.result import Closed
from gapless.close.stages import StageFailed, Stages
from gapless.close.technique import Outcome, Technique, applied
from gapless.close.techniques import TECHNIQUES
