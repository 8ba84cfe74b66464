"""`gapless actuator`: what drives really give, learned from logs that measured torque."""

from pathlib import Path
from typing import Annotated

import tyro

from gapless.cli import options
from gapless.cli.options import Json, Logs, Mapping, Overwrite, Seed
from gapless.cli.stages import stages


def actuator(
    logs: Logs,
    *,
    mapping: Mapping = None,
    seed: Seed = 0,
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="(needed)")] = None,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Learn the torque of each drive from its command and velocity, by a network and by simpler laws beside it.

    For example `gapless actuator jump.csv --mapping odri_hopper --out drives`. No model of the robot is needed. The first
    70 % of each log is learned from and the rest judges: a network that is no better than a delayed PD law or linear regression
    says so, and the command then exits 1.

    Args:
        seed: Of the network's first weights.
        out: Folder for actuator.json, report.html, actuator.npz and an ONNX file a joint.
    """
    import sys

    from gapless.logs import load_mapping, read_all
    from gapless.residual import learn_actuator

    read, unreadable = read_all(options.log_paths(logs), load_mapping(mapping) if mapping else None)
    out = options.wanted(out, "the networks", "drives")
    options.result_folder(out, overwrite, "actuator.json")
    with stages() as tell:
        tell(f"learning the torque of {len(read[0].joints)} drives")
        result = learn_actuator(read, seed)
    result.save(out)
    options.show(result, json)
    for why in unreadable:
        options.tell(f"left out {why}")
    if not json:
        options.tell(f"actuator.json, report.html, actuator.npz and ONNX files are in {out}")
    if not result.verdict().good:
        sys.exit(1)
