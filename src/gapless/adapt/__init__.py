"""Adapt: policies that find out about their robot while they run.

All are a policy `pi(a | o, z)` and somebody who provides z (`gapless.policy.Context`): the truth (a teacher), an estimate from
history (`student`, `rma`, `osi`, which `distil` trains), or trials on the robot (`search` with `evolution`, `bayes`, `awr`).
Others move a plain policy's last layer on the robot (`es_maml`, `maml`, `norml`) or its inverse-dynamics head (`inverse`).
`residual` learns on top of a policy that stays, `forces` while something pulls.
"""

from typing import TYPE_CHECKING

from gapless.adapt.beliefs import Believed, believes
from gapless.adapt.on_robot import SEARCHES, adapt
from gapless.adapt.result import Adapted
from gapless.adapt.search import Found, Robot, Searcher, Trial, search
from gapless.adapt.training import METHODS, PREPARED, TEACHER, plan_plain, plan_teacher, train_adaptive, train_prepared

if TYPE_CHECKING:
    from gapless.adapt.distil import Distilled as Distilled
    from gapless.adapt.es_maml import climb as climb
    from gapless.adapt.expert import Teacher as Teacher, load_teacher as load_teacher
    from gapless.adapt.few_shot import tune_head as tune_head
    from gapless.adapt.forces import Curriculum as Curriculum, Pulled as Pulled, train_forces as train_forces
    from gapless.adapt.gradient import (
        Adapts as Adapts,
        Episodes as Episodes,
        gains as gains,
        learn as learn,
        stepped as stepped,
    )
    from gapless.adapt.maml import Rewards as Rewards
    from gapless.adapt.meta import one_step as one_step
    from gapless.adapt.norml import Learned as Learned
    from gapless.adapt.residual import train_residual as train_residual
    from gapless.adapt.trials import Trials as Trials, episodes as episodes
    from gapless.adapt.tuning import tune as tune


def __getattr__(name: str) -> object:
    """What needs torch loads when it is used."""
    from importlib import import_module

    lazy = {
        "Adapts": "gradient",
        "Curriculum": "forces",
        "Distilled": "distil",
        "Episodes": "gradient",
        "Learned": "norml",
        "Pulled": "forces",
        "Rewards": "maml",
        "climb": "es_maml",
        "gains": "gradient",
        "learn": "gradient",
        "load_teacher": "expert",
        "Teacher": "expert",
        "Trials": "trials",
        "episodes": "trials",
        "one_step": "meta",
        "stepped": "gradient",
        "train_forces": "forces",
        "train_residual": "residual",
        "tune": "tuning",
        "tune_head": "few_shot",
    }
    if name not in lazy:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"gapless.adapt.{lazy[name]}"), name)
