"""How well and how quickly policies learn: plain trainings of `gapless train`, judged on the course.

    python -m bench.learn [--json] [--task velocity] [--robot quadruped] [--seeds 3] [--out out/learn]
    python -m bench.learn --preset none            # beside: without randomisation, with history, with a memory
    python -m bench.learn --history 5
    python -m bench.learn --lstm 64                # learns without mirrored batches; so does --no-mirror
    python -m bench.learn --slow 0.3               # commands that grow from 0.3 of their ranges

Each seed is trained from nothing and judged on unseen robots of the preset `wide` with pushes (216 runs, biped 54), and on the
nominal robot. Intervals (90 %) are drawn over seeds and runs. Finished seeds are kept in --out and not trained again. Where
those of a plain training of the same length are there too, the difference to them is shown: on the same robots, run by run.
Beside it stands what a policy reaches whose actions are zero (`nothing_...`): home, or on two legs the open-loop gait.
The raw limit is a C loop of `mj_step` over the same model, worlds and substeps, timed at each checkpoint of the training (which
is not charged for it); what physics, the network, the update and the rest take is measured in a few iterations before.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from bench.raw_loop import compiled, states
from gapless.files import atomic
from gapless.learn import (
    COURSE_DRAWS,
    Environment,
    Learner,
    News,
    Progress,
    Run,
    build_contract,
    draw_from,
    ppo_settings,
    run_course,
    train,
)
from gapless.policy import load_policy
from gapless.twin import Belief, Stated
from gapless.worlds import Worlds

JUDGED = ("falls", "success", "velocity_error", "yaw_error")
DRAWS = 1000  # of seeds and runs, for intervals


@contextmanager
def raw_limit(run: Run) -> Iterator[Callable[[], float]]:
    """A measurement of the raw loop: control steps per second on two threads, the robot on the spot under random targets."""
    twin, worlds = run.twin(), run.settings.worlds
    made = Worlds(twin, worlds)
    rng, periods = np.random.default_rng(0), 40
    targets = made.home_command + 0.2 * rng.standard_normal((worlds, periods, twin.model.nu))
    control = np.ascontiguousarray(np.repeat(targets, twin.substeps, axis=1))
    start = states(twin.model, np.tile(made.home, (worlds, 1)))
    with compiled() as loop:

        def measure() -> float:
            began = time.perf_counter()
            loop(twin.model, start.copy(), control)
            return worlds * periods / (time.perf_counter() - began)

        yield measure


def spent(run: Run, threads: int) -> dict[str, float]:
    """Shares of the time of an iteration: physics, the network's inference, the update, and the rest."""
    twin, task, belief = run.build()
    learner = Learner(lambda rng, _: Environment(twin, task, run.settings.worlds, belief, rng, threads), run.settings, run.seed)
    learner.iterate()
    took = {"physics": 0.0, "inference": 0.0}

    def timed(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*given: Any) -> Any:
            began = time.perf_counter()
            out = call(*given)
            took[name] += time.perf_counter() - began
            return out

        return wrapped

    learner.environment.worlds.step = timed("physics", learner.environment.worlds.step)  # type: ignore[method-assign]
    learner.alg.act = timed("inference", learner.alg.act)
    seen = [learner.iterate() for _ in range(4)]
    whole = sum(p.collect + p.update for p in seen)
    took["update"] = sum(p.update for p in seen)
    took["rest"] = whole - sum(took.values())
    return {f"{name}_share": t / whole for name, t in took.items()}


def learned(run: Run, folder: Path, threads: int, console: Console, robots: Belief | None = None) -> dict[str, Any]:
    """What a training came to, told in a line; one that is finished already is read from its folder."""
    file = folder / "figures.json"
    if not file.is_file():
        figures = one(run, folder, threads, console, robots)
        with atomic(file) as part:
            part.write_text(json.dumps(figures))
    figures = json.loads(file.read_text())
    print(", ".join(f"{k} {v:.4g}" for k, v in figures.items() if not k.endswith("_each")), flush=True)
    return dict(figures)


def one(run: Run, folder: Path, threads: int, console: Console, robots: Belief | None = None) -> dict[str, Any]:
    """Train and judge, on robots of the preset `wide` unless others are given; the errors of every run are kept."""
    parts = spent(run, threads)
    seen: list[Progress] = []
    raw: list[float] = []
    with raw_limit(run) as measure:
        measuring = 0.0

        def tell(news: News) -> None:
            nonlocal measuring
            seen.append(news.progress)
            if news.unseen is not None:
                began = time.perf_counter()
                raw.append(measure())
                measuring += time.perf_counter() - began
                console.print(
                    f"seed {run.seed}, {news.progress.iteration}: {news.progress.reward:.2f}, unseen robots {news.unseen:.2f}"
                )

        began = time.perf_counter()
        train(run, folder, tell, threads=threads)
        minutes = (time.perf_counter() - began - measuring) / 60
    policy = load_policy(folder)
    twin, task, _ = run.build()
    figures: dict[str, Any] = {"seed": run.seed, "minutes": minutes}
    for name, met, draws in (("", robots or draw_from("wide", twin), COURSE_DRAWS), ("nominal_", None, 1)):
        rng = np.random.default_rng([1000 + run.seed, 3])
        result = run_course(twin, task, policy, met, rng, draws, threads=threads)
        summary = result.summary()
        figures |= {name + k: summary[k] for k in JUDGED if k in summary}
        each: dict[str, Any] = {"falls": result.fell, "success": result.success}
        each |= {"velocity_error": result.velocity_error, "yaw_error": result.yaw_error}
        figures |= {f"{name}{k}_each": np.asarray(v, float).tolist() for k, v in each.items() if k in summary}
    collect, update = sum(p.collect for p in seen), sum(p.update for p in seen)
    steps = sum(p.steps for p in seen)
    speed = steps / (collect + update)
    return figures | {"steps": steps, "steps_per_second": speed, "ratio_to_raw": speed / statistics.mean(raw), **parts}


