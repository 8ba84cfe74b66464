"""`gapless close`: the whole loop, from a policy that falls to one that walks."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from gapless.cli import options
from gapless.cli.options import ABOUT, About, Command, Flag, Json, Logs, Mapping
from gapless.cli.stages import stages

if TYPE_CHECKING:
    from gapless.close import Case, Closed, Moved
    from gapless.twin import Stated


def close(
    model: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="[MODEL]", help_behavior_hint="")] = None,
    logs: Logs = (),
    *,
    mapping: Mapping = None,
    standin: Annotated[Path | None, tyro.conf.arg(metavar="TOML", help_behavior_hint="")] = None,
    task: Annotated[str, tyro.conf.arg(metavar="velocity|stand|reach|drive|swing")] = "velocity",
    policy: Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="")] = None,
    base: Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="")] = None,
    method: Literal["fit", "simopt", "bayessim", "autotuned"] = "fit",
    belief: Annotated[Path | None, tyro.conf.arg(metavar="JSON", help_behavior_hint="")] = None,
    about: About = ABOUT,
    no_hoist: Flag = False,
    command: Command = None,
    robot_time: float = 60.0,
    iterations: int = 120,
    seed: int = 0,
    oracle: Flag = False,
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="(needed)")] = None,
    json: Json = False,
) -> None:
    """Take a robot from a policy that fails on it to one that works: log, gap, causes, fit, tuning, check, trial.

    For example `gapless close --out out/close` (a simulated quadruped with secrets), `gapless close --standin robot.toml --out
    out/close`, or with logs of a real one `gapless close go2.xml inair.npz --policy runs/walk --base runs/walk --out out/go2`.
    What was stopped goes on where it was when the same is asked for again. Exits 0 where the policy that is kept was tried, 3
    where what is known does not decide it.

    Args:
        model: The robot; that of the stand-in unless given.
        standin: The robot with secrets that is recorded and tried; one outside the usual ranges unless given, or logs are.
        task: What the policy is for.
        policy: Folder of the policy that is on the robot; trained on the model alone unless given (the quadruped's is there).
        base: Folder of the training whose policy is tuned; trained in wide ranges unless given (the quadruped's is there).
        method: How the robot is found out about: fit is one log; the others are rounds of rollouts of the policy, and
            updates of a Gaussian: a bounded step (simopt), its posterior (bayessim), or a classifier (autotuned).
        belief: With rounds, the Gaussian to start from, as `gapless fit` writes it; about the model unless given.
        no_hoist: The robot cannot be lifted: it is recorded while it walks.
        robot_time: Seconds of the robot's time that log and trials may take.
        iterations: Of tuning.
        seed: Of training.
        oracle: Tune on the stand-in as it really is, too, which nobody can do with a robot: for comparison.
        out: Folder of the loop: every stage, the result and its page.
    """
    from gapless.close import close as close_loop, move
    from gapless.errors import BadInput

    out = options.wanted(out, "the loop", "out/close")
    options.result_folder(out, replace=True)  # what is finished there is kept
    given = {"task": task, "hoist": not no_hoist, "budget": robot_time, "iterations": iterations, "seed": seed}
    given |= {"mapping": mapping} if mapping else {}
    given |= {"command": tuple(options.numbers("command", command))} if command is not None else {}
    case = _case(model, logs, standin, policy, base, about.stated(), given)
    options.assumed(case.twin())
    if method == "fit" and belief is not None:
        raise BadInput("--belief is where rounds of rollouts start from: give --method simopt, bayessim or autotuned with it")
    if method != "fit" and oracle:
        raise BadInput("--oracle goes with --method fit; `gapless compare` has both beside each other")
    with stages() as tell:
        result: Closed | Moved = (
            close_loop(case, out, tell, oracle=oracle) if method == "fit" else move(case, out, method, belief=belief, tell=tell)
        )
    options.show(result, json)
    if not json:
        options.tell(f"{result.NAME}.json and the page are in {out}: open {out / 'report.html'}")
    sys.exit(result.exit_code)


def _case(
    model: str | None,
    logs: tuple[Path, ...],
    standin: Path | None,
    policy: Path | None,
    base: Path | None,
    stated: Stated,
    given: dict[str, object],
) -> Case:
    """The case that words on a command line mean."""
    from gapless.close import STANDIN, Case, shipped
    from gapless.errors import BadInput
    from gapless.worlds import load_standin

    if standin is not None and logs:
        raise BadInput("a stand-in is recorded by the loop itself: give either --standin or logs")
    if model is None and standin is None:
        standin = STANDIN
    spec = load_standin(standin, stated) if standin else None
    robot = model or (spec.robot if spec else "")
    folders = shipped(robot, str(given["task"]), stated)
    folders |= {name: str(folder) for name, folder in (("policy", policy), ("base", base)) if folder is not None}
    paths = tuple(map(str, options.log_paths(logs))) if logs else ()
    return Case(robot, standin=spec, logs=paths, stated=stated, **folders, **given)  # type: ignore[arg-type]
