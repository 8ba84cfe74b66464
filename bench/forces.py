"""Whether a curriculum of force helps a hand that is pulled at (FALCON, Zhang et al. 2025), by `gapless train --adapt forces`.

    python -m bench.forces [--json] [--seeds 1] [--robot arm] [--task reach] [--iterations 150] [--out out/forces]

Three trainings of equal length on robots of the preset `wide`: `curriculum` (forces grow with success), `at_once` (they are as
large as they get from the first step) and `none` (nothing pulls). All are judged on the same unseen robots, pulled at with the
largest forces: the mean distance of the hand from its target over the last second before each new command (with legs: falls),
with 90 % intervals over robots. Finished trainings are kept in --out.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from gapless.adapt import Curriculum, Pulled, train_forces
from gapless.files import atomic
from gapless.learn import Run, plan_run
from gapless.policy import load_policy

CURRICULA = {"curriculum": (0.1, True), "at_once": (1.0, False), "none": (0.0, False)}
ROBOTS, SECONDS = 216, 12.0


def judged(run: Run, folder: Path, scale: float, threads: int) -> tuple[list[float], float]:
    """By robot: distance of the hand [m] while it should have arrived; and the share of robots that fell."""
    twin, task, belief = run.build()
    rng, policy = np.random.default_rng([1000 + run.seed, 3]), load_policy(folder)
    full = Curriculum(scale, moves=False)
    environment = Pulled(twin, task, ROBOTS, belief, rng, threads, policy.contract, curriculum=full)
    seen, dt, away, fell = environment.reset()["policy"], twin.control_dt, list[Any](), np.zeros(ROBOTS, bool)
    for k in range(round(SECONDS / dt)):
        step = environment.step(policy(seen))
        seen, fell = step.observation["policy"], fell | step.failed
        into = (k * dt) % task.episode.command_every
        if "distance" in step.metrics and into > task.episode.command_every - 1.0:
            away.append(step.metrics["distance"])
    return np.nanmean(away, axis=0).tolist() if away else [], float(fell.mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON line, last")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--robot", default="arm")
    parser.add_argument("--task", default="reach")
    parser.add_argument("--iterations", type=int, default=150)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("out/forces"))
    given = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    console, figures = Console(stderr=True, highlight=False), dict[str, float]()
    each: dict[str, list[float]] = {}
    for seed in range(given.seeds):
        run = plan_run(given.task, given.robot, settings={"iterations": given.iterations}, seed=seed)
        for name, (scale, moves) in CURRICULA.items():
            folder = given.out / f"{given.robot}-{name}-{seed}"
            file = folder / "figures.json"
            if not file.is_file():
                came = train_forces(run, folder, threads=given.threads, curriculum=Curriculum(scale, moves)).scale
                (pulled, fell), (free, _) = (judged(run, folder, s, given.threads) for s in (1.0, 0.0))
                with atomic(file) as part:
                    part.write_text(json.dumps({"pulled": pulled, "free": free, "fell": fell, "scale": came}))
            got = json.loads(file.read_text())
            for kind in ("pulled", "free"):
                each.setdefault(f"{name}_{kind}", []).extend(got[kind])
            each.setdefault(f"{name}_fell", []).append(got["fell"])
            each.setdefault(f"{name}_scale", []).append(got["scale"])
            console.print(f"{name}, seed {seed}: force {got['scale']:.2f}, fell {got['fell']:.3f}")
    rng = np.random.default_rng(0)
    for name, values in each.items():
        if values:
            drawn = rng.choice(values, (1000, len(values))).mean(axis=1)
            figures[name] = float(np.mean(values))
            figures |= {f"{name}_low": float(np.quantile(drawn, 0.05)), f"{name}_high": float(np.quantile(drawn, 0.95))}
    console.print(figures)
    if given.json:
        print(json.dumps(figures))


if __name__ == "__main__":
    main()