def doing_nothing(run: Run, threads: int) -> dict[str, float]:
    """The simplest policy, every action zero: joints at home, or the open-loop gait where there is one; robots of seed 0."""
    twin, task, _ = run.build()
    actions = len(build_contract(twin, task).action.joints)
    rng = np.random.default_rng([1000, 3])
    result = run_course(twin, task, lambda seen: np.zeros((len(seen), actions)), draw_from("wide", twin), rng, threads=threads)
    return {f"nothing_{k}": v for k, v in result.summary().items() if k in JUDGED}


def summary(results: list[dict[str, Any]]) -> dict[str, float]:
    """Mean over seeds, the worst of them, and intervals over seeds and runs."""
    rng, out = np.random.default_rng(0), {}
    for k in results[0]:
        if not k.endswith("_each"):
            out[k] = statistics.mean(r[k] for r in results)
            continue
        name, each = k.removesuffix("_each"), [np.array(r[k]) for r in results]
        out[f"{name}_low"], out[f"{name}_high"] = _interval(each, rng)
        best = min if name.endswith("success") else max
        out[f"worst_{name}"] = best(r[name] for r in results)
    return {**{k: v for k, v in out.items() if k != "seed"}, "seeds": len(results)}


def difference(results: list[dict[str, Any]], plain: list[dict[str, Any]]) -> dict[str, float]:
    """How much more each error is than with plain settings, with intervals over seeds and runs; each seed has its robots."""
    rng, out = np.random.default_rng(0), {}
    for k in (k for k in results[0] if k.endswith("_each")):
        each = [np.array(a[k]) - np.array(b[k]) for a, b in zip(results, plain, strict=True)]
        name = f"{k.removesuffix('_each')}_difference"
        out[name] = float(np.mean([np.nanmean(e) for e in each]))
        out[f"{name}_low"], out[f"{name}_high"] = _interval(each, rng)
    return out


def _interval(each: list[Any], rng: np.random.Generator) -> tuple[float, float]:
    """Of the mean over seeds of the mean over runs."""
    drawn = [
        np.mean([np.nanmean(rng.choice(each[i], len(each[i]))) for i in rng.integers(0, len(each), len(each))])
        for _ in range(DRAWS)
    ]
    low, high = np.percentile(drawn, (5, 95)).tolist()
    return low, high


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON line, last")
    parser.add_argument("--task", default="velocity")
    parser.add_argument("--robot", default="quadruped")
    parser.add_argument("--kp", type=float, help="gains for a model that takes torque")
    parser.add_argument("--kd", type=float)
    parser.add_argument("--preset", default="wide", help="what worlds of the training are drawn from")
    parser.add_argument("--history", type=int, default=1)
    parser.add_argument("--lstm", type=int, default=0)
    parser.add_argument("--residual", action="store_true", help="the policy adds to an open-loop trot")
    parser.add_argument("--no-mirror", action="store_true", help="batches are not mirrored left to right")
    parser.add_argument("--slow", type=float, default=1.0, help="share of their ranges from which commands grow")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--iterations", type=int, default=0, help="0: as many as plain `gapless train` does")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("out/learn"))
    given = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    console = Console(stderr=True, highlight=False)
    stated = Stated(**{key: gain for key in ("kp", "kd") if (gain := getattr(given, key)) is not None})
    plain = Run(given.task, given.robot, given.preset, history=given.history, residual=given.residual, stated=stated)
    settings = ppo_settings(given.task, plain.twin())
    settings = dataclasses.replace(
        settings,
        recurrent=given.lstm,
        mirror=not given.no_mirror,
        slow=given.slow,
        iterations=given.iterations or settings.iterations,
    )
    robot, length = Path(given.robot).stem, str(settings.iterations)
    robot += "".join(f"-{k}{getattr(given, k):g}" for k in ("kp", "kd") if getattr(given, k) is not None)
    words = [given.task, robot, given.preset, *(w for w in ("residual", "no_mirror") if getattr(given, w))]
    words += [f"slow{given.slow:g}"] if given.slow < 1 else []
    words += [f"history{given.history}", f"lstm{given.lstm}", length]
    plainest = "-".join([given.task, robot, "wide", "history1", "lstm0", length])
    results = []
    for seed in range(given.seeds):
        folder = given.out / "-".join([*words, str(seed)])
        results.append(learned(dataclasses.replace(plain, seed=seed, settings=settings), folder, given.threads, console))
    others = [given.out / f"{plainest}-{seed}" / "figures.json" for seed in range(given.seeds)]
    beside = "-".join(words) != plainest and all(f.is_file() for f in others)
    compared = difference(results, [json.loads(f.read_text()) for f in others]) if beside else {}
    if given.json:
        print(json.dumps(summary(results) | compared | doing_nothing(plain, given.threads)))


if __name__ == "__main__":
    main()
