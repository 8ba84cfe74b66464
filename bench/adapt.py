"""Which way of finding out about a robot is worth it: all methods of `gapless.adapt` on the double pendulum of `bench.memory`.

    python -m bench.adapt [--json] [--seeds 5] [--first 0] [--only rma osi] [--iterations 300] [--out out/adapt]

Masses, payload, gains, friction, delay and noise are hidden as in `bench.memory`, and in every training change in mid-episode,
every 6 s on average. Each method has the same simulated steps: `one_frame`, `lstm` and `direct` (50 frames straight to PPO) all
iterations; `student`, `rma` and `osi` five sixths for their teacher (`teacher`) and the rest for themselves. All are
judged on the same unseen robots, 216 by seed: the share that holds its last link up at the end of 10 s, with robots that stay
as they are and (`changed`) with robots that become another one after 5 s; 90 % intervals over seeds and runs, and the
difference to `one_frame`, run by run. Searches (`cma`, `bayes`, `awr`, `random`) have 50 episodes on each of 8 robots beyond
the trained range, beside `robust` (one_frame), z = 0 and the truth, all by reward per second in 36 other episodes.

On the same 8 robots, plain policies that are adapted: `climb` is a hill climb of one_frame's last layer; `es`, `maml`, `norml`
and `inverse` begin with one_frame and prepare it with the steps of half as many iterations (`inverse`: of a sixth) on top;
`inverse` has 20 episodes, two minutes. `base` is one_frame after two fifths of the iterations; `residual` learns on top of it
for a third of them, beside `scratch`, which has that third from nothing. Finished trainings and scores are kept in --out and
not done again.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from bench.learn import difference, summary
from bench.memory import CELLS, HIDDEN, ITERATIONS, ROBOT
from gapless.adapt import (
    SEARCHES,
    Trials,
    climb,
    episodes,
    load_teacher,
    one_step,
    plan_teacher,
    search,
    train_adaptive,
    train_prepared,
    train_residual,
    tune_head,
)
from gapless.files import atomic
from gapless.learn import COURSE_DRAWS, Environment, Run, box_belief, ppo_settings, run_course, train
from gapless.policy import Policy, load_policy
from gapless.twin import Belief, Point, Stated, Twin, recipe_of, save_belief

CHANGES, SINCE = 6.0, 5.0
LONG = 50
LATENT_ZERO, FAST = "rma_zero", "rma_50hz"
LEARNED = ("one_frame", "lstm", "direct", "teacher", "student", "rma", FAST, LATENT_ZERO, "osi", "base", "residual", "scratch")
PREPARED = ("climb", "es", "maml", "norml", "inverse")
TWO_MINUTES = 20
OUTSIDE = {**HIDDEN, "latency.action": ("", 0.04, 0.06), "inertia.payload": ("of mass", 0.5, 0.75)}
ROBOTS, BUDGET = 8, 50


def kept(file: Path, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Figures of a file, made where it does not exist."""
    if not file.is_file():
        figures = make()
        file.parent.mkdir(parents=True, exist_ok=True)
        with atomic(file) as part:
            part.write_text(json.dumps(figures))
    return dict(json.loads(file.read_text()))


def judged(run: Run, policy: Policy, hidden: Belief, threads: int) -> dict[str, Any]:
    """How many of the unseen robots hold, as they are and after they have changed."""
    twin, task, _ = run.build()
    figures: dict[str, Any] = {}
    for name, change in (("success", False), ("changed_success", True)):
        periods = itertools.count(1)

        def watch(environment: Environment, periods: Any = periods, change: bool = change) -> None:
            if next(periods) == round(SINCE / twin.control_dt) and change:
                environment.worlds.redraw()

        rng = np.random.default_rng([1000 + run.seed, 3])
        result = run_course(twin, task, policy, hidden, rng, COURSE_DRAWS, threads=threads, watch=watch)
        figures |= {name: float(result.success.mean()), f"{name}_each": result.success.astype(float).tolist()}
    return figures


