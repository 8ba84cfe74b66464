"""Delta action: the model as it is, with a correction of commands learned from the log in every world (He et al. 2025)."""

from __future__ import annotations

from pathlib import Path

from gapless.close.belief import log_of, logs_key, record_twin
from gapless.close.case import Case
from gapless.close.field import LOG_SECONDS
from gapless.close.stages import Stages
from gapless.close.technique import Technique
from gapless.close.training import to_tune, trained
from gapless.files import sha256
from gapless.residual import learn_delta
from gapless.robots import files_of


def remedy(case: Case, stages: Stages) -> Path:
    logs = log_of(case, stages)

    def make(folder: Path) -> None:
        learn_delta(record_twin(case, logs[0]), logs, tick=lambda text: stages.tell(text, None)).save(folder)

    inputs = {"robot": sha256(*files_of(case.robot)), "stated": case.stated, "log": logs_key(case, stages), "hoist": case.hoist}
    learnt = stages.run("delta", inputs, make, lambda folder: folder / "belief.json", says="learning a delta action")
    return trained(case, stages, "delta_tuned", "none", learnt, to_tune(case, stages), mirror=False)


TECHNIQUE = Technique("delta", "tunes on the model with a learned correction of its commands", remedy, robot=LOG_SECONDS)
