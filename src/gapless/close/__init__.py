"""Close: the whole loop, from a policy that fails on a robot to one that works; and the remedies that are compared.

    case = Case("quadruped", standin=load_standin("robot.toml"))
    print(close(case, "out/close"))

A loop is made of stages (`stages.py`), each a call of its package. A technique (`technique.py`) is a remedy in one file.
"""

from gapless.close.asking import telling_command
from gapless.close.belief import Identified, identified
from gapless.close.case import ROBOT_TIME, STANDIN, TUNING, Case, shipped
from gapless.close.compare import Plan, compare, plan_comparison
from gapless.close.compare_result import Compared, Row
from gapless.close.field import field_twin, named, scored
from gapless.close.loop import close
from gapless.close.mismatch import MISMATCHES, Mismatch
from gapless.close.moved_result import Moved
from gapless.close.moving import UPDATES as METHODS, first_belief, move
from gapless.close.next_step import Advice, advised
from gapless.close.reps import divergence, reps
from gapless.close.result import Closed
from gapless.close.rollouts import Asked, Rollouts
from gapless.close.stages import StageFailed, Stages
from gapless.close.technique import Outcome, Technique, applied
from gapless.close.techniques import TECHNIQUES
from gapless.close.worth import Experiment, matters, next_experiment, told
