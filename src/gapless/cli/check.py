"""`gapless check`: may this policy run on the robot?"""

import json as text
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from gapless.cli import options
from gapless.cli.options import Command, Flag, Json, Mapping, Overwrite

if TYPE_CHECKING:
    from gapless.check import GateVerdict, PolicyCheck


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
    on: Annotated[str | None, tyro.conf.arg(metavar="mujoco,drake,sapien,pybullet", help_behavior_hint="")] = None,
    stress: Flag = False,
    belief: Annotated[Path | None, tyro.conf.arg(metavar="JSON|DIR", help_behavior_hint="")] = None,
    accepted: Annotated[Path | None, tyro.conf.arg(metavar="POLICY", help_behavior_hint="")] = None,
    thresholds: Annotated[Path | None, tyro.conf.arg(metavar="TOML", help_behavior_hint="")] = None,
    task: Annotated[str | None, tyro.conf.arg(metavar="velocity|stand|reach|drive|swing", help_behavior_hint="")] = None,
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="")] = None,
    overwrite: Overwrite = False,
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
        on: Engines in which it must not fall either, with commas between them; then the gate judges.
        stress: Make everything worse, one thing at a time and together; then the gate judges.
        belief: What was identified, the file or folder that `gapless fit` writes: robots are drawn from it, margins against it.
        accepted: The last accepted policy, to compare with on the same robots; then the gate judges.
        thresholds: What the gate asks for, where it differs from the defaults.
        task: What the gate lets it do; told from its commands unless given.
        out: Folder for verdict.json, junit.xml and report.html; nothing is written unless given.
    """
    from gapless.check import check as check_policy
    from gapless.errors import BadInput
    from gapless.logs import load_mapping, read

    if out:
        options.result_folder(out, overwrite, "verdict.json")
    if not 0.1 <= seconds <= 600:
        raise BadInput(f"--seconds takes 0.1 to 600, not {seconds:g}")
    if mapping and log is None:
        raise BadInput("--mapping is about a log: give the log, too (--log)")
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
    gated, verdict = stress or any(given is not None for given in (on, belief, accepted, thresholds)), None
    if gated and result.outcome != "fail":
        verdict = _gate(policy, robot, override, set, on, stress, belief, accepted, thresholds, task)
    _show(result, verdict, out, json)
    sys.exit(result.exit_code or (verdict.exit_code if verdict else 0))


def _show(result: "PolicyCheck", verdict: "GateVerdict | None", out: Path | None, json: bool) -> None:
    """Print what was found, and save it where that is wanted."""
    if json:
        print(text.dumps(result.json() | ({"gate": verdict.json()} if verdict else {})))
    else:
        options.show(result, False)
        if verdict:
            options.show(verdict, False)
    if out:
        result.save(out)
        if verdict:
            verdict.save(out / "gate")
        options.tell(f"verdict.json, junit.xml and report.html are in {out}{', those of the gate in gate/' if verdict else ''}")


def _gate(
    policy: Path,
    robot: str | None,
    override: Path | None,
    settings: tuple[str, ...],
    on: str | None,
    stress: bool,
    belief: Path | None,
    accepted: Path | None,
    thresholds: Path | None,
    task: str | None,
) -> "GateVerdict":
    """Other engines, stress, and the gate."""
    from rich.console import Console

    from gapless.check import check_engines, judge, thresholds as limits, trials_of, twin_for
    from gapless.errors import BadInput
    from gapless.policy import Policy, read_policy
    from gapless.robots import load_robot
    from gapless.twin import load_belief

    if robot is None:
        raise BadInput("the gate runs the policy on a robot: name it with --robot")
    engines = tuple(name.strip() for name in on.split(",")) if on else ()
    check_engines(engines)
    model = load_robot(robot)

    def opened(path: Path) -> Policy:
        read = read_policy(path, model, override, settings)
        if read.policy is None:
            raise BadInput(f"{path}: its files do not say {', '.join(read.missing)}, without which it cannot run")
        return read.policy

    network = opened(policy)
    twin = twin_for(network, robot, belief)
    kind = type(trials_of(network, twin, task).task).__name__.removesuffix("Task").lower()
    with Console(stderr=True).status("running the policy") as status:
        return judge(
            network,
            twin,
            load_belief(belief) if belief else None,
            engines,
            stress,
            limits(kind, thresholds),
            opened(accepted) if accepted else None,
            task,
            tick=status.update,
        )
