"""Adapt: policies that find out about their robot while they run.

All are a policy `pi(a | o, z)` and somebody who provides z (`gapless.policy.Context`): the truth (a teacher), an estimate from
history (`student`, `rma`, `osi`, which `distil` trains), or trials on the robot (`search` with `evolution`, `bayes`, `awr`).
"""

from gapless.adapt.awr import Weighted
from gapless.adapt.bayes import Bayes
from gapless.adapt.blind import Blind
from gapless.adapt.evolution import Evolution
from gapless.adapt.search import Found, Robot, Searcher, Trial, search
from gapless.adapt.training import METHODS, TEACHER, plan_teacher, train_adaptive

SEARCHES = {"cma": Evolution, "bayes": Bayes, "awr": Weighted, "random": Blind}
"""Ways to search, by name."""


def __getattr__(name: str) -> object:
    """What needs torch loads when it is used."""
    from importlib import import_module

    lazy = {"Distilled": "distil", "load_teacher": "expert", "Teacher": "expert", "Trials": "trials"}
    if name not in lazy:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"gapless.adapt.{lazy[name]}"), name)
