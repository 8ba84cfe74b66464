"""`gapless delta`: what simulation must add to actions so that it moves as the robot."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import tyro

from gapless.cli import options
from gapless.cli.options import ABOUT, About, InAir, Json, Logs, Mapping, Model, Overwrite
from gapless.cli.stages import stages


def delta(
    model: Model,
    logs: Logs,
    *,
    mapping: Mapping = None,
    about: About = ABOUT,
    belief: Annotated[Path | None, tyro.conf.arg(metavar="JSON", help_behavior_hint="")] = None,
    in_air: InAir = False,
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="(needed)")] = None,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Learn a delta action: what is added to commands in simulation so that it moves as the robot did under the same policy.

    For example `gapless delta arm monday.mcap --out delta`, then
    `gapless train reach --robot arm --belief delta/belief.json --preset none --from runs/reach --out runs/tuned`: every world
    of that training has the correction, frozen. The policy is deployed without it. Where a parameter explains the difference,
    `gapless fit` is better: it says which. Exits 1 where no correction truly helps.

    Args:
        belief: A belief whose mean is used, such as belief.json of `gapless fit`; the model as it is unless given.
        out: Folder for delta.json, report.html, belief.json, delta.npz and an ONNX file a joint.
    """
    from gapless.logs import load_mapping, read_all
    from gapless.residual import learn_delta
    from gapless.twin import known_values, mean_values

    stated = about.stated()
    read, unreadable = read_all(options.log_paths(logs), load_mapping(mapping) if mapping else None)
    twin = replace(stated, values={}).twin(stated.robot(model), read[0], belief, in_air)
    values = mean_values(twin, belief, known_values(twin, list(stated.values.items())))
    out = options.wanted(out, "the delta action", "delta")
    options.result_folder(out, overwrite, "delta.json")
    options.assumed(twin)
    with stages() as tell:
        result = learn_delta(twin, read, values, tell)
    result.save(out)
    options.show(result, json)
    for why in unreadable:
        options.tell(f"left out {why}")
    if not json:
        options.tell(f"delta.json, report.html, belief.json, delta.npz and ONNX files are in {out}")
    if not result.verdict().good:
        sys.exit(1)
