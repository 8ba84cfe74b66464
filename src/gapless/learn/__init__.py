"""Learn: policies trained in worlds drawn from a belief.

A task (`tasks/`) and worlds make an `environment`; `run.train` turns one into a folder with a policy, and `course.run`
judges it on robots that it has never met. Nothing here needs torch but `learner`, `vecenv` and what `run.train` does with them.
"""

from typing import TYPE_CHECKING

from gapless.learn.context import Truth, context_of, with_context
from gapless.learn.contract import build_contract
from gapless.learn.course import (
    DRAWS as COURSE_DRAWS,
    PUSH as COURSE_PUSH,
    play as play_course,
    run as run_course,
    with_commands,
)
from gapless.learn.course_result import CourseResult
from gapless.learn.dashboard import dashboard, line as dashboard_line
from gapless.learn.environment import Environment, Frame, Step
from gapless.learn.judge import enter
from gapless.learn.mirror import Mirror, joints as joint_mirror
from gapless.learn.networks import FILE as NETWORKS, load_networks, save_networks
from gapless.learn.presets import box_belief, draw_from
from gapless.learn.run import UNSEEN, News, Run, load_run, plan_run, train
from gapless.learn.settings import PPOSettings, ppo_settings
from gapless.learn.task import Episode, Task, joint_terms
from gapless.learn.tasks import task_of
from gapless.learn.trained import Golden, evaluate, save_trained

if TYPE_CHECKING:
    from gapless.learn import encoder as encoder
    from gapless.learn.gym import GymEnvironment as GymEnvironment
    from gapless.learn.learner import Deterministic as Deterministic, Learner as Learner, Progress as Progress


def __getattr__(name: str) -> object:
    """What needs torch or gymnasium loads when it is used."""
    from importlib import import_module

    lazy = {
        "Learner": "learner",
        "Progress": "learner",
        "Deterministic": "learner",
        "GymEnvironment": "gym",
        "encoder": "encoder",
    }
    if name not in lazy:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"gapless.learn.{lazy[name]}"), name)
