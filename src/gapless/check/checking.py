"""The one function that checks a policy: read, preflight, audit, and put into a result."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gapless import files as disk
from gapless.check import network as net
from gapless.check.audit import audit
from gapless.check.finding import FAIL, NETWORK, SIGNALS, SKIP, Check
from gapless.check.preflight import Subject, preflight
from gapless.check.result import PolicyCheck
from gapless.errors import BadInput
from gapless.logs import Log
from gapless.policy import Candidate, Contract, read_policy
from gapless.robots import RobotModel, load_robot


def check(
    policy: str | os.PathLike[str] | Candidate | Callable[[Any], Any],
    robot: str | os.PathLike[str] | RobotModel | None = None,
    *,
    contract: Contract | None = None,
    golden: tuple[np.ndarray, np.ndarray] | None = None,
    override: str | os.PathLike[str] | None = None,
    settings: Sequence[str] = (),
    command: Sequence[float] | None = None,
    seconds: float = 10.0,
    log: Log | None = None,
    observations: str | os.PathLike[str] | None = None,
) -> PolicyCheck:
    """Say whether a policy may run on a robot, and if not, why.

    Args:
        policy: a folder or file, what `read_policy` gave, or a callable from observations (n, width) to actions (n, joints).
        robot: its model; without, nothing behind the observation is judged.
        contract: of a callable that has none as its attribute `contract`.
        golden: observations and actions of training, of a callable; files bring their own as golden.npz.
        override: a TOML or YAML file with what the policy's files do not say.
        settings: NAME=VALUE pairs that count against the files.
        command: that it walks by, in the order of the contract's commands.
        seconds: how long it walks [s].
        log: of a deployment, to audit.
        observations: an NPZ file with `time` and `observation` as the runtime logged them.
    """
    if observations is not None and log is None:
        raise BadInput(f"{observations}: observations are compared with what a log makes of them: give the log, too (--log)")
    model = robot if robot is None or isinstance(robot, RobotModel) else load_robot(robot)
    if isinstance(policy, str | os.PathLike):
        policy = read_policy(policy, model, override, settings)
    if isinstance(policy, Candidate):
        if policy.contract is None:
            return _unknown(policy, model)
        subject, name, framework = Subject.of(policy, model), policy.name, policy.framework
        sources, notes = {k: str(o) for k, o in policy.origins.items()}, list(policy.notes)
    else:
        stated = contract or getattr(policy, "contract", None)
        if not isinstance(stated, Contract):
            raise BadInput("a callable needs a contract: check(policy, robot, contract=...)")
        subject, name, framework = Subject(policy, stated, model, golden), type(policy).__name__, "a callable"
        sources, notes = {}, []
    subject.contract.must_run_on_a_robot()
    flight = preflight(subject, command, seconds)
    checks, evidence = list(flight.checks), "simulation" if flight.walk else "the policy's files"
    if log is not None and not any(c.status == FAIL and c.boundary == NETWORK for c in checks):
        recorded = _recorded(Path(observations)) if observations is not None else None
        trained = subject.golden[0] if subject.golden else None
        checks += audit(subject.network, subject.contract, log, model, command, recorded, trained)
        evidence += " and a real log"
    judged = str(getattr(subject.network, "sha256", ""))
    return PolicyCheck(name, framework, model.name if model else "", checks, sources, notes, flight.walk, evidence, judged)


def _unknown(candidate: Candidate, robot: RobotModel | None) -> PolicyCheck:
    """The result for a policy whose files say too little."""
    sentence = (
        f"The files say nothing of {' and '.join(candidate.missing)}; the network takes {candidate.width} numbers and gives "
        f"{candidate.outputs}."
    )
    fix = "State them in an override file (--override FILE.toml): docs/check.md has one of ten lines."
    checks = [Check("contract", SIGNALS, SKIP, sentence, len(candidate.missing), 0, "fields", fix)]
    if candidate.model and candidate.width and candidate.outputs:
        checks = [*net.look_into(candidate.model, candidate.width, candidate.outputs), *checks]
    sources = {k: str(o) for k, o in candidate.origins.items()}
    where = robot.name if robot else ""
    return PolicyCheck(
        candidate.name, candidate.framework, where, checks, sources, list(candidate.notes), None, "the policy's files"
    )


def _recorded(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Times and observations that a runtime logged."""
    disk.check_zip(path).close()
    # zipfile, zlib and numpy each have their own errors for damaged data
    with (
        disk.refusing(f"{path}: needs the arrays time and observation", Exception),
        np.load(path, allow_pickle=False) as arrays,
    ):
        time, observation = np.asarray(arrays["time"], float), np.asarray(arrays["observation"], float)
    if time.ndim != 1 or observation.ndim != 2 or len(time) != len(observation) or len(time) < 2:
        raise BadInput(
            f"{path}: time has shape {time.shape} and observation {observation.shape}; (n,) and (n, width) were expected"
        )
    return time, observation
