"""Certify: how well a policy does on the real robot, from a few real trials and many simulated ones.

Prediction-powered inference (Angelopoulos et al. 2023, Science 382:669; power tuning: PPI++, 2023): the mean over many
simulated trials, corrected by how far simulation was off in the few real ones. For few trials the interval is Student's, and
the weight of simulation comes from simulated robots only, so that it does not depend on the trials that it is used on.
"""

import csv
import io
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import RenderableType
from scipy import stats

from gapless.arrays import Array
from gapless.check.trials import Trials, losses, spread, trials_of
from gapless.errors import BadInput
from gapless.files import text
from gapless.learn import CourseResult, Task, draw_from
from gapless.policy import Policy
from gapless.report import Result, Section, Table, Verdict, in_terminal
from gapless.twin import Belief, Twin
from gapless.worlds import StandIn, StandInSpec, build_standin

FIGURES: dict[str, tuple[str, Callable[[CourseResult], Array]]] = {
    "velocity_error": (
        "m/s",
        lambda r: np.where(np.isfinite(r.velocity_error), r.velocity_error, np.hypot(*r.command[:, :2].T)),
    ),
    "yaw_error": ("rad/s", lambda r: np.where(np.isfinite(r.yaw_error), r.yaw_error, np.abs(r.command[:, 2]))),
    "loss": ("", losses),
    "success": ("", lambda r: r.success.astype(float)),
}
"""What can be certified: unit, and the figure of each run."""
SIMULATED, ROBOTS = 128, 8
"""Simulated trials, and drawn robots whose mean predicts each."""
FEWEST = 3
MAX_FILE = 1 << 20


@dataclass(frozen=True)
class Estimate:
    """A mean with its interval."""

    mean: float
    low: float
    high: float

    @property
    def width(self) -> float:
        return self.high - self.low


@dataclass(frozen=True, repr=False)
class Certificate(Result):
    """What a policy's real performance is."""

    NAME = "certificate"

    robot: str
    figure: str
    unit: str
    confidence: float
    trials: int
    simulated: int
    weight: float
    """Of simulation: 0 ignores it, 1 trusts that it differs by a constant."""
    certified: Estimate
    """From both."""
    alone: Estimate
    """From the real trials alone."""
    predicted: float
    """By simulation alone."""
    evidence: str
    """real runs, or runs of a stand-in."""

    def verdict(self) -> Verdict:
        c, a = self.certified, self.alone
        less = f"{1 - c.width / a.width:.0%} narrower than" if c.width < a.width else "no narrower than"
        return Verdict(
            f"{self.figure.replace('_', ' ')} is {c.mean:.3f} {self.unit}, with {self.confidence:.0%} confidence between "
            f"{c.low:.3f} and {c.high:.3f}: {less} from the {self.trials} {self.evidence} alone.",
            good=c.width < a.width,
        )

    def sections(self) -> Iterator[Section]:
        yield self._table()

    def glance(self) -> Iterable[RenderableType]:
        yield in_terminal(self._table())

    def _table(self) -> Section:
        rows = [
            [name, f"{e.mean:.4f}", f"{e.low:.4f}", f"{e.high:.4f}"]
            for name, e in (("trials and simulation", self.certified), ("trials alone", self.alone))
        ]
        rows.append([f"simulation alone ({self.simulated} trials)", f"{self.predicted:.4f}", "–", "–"])
        unit = f" [{self.unit}]" if self.unit else ""
        text = f"Weight of simulation {self.weight:.2f}, from simulated robots only."
        return Section("Estimates", text, Table(("from", f"{self.figure}{unit}", "low", "high"), rows))


def estimate(real: Array, predicted: Array, simulated: Array, weight: float, confidence: float = 0.9) -> Estimate:
    """A mean from a few real figures, what was predicted for them, and many predictions, by prediction-powered inference.

    Args:
        real: of the trials, shape (n,).
        predicted: for the same trials, shape (n,).
        simulated: predictions for other trials of the same kind, shape (N,).
        weight: of the predictions; any that does not depend on the trials.
        confidence: of the interval.
    """
    n, many = len(real), len(simulated)
    off = real - weight * predicted
    mean = weight * simulated.mean() + off.mean()
    variance = off.var(ddof=1) / n + (weight**2 * simulated.var(ddof=1) / many if weight else 0.0)
    half = stats.t.ppf((1 + confidence) / 2, n - 1) * math.sqrt(variance)
    return Estimate(float(mean), float(mean - half), float(mean + half))


