"""`gapless fit`: a twin that predicts, and what the logs do not tell."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from gapless.cli import options
from gapless.cli.options import ABOUT, About, Command, Flag, InAir, Json, Logs, Mapping, Model, Overwrite
from gapless.cli.stages import stages
from gapless.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gapless.identify import Crew, Fit, WalkingFit
    from gapless.logs import Log
    from gapless.residual import Learnt
    from gapless.twin import Stated, Twin

Fixed = Annotated[
    tuple[tuple[str, ...], ...], tyro.conf.UseAppendAction, tyro.conf.arg(metavar="NAME=VALUE...", help_behavior_hint="")
]

ELSEWHERE = "--method, --network, --particles, --resume, --in-air, --signals, --residual"
"""What only fits of robots that did not walk under a policy take."""


def fit(
    model: Annotated[Model, tyro.conf.arg(metavar="MODEL", help_behavior_hint="")] = "",
    logs: Logs = (),
    *,
    mapping: Mapping = None,
    about: About = ABOUT,
    fix: Fixed = (),
    in_air: InAir = False,
    signals: Annotated[tuple[str, ...], tyro.conf.arg(metavar="SIGNAL...")] = ("q",),
    method: Literal["least-squares", "evolve", "posterior", "amortised"] = "least-squares",
    network: Annotated[Path | None, tyro.conf.arg(metavar="NPZ", help_behavior_hint="")] = None,
    particles: Annotated[int, tyro.conf.arg(metavar="N", help_behavior_hint="")] = 0,
    residual: Literal["off", "auto", "force"] = "off",
    policy: Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="")] = None,
    command: Command = None,
    resume: Flag = False,
    compare: Annotated[tuple[Path, Path] | None, tyro.conf.arg(metavar="A B", help_behavior_hint="")] = None,
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="")] = None,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Fit a model to logs: find the drives' gains, delay and friction, and say what the logs do not tell.

    For example:

    gapless fit arm monday.mcap tuesday.mcap --fix "gains.kp/*=14.5" --out fitted

    gapless fit quadruped walk.npz --policy runs/walk --command 0.5,0,0 --out walked

    gapless fit --compare monday tuesday

    The folder gets twin.xml (plain MJCF), belief.json, fit.json (walking.json with --policy) and report.html.
    Each half of the logs is predicted by a fit to the other half: that error judges the model.
    Bad logs are left out and named if others are good. Ctrl-C keeps the best so far, and --resume goes on.

    Args:
        fix: Parameters that are known and not fitted, such as "gains.kp/*=14.5"; the same as --set here.
        signals: What the full model is fitted to: q, dq, tau. A floating base's IMU and motion capture are always used.
        method: evolve goes on with CMA-ES, for minutes. posterior learns all that is possible (needs gapless[posterior]).
        network: Of --method amortised, which asks it; where there is none yet, it is learnt for the log's motion.
        particles: Write the belief as so many weighted samples instead of a Gaussian.
        residual: auto learns what no number explains and keeps it where it predicts unseen motion better; force keeps it.
        policy: Folder of the policy that walked in the logs: distributions of motion under it are compared, not moments.
        resume: Go on with what DIR has of an earlier run.
        compare: Two folders of earlier fits of the same robot, instead of a model and logs: which numbers moved, and why.
        out: Folder for the results; needed, except with --compare.
    """
    from gapless import identify
    from gapless.residual import learn, must_suit

    if compare or not model:
        return _compare(compare, bool(model or logs), out, overwrite, json)
    stated = about.stated()
    read, unreadable = _read(logs, mapping)
    twin, crew = _given(model, read[0], replace(stated, values={}), in_air, policy, command)
    if crew and (method, particles, resume, in_air, signals, residual) != ("least-squares", 0, False, False, ("q",), "off"):
        raise BadInput(f"--policy fits a robot that walked, without {ELSEWHERE}")
    if method == "amortised" or network:
        return _amortised(twin, read[0], method == "amortised", network, out, overwrite, json)
    fixed = _fixed(twin, stated, fix)
    out = options.wanted(out, "the fitted twin", "fitted")
    options.result_folder(out, overwrite or resume, "fit.json", "walking.json")
    must_suit(twin, read, residual)
    with stages() as tell:
        if crew:
            return _show(identify.fit_walking(twin, read, crew, fixed, tell), None, unreadable, out, json)
        more = {"method": method, "particles": particles, "signals": signals, "progress": out / "progress.json"}
        found = identify.fit(twin, read, fixed=fixed, resume=resume, tick=tell, **more)  # type: ignore[arg-type]
        found, learnt = learn(found, read, residual, tell)
    _show(found, learnt, unreadable, out, json)


