"""How long an update of the networks takes with actor and critic on a core each, beside rsl-rl-lib's own.

    python -m bench.update [--json] [--rounds 8]

The quadruped's plain training. Its batches are mirrored left to right, there by the library's own extension, which also runs
the actor once more to log how symmetric it is. The two take turns; printed are the medians of our time, of theirs, and of the
ratio of neighbours.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from rsl_rl.algorithms import PPO
from rsl_rl.extensions import Symmetry

from gapless.learn import Environment, Learner, Mirror, Run, ppo_settings


def with_image(mirrors: tuple[Mirror, Mirror, Mirror]) -> Callable[..., Any]:
    """A robot's left-right symmetry as rsl-rl-lib asks for it."""

    def image(values: torch.Tensor, mirror: Mirror) -> torch.Tensor:
        return values[:, mirror.index] * torch.from_numpy(mirror.sign.astype(np.float32))

    def augment(env: object, obs: Any, actions: torch.Tensor | None) -> tuple[Any, torch.Tensor | None]:
        if obs is not None:
            there = obs.clone()
            for group, mirror in zip(("policy", "critic"), mirrors, strict=False):
                there[group] = image(obs[group], mirror)
            obs = torch.cat([obs, there])
        return obs, None if actions is None else torch.cat([actions, image(actions, mirrors[2])])

    return augment


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON line, last")
    parser.add_argument("--rounds", type=int, default=8)
    given = parser.parse_args()
    torch.set_num_threads(1)  # as a training does
    twin, task, belief = Run("velocity", "quadruped").build()
    settings = ppo_settings("velocity", twin)
    learner = Learner(lambda rng, _: Environment(twin, task, settings.worlds, belief, rng), settings, 0)
    alg, ours = learner.alg, learner.alg.update
    symmetry = Symmetry(learner.env, with_image(alg.mirrors), use_data_augmentation=True)
    learner.iterate()
    times: list[tuple[float, float]] = []
    for _ in range(given.rounds):
        alg.update, alg.symmetry = ours, None
        here = learner.iterate().update
        alg.update, alg.symmetry = (lambda: PPO.update(alg)), symmetry
        times.append((here, learner.iterate().update))
    figures = {
        "seconds": statistics.median(here for here, _ in times),
        "library_seconds": statistics.median(there for _, there in times),
        "ratio": float(np.median([here / there for here, there in times])),
    }
    print(", ".join(f"{name} {value:.3f}" for name, value in figures.items()))
    if given.json:
        print(json.dumps(figures))


if __name__ == "__main__":
    main()
