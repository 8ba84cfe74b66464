"""30 models: robots drawn once around the nominal one (Hwangbo et al. 2019)."""

from pathlib import Path

from gapless.close.case import Case
from gapless.close.stages import Stages
from gapless.close.technique import Technique
from gapless.close.training import to_tune, trained


def remedy(case: Case, stages: Stages) -> Path:
    return trained(case, stages, "models30", "models30", start=to_tune(case, stages))


TECHNIQUE = Technique("models30", "tunes on thirty robots that are drawn once", remedy)
