"""A loop in which a belief follows the robot: policy, a few rollouts of that policy, an update of the belief, again.

    result = move(Case("pendulum", "swing", standin=spec), "out/simopt", "simopt")

Rounds that make it worse are kept out: a belief whose middle is farther from the rollouts than the old one's is not taken, and
a policy that loses more on the robot than an earlier one is not built on.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gapless.close import autotuned, bayessim, simopt
from gapless.close.case import Case
from gapless.close.field import contents, named, scored
from gapless.close.moved_result import Moved, MovedRound
from gapless.close.next_step import advised
from gapless.close.result import Spent
from gapless.close.rollouts import ROLLOUTS, SECONDS, Asked, Rollouts, rolled_out
from gapless.close.stages import Stages, Tell
from gapless.close.training import to_tune, trained
from gapless.errors import BadInput, must_exist
from gapless.files import sha256, within
from gapless.identify import Numbers
from gapless.plain import read_json, write_json
from gapless.robots import files_of
from gapless.twin import Gaussian, Space, Twin, history, load_belief, recipe_of, save_belief

ROUNDS = 5
Update = Callable[[Gaussian, Asked, Rollouts, np.random.Generator], tuple[Gaussian, str]]
UPDATES: dict[str, Update] = {"simopt": simopt.update, "bayessim": bayessim.update, "autotuned": autotuned.update}
WORSE = 1.02
"""Times the cost of the old belief's middle: a new one beyond it is not taken."""


def rollout_space(twin: Twin) -> Space:
    """The numbers that rollouts may show: those of a fit to walking; what touches nothing has no contact."""
    space = Numbers.of(twin, {}).space
    gone = () if twin.floating else tuple(p for p in space.parameters if p.quantity.startswith("contact."))
    return Space(tuple(p for p in space.parameters if p not in gone), space.fixed)


def first_belief(twin: Twin, spread: float = 1.0) -> Gaussian:
    """About the model, as wrong as models are: a real mismatch of standard deviation, times `spread`."""
    space = rollout_space(twin)
    return Gaussian(space, np.zeros(len(space)), spread**2 * np.eye(len(space)))


@dataclass(frozen=True)
class Updated:
    """A round's update of the belief."""

    belief: Path
    taken: bool
    said: str
    before: float
    after: float
    """Cost of the old and of the new middle."""


def updated(case: Case, stages: Stages, name: str, method: str, belief: Path, asked: Asked, real: Rollouts) -> Updated:
    """The belief after rollouts, or the old one where the new one is farther from them."""

    def make(folder: Path) -> None:
        old = _gaussian(belief)
        asked.twin.accepts(old.space)
        rng = np.random.default_rng([case.seed, 0xBE])
        new, said = UPDATES[method](old, asked, real.of(asked.policy), rng)
        middles = np.stack([old.mean(), new.mean()])
        before, after = asked.cost(asked.simulated(old.space.clip(middles), old.space), real.seen).tolist()
        taken = after <= WORSE * before
        if not taken:
            said = f"not taken: the model at its middle is {after:.3f} from the rollouts, and {before:.3f} at the old one's"
        save_belief(new if taken else old, folder / "belief.json", recipe_of(asked.twin))
        write_json(folder / "update.json", {"taken": taken, "said": said, "before": before, "after": after})

    def load(folder: Path) -> Updated:
        table = read_json(folder / "update.json")
        return Updated(folder / "belief.json", bool(table["taken"]), str(table["said"]), table["before"], table["after"])

    inputs: dict[str, Any] = {
        "method": method,
        "belief": sha256(belief),
        "policy": contents(asked.policy),
        "seen": hashlib.sha256(real.seen.tobytes()).hexdigest(),
    }
    inputs |= {"robot": sha256(*files_of(case.robot)), "stated": case.stated, "seed": case.seed}
    return stages.run(name, inputs, make, load, says=f"{method}: what the rollouts say of the robot")


def _gaussian(path: Path) -> Gaussian:
    belief = load_belief(path)
    if not isinstance(belief, Gaussian):
        raise BadInput(f"{path}: rollouts move a Gaussian, and this belief is none: start from a fit without particles")
    return belief


def started(case: Case, stages: Stages, given: Path | None = None) -> Path:
    """The file of the first belief: given, or about the model."""
    if given is not None:  # refused before it costs robot time
        with within(given):
            case.twin().accepts(_gaussian(given).space)
        return given

    def make(folder: Path) -> None:
        twin = case.twin()
        save_belief(first_belief(twin), folder / "belief.json", recipe_of(twin))

    inputs = {"robot": sha256(*files_of(case.robot)), "stated": case.stated}
    return stages.run("first_belief", inputs, make, lambda folder: folder / "belief.json")


@dataclass(frozen=True)
class Rounds:
    """What the rounds came to."""

    policies: list[Path]
    """The first, and one a round."""
    beliefs: list[Path]
    rounds: list[MovedRound]
    best: int
    """Which policy lost least on the robot; the last of those that lost as little."""


