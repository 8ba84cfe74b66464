"""`gapless certify`: an interval of real performance from a few real trials."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from gapless.cli import options
from gapless.cli.options import Json, Overwrite, Seed, Threads

if TYPE_CHECKING:
    from gapless.policy import Policy
    from gapless.twin import Twin


def certify(
    policy: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="POLICY")],
    *,
    robot: Annotated[str | None, tyro.conf.arg(metavar="MODEL", help_behavior_hint="")] = None,
    trials: Annotated[Path | None, tyro.conf.arg(metavar="CSV", help_behavior_hint="")] = None,
    on: Annotated[Path | None, tyro.conf.arg(metavar="TOML", help_behavior_hint="")] = None,
    count: Annotated[int, tyro.conf.arg(metavar="N")] = 5,
    figure: Annotated[str, tyro.conf.arg(metavar="velocity_error|yaw_error|loss|success")] = "velocity_error",
    belief: Annotated[Path | None, tyro.conf.arg(metavar="JSON", help_behavior_hint="")] = None,
    confidence: float = 0.9,
    seed: Seed = 0,
    threads: Threads = 0,
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="")] = None,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """State how well a policy does on the real robot, with an interval that holds, from a few trials.

    Without trials, the commands to try are printed as the head of a table: run each for 6 s, add what you measured in a last
    column, and give the table with --trials. With --on the trials are run on a stand-in.

    Args:
        policy: Folder of a policy.
        robot: A built-in robot, an MJCF or URDF file, or menagerie:NAME; the policy's own where that is built in.
        trials: Real trials: a CSV with a column for each command and one for the figure.
        on: A stand-in's file, to try this without a robot.
        count: Trials, where they are still to be made.
        figure: What is certified: the mean velocity error from the second second on, that of the turn rate, loss or success.
        belief: What simulated robots are drawn from, as `gapless fit` writes it; the preset wide unless given.
        confidence: Of the interval.
        out: A folder for certificate.json and a page.
    """
    from rich.console import Console

    from gapless.check import CERTIFIED_FIGURES, FEWEST_TRIALS, certify as certified, plan_trials, read_trials, try_standin
    from gapless.errors import BadInput, must_exist
    from gapless.policy import load_policy
    from gapless.twin import load_belief
    from gapless.worlds import load_standin

    if out:
        options.result_folder(out, overwrite, "certificate.json")
    must_exist("figure", [figure], CERTIFIED_FIGURES)
    if trials and on:
        raise BadInput("give the trials with --trials, or a stand-in with --on, not both")
    if not FEWEST_TRIALS <= count <= 1000 or not 0.5 <= confidence < 1:
        raise BadInput(f"--count must be {FEWEST_TRIALS} to 1000 and --confidence 0.5 to 1, not {count} and {confidence:g}")
    network = load_policy(policy)
    twin = _twin(network, robot, belief)
    columns = list(network.contract.commands)
    if not trials and not on:
        print(",".join([*columns, figure]))
        for row in plan_trials(network, twin, count, seed=seed):
            print(",".join(f"{x:.3g}" for x in row) + ",")
        return
    with Console(stderr=True).status("simulating the trials"):
        if on:
            commands = plan_trials(network, twin, count, seed=seed)
            real = try_standin(network, load_standin(on), commands, figure, seed=seed, threads=threads)
        else:
            assert trials is not None
            commands, real = read_trials(trials, columns, figure)
        result = certified(
            network, twin, commands, real, load_belief(belief) if belief else None, figure,
            confidence=confidence, seed=seed, threads=threads, evidence="stand-in runs" if on else "real runs",
        )  # fmt: skip
    if out:
        result.save(out)
    options.show(result, json)


def _twin(policy: Policy, robot: str | None, belief: Path | None) -> Twin:
    """The model of the policy's robot."""
    from gapless.errors import BadInput
    from gapless.robots import BUILT_IN
    from gapless.twin import Twin, load_recipe

    model = robot or policy.contract.robot.name
    if robot is None and model not in BUILT_IN:
        raise BadInput(f"the policy's robot {model!r} is not built in: name its model with --robot")
    twin = load_recipe(model, belief) if belief else Twin.load(model)
    policy.contract.columns(twin.joints)
    return twin
