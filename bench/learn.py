"""How well and how quickly policies learn: plain trainings of `gapless train`, judged on the course.

    python -m bench.learn [--json] [--robot quadruped] [--residual] [--seeds 3] [--iterations N] [--threads 0]

Each seed is trained from nothing and judged on 216 unseen randomised robots (biped: 54) with pushes, and on the nominal robot.
The raw limit is a C loop of `mj_step` over the same model, worlds and substeps, measured in the same process before training.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
from rich.console import Console

from bench.raw_loop import compiled, states
from gapless.learn import course
from gapless.learn.learner import Progress
from gapless.learn.run import News, Run, train
from gapless.learn.settings import settings_of
from gapless.policy.folder import load
from gapless.worlds import Worlds

PUBLISHED = {"falls": 0.01, "velocity_error": 0.12, "yaw_error": 0.13}
"""What the quadruped is to reach."""


def raw_speed(run: Run) -> float:
    """Control steps per second of the raw loop on two threads, the robot trotting on the spot under random targets."""
    twin, worlds = run.twin(), run.settings.worlds
    made = Worlds(twin, worlds)
    rng, periods = np.random.default_rng(0), 40
    targets = made.home_command + 0.2 * rng.standard_normal((worlds, periods, twin.model.nu))
    control = np.ascontiguousarray(np.repeat(targets, twin.substeps, axis=1))
    start = states(twin.model, np.tile(made.home, (worlds, 1)))
    with compiled() as loop:
        best = 0.0
        for _ in range(3):
            began = time.perf_counter()
            loop(twin.model, start.copy(), control)
            best = max(best, worlds * periods / (time.perf_counter() - began))
    return best


def one(run: Run, folder: Path, threads: int, console: Console) -> dict[str, float]:
    """Train and judge."""
    raw = raw_speed(run)
    seen: list[Progress] = []

    def tell(news: News) -> None:
        seen.append(news.progress)
        if news.held_out is not None:
            console.print(
                f"seed {run.seed}, {news.progress.iteration}: {news.progress.reward:.2f}, held out {news.held_out:.2f}"
            )

    began = time.perf_counter()
    train(run, folder, tell, threads=threads)
    minutes = (time.perf_counter() - began) / 60
    policy = load(folder)
    twin, task, belief = run.build()
    figures: dict[str, float] = {"seed": run.seed, "minutes": minutes}
    for name, robots, draws in (("", belief, course.DRAWS), ("nominal_", None, 1)):
        rng = np.random.default_rng([1000 + run.seed, 3])
        result = course.run(
            twin, task, policy, robots, rng, draws, threads=threads, contract=policy.contract, reset=policy.reset
        )
        summary = result.summary()
        figures |= {name + k: summary[k] for k in ("falls", "success", "velocity_error", "yaw_error") if k in summary}
    collect, update = sum(p.collect for p in seen), sum(p.update for p in seen)
    steps = sum(p.steps for p in seen)
    figures |= {
        "steps": steps,
        "steps_per_second": steps / (collect + update),
        "ratio_to_raw": steps / (collect + update) / raw,
        "collect_share": collect / (collect + update),
    }
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON line, last")
    parser.add_argument("--task", default="velocity")
    parser.add_argument("--robot", default="quadruped")
    parser.add_argument("--residual", action="store_true", help="the policy adds to an open-loop trot")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--iterations", type=int, default=0, help="0: as many as plain `gapless train` does")
    parser.add_argument("--threads", type=int, default=0)
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    console = Console(stderr=True, highlight=False)
    settings = settings_of(options.task, Run(options.task, options.robot).twin())
    if options.iterations:
        settings = dataclasses.replace(settings, iterations=options.iterations)
    results = []
    for seed in range(options.seeds):
        with tempfile.TemporaryDirectory() as folder:
            run = Run(options.task, options.robot, seed=seed, residual=options.residual, settings=settings)
            results.append(one(run, Path(folder), options.threads, console))
        print(", ".join(f"{k} {v:.4g}" for k, v in results[-1].items()))
    mean = {k: statistics.mean(r[k] for r in results) for k in results[0] if k != "seed"}
    worst = {f"worst_{k}": max(r[k] for r in results) for k in PUBLISHED if k in results[0]}
    if options.json:
        print(json.dumps({**mean, **worst, "seeds": options.seeds}))


if __name__ == "__main__":
    main()