def shortened(run: Run, share: float) -> Run:
    """A training of fewer iterations."""
    iterations = round(share * run.settings.iterations)
    return dataclasses.replace(run, settings=dataclasses.replace(run.settings, iterations=iterations))


def trained(name: str, run: Run, out: Path, threads: int) -> Path:
    """The folder of a method's policy; teachers are shared."""
    folder = out / f"{name}-{run.seed}"
    if (folder / "minutes.json").is_file():
        return folder
    began, settings = time.perf_counter(), run.settings
    if name == "lstm":
        train(dataclasses.replace(run, settings=dataclasses.replace(settings, recurrent=CELLS)), folder, threads=threads)
    elif name in ("one_frame", "direct"):
        train(dataclasses.replace(run, history=LONG if name == "direct" else 1), folder, threads=threads)
    elif name == "teacher":  # as long as that of students, which share it
        train(plan_teacher("rma", run), folder, threads=threads)
    elif name in ("base", "scratch"):
        train(shortened(run, 2 / 5 if name == "base" else 1 / 3), folder, threads=threads)
    elif name == "residual":
        train_residual(shortened(run, 1 / 3), trained("base", run, out, threads), folder, threads=threads)
    elif name in PREPARED:
        train_prepared(name, run, folder, start=trained("one_frame", run, out, threads), threads=threads)
    elif name == LATENT_ZERO:
        teacher = load_teacher(trained("teacher", run, out, threads))
        twin, task, _ = run.build()
        Trials(teacher, twin, twin.space.nominal, task, threads=threads).save(np.zeros(teacher.expert.size), folder, "constant")
    else:
        start = trained("teacher", run, out, threads)
        method, rate = ("rma", 50.0) if name == FAST else (name, 10.0)
        train_adaptive(method, run, folder, start=start, threads=threads, rate=rate)
    kept(folder / "minutes.json", lambda: {"minutes": (time.perf_counter() - began) / 60})
    return folder


def learned(name: str, run: Run, out: Path, hidden: Belief, threads: int, console: Console) -> dict[str, Any]:
    """What a method came to, told in a line."""
    folder = trained(name, run, out, threads)
    figures = kept(folder / "figures.json", lambda: judged(run, load_policy(folder), hidden, threads))
    figures |= json.loads((folder / "minutes.json").read_text()) | {"seed": run.seed}
    console.print(
        f"{name}, seed {run.seed}: " + ", ".join(f"{k} {v:.3g}" for k, v in figures.items() if not k.endswith("each"))
    )
    return figures


def rewarded(policy: Policy, twin: Twin, task: Any, values: Any, seed: int, threads: int) -> float:
    """Reward per second of an episode of a policy that is told nothing, as trials count it."""
    environment = Environment(twin, task, 36, Point(twin.space, values), np.random.default_rng(seed), threads, policy.contract)
    return float(episodes(environment, policy)[0].mean())


def searched(run: Run, out: Path, methods: list[str], threads: int, console: Console) -> dict[str, Any]:
    """Rewards per second of searches on robots beyond the trained range, beside the robust policy and the truth."""
    twin, task, _ = run.build()
    robots = box_belief(twin, OUTSIDE)
    values = twin.expand(robots.sample(ROBOTS, np.random.default_rng([2000 + run.seed])), robots.space)
    robust = load_policy(trained("one_frame", run, out, threads))
    figures: dict[str, Any] = {}
    teacher = load_teacher(trained("teacher", run, out, threads))
    for i, method in itertools.product(range(ROBOTS), methods):

        def make(i: int = i, method: str = method) -> dict[str, Any]:
            trials = Trials(teacher, twin, values[i], task, seed=i, threads=threads)
            found = search(trials, SEARCHES[method](trials.size, np.random.default_rng(i)), trials.size, BUDGET)
            spent = trials.seconds
            after = Trials(teacher, twin, values[i], task, seed=1000 + i, threads=threads)
            told = after.truth()
            tried = {"reward": found.z, "true": told, "zero": 0 * told}
            each = {name: float(np.mean([t.reward for t in after(np.tile(z, (36, 1)))])) for name, z in tried.items()}
            plain = rewarded(robust, twin, task, values[i], i, threads)
            return {**each, "robust": plain, "robot_seconds": spent, "stopped": found.stopped}

        got = kept(out / f"search-{run.seed}" / f"{method}-{i}.json", make)
        console.print(f"{method}, robot {i}: {got}")
        for k in ("reward", "true", "zero", "robust", "robot_seconds"):
            figures.setdefault(f"{method}_{k}", []).append(got[k])
    return figures


