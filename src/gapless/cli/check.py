"""`gapless check`: may this policy run on the robot?"""

import sys
from pathlib import Path
from typing import Annotated

import tyro

from gapless.cli import options
from gapless.cli.options import Command, Json, Mapping


def check(
    policy: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="POLICY")],
    *,
    robot: Annotated[str | None, tyro.conf.arg(metavar="MODEL", help_behavior_hint="")] = None,
    override: Annotated[Path | None, tyro.conf.arg(metavar="TOML|YAML", help_behavior_hint="")] = None,
    set: Annotated[tuple[str, ...], tyro.conf.UseAppendAction, tyro.conf.arg(metavar="NAME=VALUE", help_behavior_hint="")] = (),
    command: Command = None,
    seconds: float = 10.0,
    log: Annotated[Path | None, tyro.conf.arg(metavar="LOG", help_behavior_hint="")] = None,
    mapping: Mapping = None,
    observations: Annotated[Path | None, tyro.conf.arg(metavar="NPZ", help_behavior_hint="")] = None,
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="")] = None,
    json: Json = False,
) -> None:
    """Say whether a policy may run on a robot: files, network, observation, gains and a walk, the first that is wrong named.

    For example `gapless check policies/g1 --robot g1.xml`, or with what its files do not say
    `gapless check go1.onnx --robot go1.xml --override go1.toml`. With --log run.mcap the runtime that wrote it is audited too.
    Reads policies of gapless, mjlab, whole_body_tracking, holosoma, unitree_rl_lab, unitree_rl_mjlab, unitree_rl_gym, rl_sar
    and Isaac Lab's LEAPP. Exits 0 for a pass, 1 for a failure, 2 for bad input, 3 if it cannot be decided.

    Args:
        policy: A folder, a network (.onnx, .pt) or its configuration (.yaml).
        robot: A built-in robot, an MJCF or URDF file, or menagerie:NAME.
        override: What the policy's files do not say, in the words of the contract.
        set: The same for one field, also against what files say, such as timing.control_dt=0.02; may be given again.
        seconds: How long it walks in the robot's model.
        log: Of a deployment: joint states, IMU and commands.
        observations: An NPZ file with `time` and `observation` as the runtime logged them, for an audit term by term.
        out: Folder for verdict.json, junit.xml and report.html; nothing is written unless given.
    """
    from gapless.check import check as check_policy
    from gapless.errors import BadInput
    from gapless.logs import load_mapping, read

    if out and out.exists() and not out.is_dir():
        raise BadInput(f"{out}: not a folder, so no results can be saved there")
    if not 0.1 <= seconds <= 600:
        raise BadInput(f"--seconds takes 0.1 to 600, not {seconds:g}")
    asked = tuple(options.numbers("command", command)) if command is not None else None
    recorded = read(log, load_mapping(mapping) if mapping else None) if log else None
    result = check_policy(
        policy,
        robot,
        override=override,
        settings=set,
        command=asked,
        seconds=seconds,
        log=recorded,
        observations=observations,
    )
    options.show(result, json)
    if out:
        result.save(out)
        options.tell(f"verdict.json, junit.xml and report.html are in {out}")
    sys.exit(result.exit_code)
