"""`gapless actuator`: what drives really give, learned from logs that measured torque."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from gapless.cli import options
from gapless.cli.options import ABOUT, About, InAir, Json, Logs, Mapping, Overwrite, Seed
from gapless.cli.stages import stages

if TYPE_CHECKING:
    from gapless.logs import Log


def actuator(
    logs: Logs,
    *,
    robot: Annotated[str | None, tyro.conf.arg(metavar="MODEL", help_behavior_hint="")] = None,
    mapping: Mapping = None,
    about: About = ABOUT,
    in_air: InAir = False,
    seed: Seed = 0,
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="(needed)")] = None,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Learn the torque of each drive from its command and velocity, by a network and by simpler laws beside it.

    For example `gapless actuator jump.csv --mapping odri_hopper --out drives`. The first 70 % of each log is learned from and
    the rest judges: a network that is no better than a delayed PD law or linear regression says so, and the command then exits
    1. With `--robot arm.xml` the networks take the place of that model's drives: `gapless replay drives/twin.xml other.csv` has
    them, as have `fit`, `train`, `check` and `close`, and the verdict says whether unseen motion is predicted better too.

    Args:
        robot: Model whose drives the networks replace, a name or a file; none is needed to learn.
        seed: Of the network's first weights.
        out: Folder for actuator.json, report.html, actuator.npz, an ONNX file a joint; of a model also twin.xml, belief.json.
    """
    import sys

    from gapless.logs import load_mapping, read_all
    from gapless.residual import in_model, learn_actuator, must_be_torque

    stated = about.stated()
    read, unreadable = read_all(options.log_paths(logs), load_mapping(mapping) if mapping else None)
    out = options.wanted(out, "the result", "drives")
    options.result_folder(out, overwrite, "actuator.json")
    read, unreadable = _sound(read, unreadable)
    twin = stated.twin(robot, read[0], in_air=in_air) if robot else None
    if twin is not None:
        must_be_torque(twin, read)
    with stages() as tell:
        tell(f"learning the torque of {len(read[0].joints)} drives")
        result = learn_actuator(read, seed, twin.stated_gains if twin else None)
        if twin is not None:
            tell("replaying the model with the networks")
            result = in_model(result, twin, read)
    result.save(out)
    options.show(result, json)
    for note in [*result.notes, *(f"left out {why}" for why in unreadable)]:
        options.tell(note)
    if not json:
        more = "" if twin is None else "twin.xml, belief.json, "
        options.tell(f"{more}actuator.json, report.html, actuator.npz and ONNX files are in {out}")
    if not result.verdict().good:
        sys.exit(1)


def _sound(logs: list[Log], unreadable: list[str]) -> tuple[list[Log], list[str]]:
    """Logs that say nothing false of themselves, as there is no model to compare them with; and why others are left out."""
    from gapless.errors import BadInput
    from gapless.logs import ERROR, inspect
    from gapless.measure import one_robot

    wrong = [next((f.sentence for f in inspect(log).findings if f.severity == ERROR), None) for log in logs]
    refused = [f"{log.name}: {why}" for log, why in zip(logs, wrong, strict=True) if why]
    kept = [log for log, why in zip(logs, wrong, strict=True) if not why]
    if not kept:
        raise BadInput(f"{refused[0]}; `gapless inspect` says more")
    one_robot(kept)
    return kept, [*unreadable, *refused]