def _read(logs: tuple[Path, ...], mapping: str | None) -> tuple[list[Log], list[str]]:
    """The logs that were named, and why others cannot be read."""
    from gapless.logs import load_mapping, read_all

    return read_all(options.log_paths(logs), load_mapping(mapping) if mapping else None)


def _fixed(twin: Twin, stated: Stated, fix: tuple[tuple[str, ...], ...]) -> dict[str, float]:
    """What is known and not fitted."""
    from gapless.twin import known_values

    known = [*stated.values.items(), *options.pairs("fix", tuple(pair for several in fix for pair in several))]
    return known_values(twin, known, stated.kp, stated.kd)


def _amortised(twin: Twin, log: Log, asked: bool, file: Path | None, out: Path | None, overwrite: bool, json: bool) -> None:
    """Ask a network for what a log leaves possible; where there is none, learn it first."""
    from gapless import identify

    if file is None or not asked:
        raise BadInput("--method amortised and --network FILE.npz go together: the file is the network, or where it is to go")
    out = options.wanted(out, "the belief", "fitted")
    options.result_folder(out, overwrite, "amortised.json", "fit.json")
    options.can_write(file, "a network", ".npz")
    with stages() as tell:
        result = identify.ask_network(twin, log, file, tell)
    result.save(out)
    options.show(result, json)
    if not json:
        options.tell(f"{result.seconds:.2f} s; belief.json, amortised.json and report.html are in {out}")


def _show(result: Fit | WalkingFit, learnt: Learnt | None, unreadable: Sequence[str], out: Path, json: bool) -> None:
    result = replace(result, warnings=[*result.warnings, *(f"left out {why}" for why in unreadable)])
    options.assumed(result.twin)
    result.save(out)
    options.show(result, json)
    if not json:
        options.tell(f"{result.seconds:.1f} s; twin.xml, belief.json, {result.NAME}.json and report.html are in {out}")
    if learnt is not None:
        learnt.save(out / "residual")
        if not json:
            options.show(learnt, json)


def _given(
    model: str,
    log: Log,
    stated: Stated,
    in_air: bool,
    folder: Path | None,
    command: str | None,
) -> tuple[Twin, Crew | None]:
    """The twin before it is fitted, at a policy's period if there is one; and what lets that drive any number of robots."""
    from gapless.files import within
    from gapless.policy import Pilot, load_policy

    robot = stated.robot(model)
    if folder is None and command is None:
        return stated.twin(robot, log, in_air=in_air), None
    if folder is None:
        raise BadInput("--command is what a policy was asked for: name its folder with --policy")
    policy, asked = load_policy(folder), options.numbers("command", command)
    contract = policy.contract
    with within(folder):
        if command is None and contract.commands:
            raise BadInput(f"the policy must be asked for {', '.join(contract.commands)}, as it was in the logs: use --command")
        twin = stated.twin(replace(robot, control_dt=contract.timing.control_dt or robot.control_dt), log)
        Pilot(policy, twin, asked)  # refuses a robot that it is not for
    return twin, lambda n: Pilot(policy, twin, asked, n).answer


def _compare(folders: tuple[Path, Path] | None, more: bool, out: Path | None, overwrite: bool, json: bool) -> None:
    """Which numbers moved between two fits. more: whether a model or logs were named as well."""
    from gapless import identify

    if not folders:
        raise BadInput("name a model and logs, such as `gapless fit arm monday.mcap`, or two fits to --compare")
    if more:
        raise BadInput("--compare takes two folders of earlier fits, and neither a model nor logs")
    if out and (out / "fit.json").exists():
        raise BadInput(f"{out}: has a fit in it, whose page would be lost; name another folder for the comparison")
    if out:
        options.result_folder(out, overwrite, "comparison.json")
    result = identify.compare(*folders)
    options.show(result, json)
    if out:
        result.save(out)
        options.tell(f"comparison.json and report.html are in {out}")
