"""ADR: trained from nothing in ranges that grow as far as the policy can follow (Akkaya et al. 2019)."""

from pathlib import Path

from gapless.close.case import Case
from gapless.close.stages import Stages
from gapless.close.technique import Technique
from gapless.close.training import trained


def remedy(case: Case, stages: Stages) -> Path:
    return trained(case, stages, "adr", None, adr=True)


TECHNIQUE = Technique("adr", "trains in ranges that grow as far as the policy can follow", remedy)