def prepared(run: Run, out: Path, methods: list[str], threads: int, console: Console) -> dict[str, Any]:
    """Rewards per second of plain policies before and after they are adapted to robots beyond the trained range."""
    twin, task, _ = run.build()
    robots = box_belief(twin, OUTSIDE)
    values = twin.expand(robots.sample(ROBOTS, np.random.default_rng([2000 + run.seed])), robots.space)
    robust, figures = load_policy(trained("one_frame", run, out, threads)), dict[str, Any]()
    for method, i in itertools.product(methods, range(ROBOTS)):

        def make(i: int = i, method: str = method) -> dict[str, Any]:
            start = trained("one_frame" if method == "climb" else method, run, out, threads)
            adapts = {"es": climb, "climb": climb, "inverse": tune_head}.get(method, one_step)
            budget = TWO_MINUTES if method == "inverse" else BUDGET
            got = adapts(start, (twin, values[i]), out / "adapted" / f"{method}-{run.seed}-{i}", budget, i, threads)
            plain = rewarded(robust, twin, task, values[i], i, threads)
            means = {"reward": float(got.after.mean()), "before": float(got.before.mean()), "robust": plain}
            return {**means, "robot_seconds": float(got.seconds.sum()), "stopped": got.stopped}

        told = kept(out / f"prepared-{run.seed}" / f"{method}-{i}.json", make)
        console.print(f"{method}, robot {i}: {told}")
        for k in ("reward", "before", "robust", "robot_seconds"):
            figures.setdefault(f"{method}_{k}", []).append(told[k])
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON line, last")
    parser.add_argument("--only", nargs="+", default=[], choices=[*LEARNED, *SEARCHES, *PREPARED], help="these methods alone")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--iterations", type=int, default=ITERATIONS)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("out/adapt"))
    given = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    console, out = Console(stderr=True, highlight=False, soft_wrap=True), given.out
    plain = Run("swing", str(ROBOT), stated=Stated(kp=2.0, kd=0.05), changes=CHANGES)
    twin = plain.twin()
    hidden = box_belief(twin, HIDDEN)
    out.mkdir(parents=True, exist_ok=True)
    save_belief(hidden, out / "hidden.json", recipe_of(twin))
    settings = dataclasses.replace(ppo_settings("swing", twin), iterations=given.iterations)
    drawn = dataclasses.replace(plain, preset="narrow", belief=str(out / "hidden.json"), settings=settings)
    wanted = given.only or [*LEARNED, *SEARCHES, *PREPARED]
    names = [name for name in LEARNED if name in wanted]
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    found: dict[str, list[float]] = {}
    for seed in range(given.first, given.first + given.seeds):
        run = dataclasses.replace(drawn, seed=seed)
        for name in names:
            results[name].append(learned(name, run, out, hidden, given.threads, console))
        methods = [m for m in SEARCHES if m in wanted]
        for k, rewards in (searched(run, out, methods, given.threads, console) if methods else {}).items():
            found.setdefault(k, []).extend(rewards)
        methods = [m for m in PREPARED if m in wanted]
        for k, rewards in (prepared(run, out, methods, given.threads, console) if methods else {}).items():
            found.setdefault(k, []).extend(rewards)
    figures: dict[str, float] = {k: float(np.mean(v)) for k, v in found.items()}
    for name, got in results.items():
        told = summary(got) | (difference(got, results["one_frame"]) if "one_frame" in results and name != "one_frame" else {})
        figures |= {f"{name}_{k}": v for k, v in told.items() if k.startswith(("success", "changed", "minutes"))}
    if given.json:
        print(json.dumps(figures))


if __name__ == "__main__":
    main()