def tuned_weight(figures: Array) -> float:
    """The weight that would serve robots like the simulated ones best (PPI++), 0 to 1.

    Each simulated robot in turn plays the real one, and the mean of the others predicts it. figures: (trials, robots).
    """
    weights = []
    for robot in range(figures.shape[1]):
        others = np.delete(figures, robot, axis=1).mean(axis=1)
        spread_of = others.var(ddof=1)
        weights.append(np.cov(figures[:, robot], others)[0, 1] / spread_of if spread_of > 0 else 0.0)
    return float(np.clip(np.mean(weights), 0.0, 1.0))


def plan(policy: Policy, twin: Twin, count: int, task: Task | str | None = None, seed: int = 0) -> Array:
    """Commands to try on the real robot, drawn as the simulated ones are. Shape: (count, columns)."""
    return trials_of(policy, twin, task, seed=seed).commands(count)


def certify(
    policy: Policy,
    twin: Twin,
    commands: Array,
    real: Array,
    belief: Belief | None = None,
    figure: str = "velocity_error",
    task: Task | str | None = None,
    confidence: float = 0.9,
    seed: int = 0,
    threads: int = 0,
    evidence: str = "real runs",
) -> Certificate:
    """An interval of a policy's real performance over its commands.

    Args:
        policy: with its contract.
        twin: the robot as modelled.
        commands: of the real trials, drawn by `plan`. Shape: (n, columns).
        real: the figure that each of them showed. Shape: (n,).
        belief: what simulated robots are drawn from; the preset `wide` unless given.
        figure: one of `FIGURES`.
        task: by name or as it is; told from the policy's commands unless given.
        confidence: of the interval.
        seed: of simulated robots.
        threads: of physics, 0 for one per core.
        evidence: what the trials are.
    """
    if figure not in FIGURES:
        raise BadInput(f"what is certified is one of {', '.join(FIGURES)}, not {figure!r}")
    if len(real) < FEWEST:
        raise BadInput(f"at least {FEWEST} real trials are needed for an interval, not {len(real)}")
    trials = trials_of(policy, twin, task, seed=seed + 1, threads=threads)
    every = np.concatenate([commands, trials.commands(SIMULATED)])
    figures = simulate(trials, every, belief, figure)
    weight = tuned_weight(figures[len(real) :])
    predicted = figures.mean(axis=1)
    mine, others = predicted[: len(real)], predicted[len(real) :]
    return Certificate(
        twin.name,
        figure,
        FIGURES[figure][0],
        confidence,
        len(real),
        SIMULATED * ROBOTS,
        weight,
        estimate(real, mine, others, weight, confidence),
        estimate(real, mine, others, 0.0, confidence),
        float(others.mean()),
        evidence,
    )


def simulate(trials: Trials, commands: Array, belief: Belief | None, figure: str) -> Array:
    """The figure of each command on each of the drawn robots, which are the same for all commands. Shape: (n, robots)."""
    source = draw_from("wide", trials.twin) if belief is None else belief
    assert source is not None
    robots = trials.twin.expand(source.sample(ROBOTS, np.random.default_rng([trials.seed, 0xCE])), source.space)
    values = np.tile(robots, (len(commands), 1))
    result = trials.run(values, np.repeat(commands, ROBOTS, axis=0))
    return FIGURES[figure][1](result).reshape(len(commands), ROBOTS)


def try_standin(
    policy: Policy,
    spec: StandInSpec,
    commands: Array,
    figure: str,
    task: Task | str | None = None,
    seed: int = 0,
    threads: int = 0,
) -> Array:
    """The figure that a stand-in shows in trials, one for each command. Shape: (n,)."""
    robot = build_standin(spec)
    secrets = StandIn(spec).reveal()
    trials = trials_of(policy, robot, task, seed=seed, threads=threads)
    values = np.array([secrets[name] for name in robot.space.names])
    return FIGURES[figure][1](trials.run(spread([values], len(commands)), commands))


def read_trials(path: str | os.PathLike[str], columns: Sequence[str], figure: str) -> tuple[Array, Array]:
    """Real trials from a CSV file: a column for each command, and one with the figure. Shapes: (n, columns), (n,)."""
    rows = list(csv.DictReader(io.StringIO(text(Path(path), MAX_FILE))))
    wanted = [*columns, figure]
    if not rows or (missing := [c for c in wanted if c not in rows[0]]):
        raise BadInput(
            f"{path}: a table of trials has the columns {', '.join(wanted)}" + (f"; {missing[0]} is missing" if rows else "")
        )
    try:
        table = np.array([[float(row[c]) for c in wanted] for row in rows])
    except (TypeError, ValueError):
        raise BadInput(f"{path}: every row needs a number in each of the columns {', '.join(wanted)}") from None
    if not np.isfinite(table).all():
        raise BadInput(f"{path}: every number must be finite")
    return table[:, :-1], table[:, -1]
