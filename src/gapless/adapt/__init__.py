"""Adapt: policies that find out about their robot while they run.

All are a policy `pi(a | o, z)` and somebody who provides z (`gapless.policy.Context`): the truth (a teacher), an estimate from
history (`student`, `rma`, `osi`, which `distil` trains), or trials on the robot (`search` with `evolution`, `bayes`, `awr`).
`residual` learns on top of a policy that stays.
"""

from typing import TYPE_CHECKING

from gapless.adapt.beliefs import Believed, believes
from gapless.adapt.on_robot import SEARCHES, adapt
from gapless.adapt.result import Adapted
from gapless.adapt.search import Found, Robot, Searcher, Trial, search
from gapless.adapt.training import METHODS, TEACHER, plan_teacher, train_adaptive

if TYPE_CHECKING:
    from gapless.adapt.distil import Distilled as Distilled
    from gapless.adapt.expert import Teacher as Teacher, load_teacher as load_teacher
    from gapless.adapt.residual import train_residual as train_residual
    from gapless.adapt.trials import Trials as Trials, episodes as episodes
    from gapless.adapt.tuning import tune as tune


def __getattr__(name: str) -> object:
    """What needs torch loads when it is used."""
    from importlib import import_module

    lazy = {
        "Distilled": "distil",
        "load_teacher": "expert",
        "Teacher": "expert",
        "Trials": "trials",
        "episodes": "trials",
        "tune": "tuning",
        "train_residual": "residual",
    }
    if name not in lazy:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"gapless.adapt.{lazy[name]}"), name)
