"""`gapless gap`: how far a model is from its robot, why, and what to do next."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from gapless.cli import options
from gapless.cli.options import ABOUT, About, Flag, InAir, Json, Logs, Mapping, Model, Overwrite
from gapless.cli.stages import stages

if TYPE_CHECKING:
    from gapless.logs import Log
    from gapless.report import Result
    from gapless.twin import Twin


def gap(
    model: Model,
    logs: Logs = (),
    *,
    mapping: Mapping = None,
    about: About = ABOUT,
    in_air: InAir = False,
    task: Annotated[Path | None, tyro.conf.arg(metavar="TABLE.json", help_behavior_hint="")] = None,
    experiment: Annotated[Literal["replay"] | None, tyro.conf.arg(metavar="replay", help_behavior_hint="")] = None,
    measure_only: Flag = False,
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="")] = None,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Measure how far a model is from logs, share it out among causes, and say what to do next.

    For example `gapless gap go2.xml inair.npz --mapping go2_inair --out gap`. With --experiment replay the same commands played
    twice are compared over time: `gapless gap --experiment replay monday.mcap tuesday.mcap` asks how much a robot differs from
    itself; a log recorded in the twin, or a model before the logs, adds how the twin parts from the robot.
    Ctrl-C while causes are looked for leaves them out, and says how far the model is off.

    Args:
        task: What each mechanism costs the task: a JSON table of mechanism to loss, shown beside its share of the error.
        experiment: Compare runs of the same commands over time instead; then the model may be left out.
        measure_only: Say how far the model is off, and do not look for causes.
        out: Folder for gap.json (errors.json without causes, experiment.json) and report.html; nothing is written unless given.
    """

    from gapless import explain, gap as gaps
    from gapless.logs import load_mapping, read

    if out:
        options.result_folder(out, overwrite, "gap.json", "errors.json", "experiment.json")
    losses = explain.read_losses(task) if task else {}
    named, given = (None, (Path(model), *logs)) if experiment and _is_log(model) else (model, logs)
    stated = load_mapping(mapping) if mapping else None
    recorded = [read(path, stated) for path in options.log_paths(given)]
    twin = about.stated().twin(named, recorded[0], in_air=in_air) if named else None
    compared = None if experiment else twin
    result: Result = _gap(compared, recorded, losses, measure_only) if compared else gaps.experiment(recorded, twin)
    options.show(result, json)
    if out:
        result.save(out)
        options.tell(f"{result.NAME}.json and report.html are in {out}")


def _gap(twin: Twin, logs: list[Log], losses: dict[str, float], measure_only: bool) -> Result:
    """How far, and why unless that is not wanted or takes too long for someone."""
    from gapless import explain, gap as gaps
    from gapless.measure import admit, one_robot

    one_robot(logs)
    admitted = admit(twin, logs)  # refuses them before anything is said or computed
    options.assumed(twin)
    stopped = False
    with stages() as tell:
        try:
            if not measure_only:
                return explain.diagnose_admitted(twin, admitted, tell, losses)
        except KeyboardInterrupt:
            stopped = True
        tell("measuring how far the model is off", None)
        far = gaps.measure(twin, admitted.logs)
    for sentence in admitted.refused.values():
        options.tell(f"left out {sentence}")
    if stopped:
        options.tell("stopped: how far the model is off is measured, the causes are missing")
    return far


def _is_log(name: str) -> bool:
    """Whether what was named first is a log (or a folder of them) and not a model."""
    from gapless.robots import BUILT_IN, MODEL_FILES

    model = name in BUILT_IN or name.startswith("menagerie:") or Path(name).suffix.lower() in MODEL_FILES
    return not model
