"""Believes: what an adaptive policy takes its robot for while it runs, beside the truth, before and after the robot changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import RenderableType

from gapless.arrays import Array, Bools
from gapless.errors import BadInput
from gapless.learn import Environment, Truth, context_of, enter, with_commands
from gapless.report import BLUE, ORANGE, Plot, Result, Section, Table, Verdict, in_terminal, line

ROBOTS = 96
"""A third of them are shown or scored, the others tell how to read a learned vector."""
SECONDS, SINCE = 8.0, 4.0
"""Of a run, and when its robot becomes another [s]."""
RIDGE = 1e-2
SHOWN = 8
"""Parameters that are drawn, those that are known best."""


@dataclass(frozen=True, repr=False)
class Believed(Result):
    """What a policy believed about its robots."""

    NAME = "believes"

    policy: str
    names: tuple[str, ...]
    time: Array
    """[s]. Shape: (periods,)."""
    truth: Array
    """Of one robot, from -1 to 1 over what training drew. Shape: (periods, parameters)."""
    said: Array
    """What the policy's z says of it."""
    known: Array
    """Share of each parameter's variance over robots that z explains, in the last second before the change."""
    error: Array
    """Root mean square over robots and parameters that are known, by time. Shape: (periods,)."""

    @property
    def title(self) -> str:
        return f"What {self.policy} believes about its robot"

    def verdict(self) -> Verdict:
        order = np.argsort(-self.known)
        best = ", ".join(f"{self.names[i]} ({self.known[i]:.0%})" for i in order[:3])
        back = self.recovered()
        text = f"Most of what varies is known of {best}. "
        text += "After a change of the robot the error "
        text += f"is back to 1.2 times what it was within {back:.2f} s." if np.isfinite(back) else "does not come back."
        return Verdict(text, good=bool(self.known.max() > 0.5 and back <= 1.0))

    def recovered(self) -> float:
        """Time after the change until the error is within 1.2 times that before it [s]; infinite where it never is."""
        usual = self.error[(self.time > SINCE - 1) & (self.time <= SINCE)].mean()
        wrong = np.flatnonzero((self.time >= SINCE - 1e-9) & (self.error > 1.2 * usual))
        if not len(wrong):
            return 0.0
        return float(self.time[wrong[-1] + 1] - SINCE) if wrong[-1] + 1 < len(self.time) else np.inf

    def sections(self) -> Iterator[Section]:
        yield self._known()
        plots = []
        for i in np.argsort(-self.known)[:SHOWN]:
            data = [line(self.time, self.truth[:, i], ORANGE, 2), line(self.time, self.said[:, i], BLUE)]
            plots.append(Plot(self.names[i], data, {"yaxis": {"range": [-1.5, 1.5]}}))
        legend = (("true", ORANGE), ("what the policy's z says", BLUE))
        yield Section("One robot, which becomes another after 4 s", plots=plots, legend=legend)
        yield Section("Error over robots", plots=[Plot("root mean square", [line(self.time, self.error, BLUE)])], wide=True)

    def glance(self) -> Iterable[RenderableType]:
        return [in_terminal(self._known())]

    def _known(self) -> Section:
        rows = [[self.names[i], f"{max(self.known[i], 0):.0%}"] for i in np.argsort(-self.known)]
        return Section("What is known after three seconds", table=Table(("parameter", "of its variance"), rows))


def believes(folder: Path, seed: int = 1, threads: int = 0) -> Believed:
    """Run a policy that finds its context in its history, on robots that it has never met, and read what it believes."""
    entrant = enter(folder, seed=seed)
    policy, twin, context = entrant.policy, entrant.twin, entrant.policy.contract.context
    if context is None or context.provider != "history":
        raise BadInput(f"{folder}: its policy does not estimate a context from its history, so it believes nothing")
    told = context_of(entrant.belief)
    truth, rng = Truth(told, twin), np.random.default_rng([seed, 0xBE])
    environment = Environment(twin, with_commands(entrant.task, None), ROBOTS, entrant.belief, rng, threads, policy.contract)
    seen, rows = environment.reset()["policy"], list[tuple[Array, Array]]()
    policy.reset()
    periods = round(SECONDS / twin.control_dt)
    for k in range(periods):
        if k == round(SINCE / twin.control_dt):
            environment.worlds.redraw()
        true = truth(environment.worlds)
        action = policy(seen)
        assert policy.believes is not None
        rows.append((true, policy.believes.astype(float)))
        step = environment.step(action)
        policy.reset(step.failed | step.timeout)
        seen = step.observation["policy"]
    true, z = (np.array(part) for part in zip(*rows, strict=True))
    time = twin.control_dt * np.arange(periods, dtype=float)
    return _read(str(folder), told.names, time, true, z, context.low is None)


def _read(policy: str, names: tuple[str, ...], time: Array, true: Array, z: Array, coded: bool) -> Believed:
    """Scores and pictures of what was believed: shapes (periods, robots, parameters) and (periods, robots, size)."""
    settled, shown = (time > SINCE - 1) & (time <= SINCE), slice(2 * ROBOTS // 3, None)
    said = _decoded(true, z, settled) if coded else z
    wrong = (said - true)[:, shown]
    spread = true[settled][:, shown].var(axis=(0, 1))
    known = 1 - (wrong[settled] ** 2).mean(axis=(0, 1)) / np.maximum(spread, 1e-9)
    counts = known > 0.25 if (known > 0.25).any() else known == known.max()
    error = np.sqrt((wrong[:, :, counts] ** 2).mean(axis=(1, 2)))
    return Believed(policy, names, time, true[:, -1], said[:, -1], known, error)


def _decoded(true: Array, z: Array, settled: Bools) -> Array:
    """A learned vector read as parameters, by a linear map from other robots than those that are scored."""
    learn = slice(0, 2 * ROBOTS // 3)
    x = z[settled][:, learn].reshape(-1, z.shape[2])
    x1 = np.column_stack([x, np.ones(len(x))])
    y = true[settled][:, learn].reshape(-1, true.shape[2])
    weights = np.linalg.solve(x1.T @ x1 + RIDGE * len(x) * np.eye(x1.shape[1]), x1.T @ y)
    return np.asarray(z @ weights[:-1] + weights[-1])
