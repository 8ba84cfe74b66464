"""Oracle: tuned on the robot as it really is, which nobody knows; the limit of what a fit can give."""

from __future__ import annotations

from pathlib import Path

from gapless.close.case import Case
from gapless.close.field import field_twin
from gapless.close.stages import Stages
from gapless.close.technique import Technique
from gapless.close.training import to_tune, trained
from gapless.twin import Point, recipe_of, save_belief


def remedy(case: Case, stages: Stages) -> Path:
    def make(folder: Path) -> None:
        twin, values = field_twin(case.secret)
        save_belief(Point(twin.space, values), folder / "belief.json", recipe_of(twin))

    truth = stages.run("truth", {"standin": case.secret}, make, lambda folder: folder / "belief.json")
    return trained(case, stages, "oracle", "none", truth, to_tune(case, stages), mirror=False)


TECHNIQUE = Technique("oracle", "tunes on the robot as it really is", remedy, cheats=True)
