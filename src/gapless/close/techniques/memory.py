"""Memory: a policy with an LSTM, trained from nothing in the ranges of the field, that finds out while it runs."""

from pathlib import Path

from gapless.close.case import Case
from gapless.close.stages import Stages
from gapless.close.technique import Technique
from gapless.close.training import trained

CELLS = 64


def remedy(case: Case, stages: Stages) -> Path:
    return trained(case, stages, "memory", "wide", recurrent=CELLS)


TECHNIQUE = Technique("memory", "trains a policy with a memory in the ranges of the field", remedy)
