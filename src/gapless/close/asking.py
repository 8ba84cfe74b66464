"""Which command to ask a walking robot for, so that the rollout tells most: SPI-Active (Sobanbabu et al. 2025).

Commands are searched with CMA-ES, each judged by what its rollout is expected to tell on simulated robots of the belief; see
`worth`. (Fisher information by slopes over few robots, as published, chose no better than chance here.) A command under which
more of them fall than now and then is none to try on a real one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gapless.arrays import Array
from gapless.close.rollouts import Asked, stopped
from gapless.close.simopt import drawn
from gapless.close.worth import Experiment, told
from gapless.twin import Gaussian, Space

COMMANDS, GENERATIONS = 6, 3
SPREAD = 0.5
"""Standard deviation at first of a search between -1 and 1."""
FEW, FALLS = 40, 0.05
"""Believed robots that a command is tried on first, and the share of them that may fall."""


def rollout(asked: Asked, command: Array, space: Space) -> Experiment:
    """Another rollout of the policy, at a command (columns,)."""

    def measure(x: Array, chance: np.random.Generator) -> Array:
        asked.commands = command[None]
        seen = asked.simulated(space.clip(space.from_scaled(x)), space, chance)
        return asked.features(seen, np.nanstd(seen, axis=(0, 1, 2)) + 1e-6)

    words = f" at {', '.join(f'{v:.1f}' for v in command)}" if len(command) else ""
    return Experiment(f"another policy rollout{words}", asked.seconds, measure)


def left(asked: Asked, command: Array, belief: Gaussian, metric: Array, seed: int) -> float:
    """What a rollout at a command would leave of what may be wrong; above 1 where robots fall."""
    space, rng = belief.space, np.random.default_rng(seed)  # all commands meet the same robots
    asked.commands = command[None]
    fell = stopped(asked.simulated(space.clip(space.from_scaled(drawn(belief, FEW, rng))), space, rng)).mean()
    return float(1 + fell) if fell > FALLS else told(belief, rollout(asked, command, space), metric, rng).left


def telling_command(
    asked: Asked, ranges: Sequence[tuple[float, float]], belief: Gaussian, metric: Array, rng: np.random.Generator
) -> Array:
    """The command within ranges whose rollout is expected to tell most about what matters. Shape: (columns,)."""
    import cma

    low, high = np.array(ranges).T
    n, seed = max(len(low), 2), int(rng.integers(1, 1 << 31))  # CMA-ES needs two
    options = {"bounds": [-1.0, 1.0], "seed": seed, "popsize": COMMANDS, "verbose": -9}
    search = cma.CMAEvolutionStrategy(np.zeros(n), SPREAD, options)

    def at(x: Array) -> Array:
        return np.asarray(low + (x[: len(low)] + 1) / 2 * (high - low))

    for _ in range(GENERATIONS):
        each = search.ask()
        search.tell(each, [left(asked, at(x), belief, metric, seed) for x in each])
    return at(search.result.xbest)
