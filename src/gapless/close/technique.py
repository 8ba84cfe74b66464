"""Technique: a remedy against the gap, as one small protocol: what it asks of the robot, how it is trained, what it returns.

    TECHNIQUE = Technique("belief", "tunes in worlds drawn from what a fit believes", remedy, robot=LOG_SECONDS)

A remedy is a function of a case and the stages of its work. It gets everything through functions of this package that do a
stage only once (`recorded`, `identified`, `trained`), so remedies that are compared on one case share their log and fit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gapless.close.case import Case
from gapless.close.stages import Stages

Remedy = Callable[[Case, Stages], Path]
"""From a case and the stages of its work to the folder of the policy that is to run on the robot."""


@dataclass(frozen=True)
class Technique:
    """A remedy, and what it may ask for."""

    name: str
    says: str
    """What it does, to go on "This technique ..."."""
    remedy: Remedy
    robot: float = 0.0
    """Robot time that it asks for [s]."""
    cheats: bool = False
    """Whether it looks at what nobody can know: a limit, not a remedy."""


@dataclass(frozen=True)
class Outcome:
    """What a technique came to on a case."""

    policy: Path
    robot: float
    """Robot time that it spent [s]."""
    computing: float
    """Time of all cores, of every stage that it used, also where another technique had done it already [s]."""


def applied(technique: Technique, case: Case, folder: Path, tell: Callable[[str, float | None], object]) -> Outcome:
    """Apply a technique to a case; stages that others have done in the folder are not done again."""
    stages = Stages(folder, case.budget, tell)
    policy = technique.remedy(case, stages)
    return Outcome(policy, stages.spent, stages.computing)
