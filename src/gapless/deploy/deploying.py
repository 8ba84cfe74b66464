"""The one function that runs a policy on a robot: verdict, address, limits, checks before the start, run, result."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from gapless.deploy.address import connect
from gapless.deploy.limits import limits_of
from gapless.deploy.recording import Recorder
from gapless.deploy.result import Run
from gapless.deploy.runner import Runner
from gapless.deploy.safety import AGE
from gapless.deploy.verdict import require_pass
from gapless.deploy.watch import Watch, envelope_of
from gapless.errors import BadInput
from gapless.policy import Policy
from gapless.robots import BUILT_IN, load_robot
from gapless.twin import Twin


def run(
    policy: Policy,
    address: str,
    *,
    model: str | None = None,
    command: Sequence[float] = (),
    seconds: float = 10.0,
    limits: Mapping[str, float] | None = None,
    verdict: Path | None = None,
    recording: Path | None = None,
    age: float = AGE,
    adaptive: bool = False,
    watched: bool = False,
    smooth: float = 0.0,
    started: Callable[[Runner], None] = lambda runner: None,
    robot: Any = None,
) -> Run:
    """Run a policy on the robot at an address; refuse, with the robot untouched, whatever may not run there.

    Args:
        policy: as `load_policy` gives it.
        address: see `connect`.
        model: of the robot; the contract's own robot where that is built in.
        command: what the policy is asked for, in the order of its contract's commands.
        seconds: how long [s].
        limits: by name, tighter than the model's (see `Limits.tighter`).
        verdict: folder of the policy's passed check; None runs it unchecked.
        recording: a new .mcap file.
        age: of a reading when a command that answers it acts [s].
        adaptive: whether the inner loop adapts to loads.
        watched: whether the twin runs beside the robot.
        smooth: time constant of a low-pass filter of the targets at the inner rate; 0 for none [s].
        started: called with the runner before the first command, to steer, stop or look at it.
        robot: one that is connected already.
    """
    contract = policy.contract
    name = model or contract.robot.name
    if model is None and name not in BUILT_IN:
        raise BadInput(f"the policy's robot {name!r} is not built in: name its model with --model")
    described = load_robot(name)
    contract.columns(described.joints)
    if verdict is not None:
        require_pass(policy, verdict, described.name)
    bounds = limits_of(described, contract).tighter(limits or {})
    watch = _watch(policy, name, command) if watched else None
    live = connect(address) if robot is None else robot
    try:
        runner = Runner(live, described, policy, command, bounds, age, adaptive, watch, smooth)
        runner.check()
        started(runner)
        if recording is not None:
            meta = {"robot": described.name, "policy": policy.sha256, "address": address, "unchecked": verdict is None}
            runner.record(lambda channels: Recorder(recording, meta, channels))
        out = runner.run(seconds)
    finally:
        if robot is None and hasattr(live, "close"):
            live.close()
    told = {k: v for k, v in asdict(out).items() if k != "warnings"}
    return Run(
        policy=contract.source.run or "policy",
        robot=described.name,
        address=address,
        limited=runner.safety.counted(),
        lost=runner.link.lost,
        warnings=out.warnings,
        unchecked=verdict is None,
        recording=str(recording) if recording else "",
        **told,
    )


def _watch(policy: Policy, name: str, command: Sequence[float]) -> Watch:
    twin = Twin.load(name, control_dt=policy.contract.timing.control_dt)
    return Watch(twin, envelope_of(policy, twin, np.asarray(command, float), np.random.default_rng(0)))