def rounds_of(case: Case, stages: Stages, method: str, rounds: int = ROUNDS, belief: Path | None = None) -> Rounds:
    """Go through the rounds, as many as the robot's time allows; of hardware one, as nobody can roll out from here."""
    must_exist("method", [method], UPDATES)
    policies, beliefs = [to_tune(case, stages) if case.standin or not case.policy else Path(case.policy)], []
    beliefs.append(started(case, stages, belief))
    done: list[MovedRound] = []
    runs = ROLLOUTS if case.standin is not None else len(case.logs)
    least, best = np.inf, 0
    left = int((case.budget - stages.spent) / (runs * SECONDS) + 1e-6)
    rounds = min(rounds, left) if case.standin is not None else 1
    for k in range(rounds):
        each = stages.below(f"{method}/round{k}")
        asked = Asked(case, policies[-1], runs)
        real = rolled_out(case, each, "rollouts", asked)
        lost, said = float(np.mean(real.lost)), ""
        if lost <= least:
            least, best = lost, len(policies) - 1
        elif np.isfinite(lost):
            said = f"this policy lost {lost:.0%} of its task on the robot, and an earlier one {least:.0%}: it is not built on; "
        if case.standin is not None and k == rounds - 1:  # the last rollouts only judge the last policy
            done.append(MovedRound(lost, False, f"{said}the last policy was only tried", np.nan, np.nan))
            break
        found = updated(case, each, "update", method, beliefs[-1], asked, real)
        done.append(MovedRound(lost, found.taken, said + found.said, found.before, found.after))
        beliefs.append(found.belief)
        policies.append(trained(case, each, "policy", "informed", found.belief, policies[best], mirror=False))
    return Rounds(policies, beliefs, done, best if np.isfinite(least) else len(policies) - 1)


def remedy_of(method: str) -> Callable[[Case, Stages], Path]:
    """The remedy that goes through the rounds and leaves the policy that lost least on the robot."""

    def remedy(case: Case, stages: Stages) -> Path:
        found = rounds_of(case, stages, method)
        return found.policies[found.best]

    return remedy


def move(
    case: Case,
    folder: str | os.PathLike[str],
    method: str = "simopt",
    rounds: int = ROUNDS,
    belief: Path | None = None,
    tell: Tell = lambda text, left: None,
    score: bool = True,
) -> Moved:
    """Go through the rounds and say what they came to.

    Args:
        case: the robot, its policies and its time.
        folder: where every stage keeps what it made.
        method: simopt, bayessim or autotuned.
        rounds: of rollouts.
        belief: file of a Gaussian to start from; one about the model unless given.
        tell: told what is being done.
        score: whether the first and the kept policy are judged at length, where the robot is a stand-in.
    """
    stages = Stages(Path(folder), case.budget, tell)
    case.must_begin()
    if case.standin is not None and case.budget < 2 * ROLLOUTS * SECONDS:
        raise BadInput(
            f"{case.budget:g} s of robot time are too few: two rounds of rollouts take "
            f"{2 * ROLLOUTS * SECONDS:g} s (--robot-time)"
        )
    stages.folder.mkdir(parents=True, exist_ok=True)
    found = rounds_of(case, stages, method, rounds, belief)
    beliefs = [load_belief(path) for path in found.beliefs]
    truth = named(case.secret, everything=True) if case.standin is not None else {}
    said = [f"round {k + 1}: {each.said}" for k, each in enumerate(found.rounds)]
    space = beliefs[0].space
    known = {
        p.name: float(np.mean([truth[m] for m in p.members or (p.name,) if m in truth]))
        for p in space.parameters
        if any(m in truth for m in p.members or (p.name,))
    }
    moved = history(case.robot, method, "round", range(len(beliefs)), beliefs, known, said)
    spent = [Spent(name, r.robot, r.computing) for name, r in stages.records.items()]
    kept = found.policies[found.best]
    now = _gaussian(found.beliefs[-1])
    tell("what is worth most on the robot next", None)
    advice = advised(case, now, kept, np.random.default_rng([case.seed, 0xAD]))
    result = Moved(case.robot, case.task, method, str(kept), found.best, found.rounds, {}, moved, advice, spent)
    if case.standin is not None and score:
        result = scored_at_length(case, stages, result, found.policies)
    result.save(stages.folder)
    moved.save(stages.folder / "beliefs")
    return result


def scored_at_length(case: Case, stages: Stages, result: Moved, policies: list[Path]) -> Moved:
    """The result with the first and the kept policy judged on the stand-in, which no round sees."""
    success = {}
    for name, policy in (("first", policies[0]), ("kept", policies[result.kept])):
        success[name] = scored(case, policy).summary()["success"]
    return dataclasses.replace(result, success=success)
