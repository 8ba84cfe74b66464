"""Whether the gate predicts: policies of different quality, judged by it, against how they do on stand-ins they never met.

    python -m bench.gate [--policies FOLDER] [--robots 20] [--part rank|certify] [--json]

Twelve policies (four trainings of the quadruped, each stopped after 40, 120 and 300 iterations; made in FOLDER unless they are
there) run on stand-ins as `gapless standin --random hard` draws them, by seed. Spearman's rank correlation with the mean
performance there: of the gate's score, of the mean over drawn robots, axes and the worst corner, of the reward on the nominal
robot, and of the reward in the preset `wide`; each with its 90 % interval, and that of the difference from the gate's, over
policies drawn again from the twelve. How many of those that pass survive there, and on `normal` stand-ins. Then
`certify`: how often the 90 % interval from 5 trials on a stand-in holds, and how wide it is against that of the trials alone.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from scipy import stats

from gapless.arrays import Array
from gapless.check import CERTIFIED_FIGURES, estimate, gate, losses, simulate_trials, spread, stress, trials_of, tuned_weight
from gapless.learn import Environment, draw_from, plan_run, task_of, train
from gapless.policy import Policy, load_policy
from gapless.twin import Twin
from gapless.worlds import StandIn, build_standin, draw_standin

TRAININGS = (("none", 1), ("models30", 2), ("wide", 3), ("none", 4))
STOPS = (40, 120, 300)
ROBOT, DIFFICULTY, FIRST = "quadruped", "hard", 700
COMMANDS, SECONDS = 12, 4.0
EACH, RUNS = 8, 96
"""Robots at each level of the stress test, and runs of the gate: half of what they are by default."""
WORLDS, RETURN_SECONDS = 96, 5.0
TRIALS, REPETITIONS, TRUTH = 5, 100, 400
CERTIFIED = 5
"""Stand-ins on which `certify` is repeated."""
FIGURE = "velocity_error"
SCORES = ("gate", "with_axes", "nominal_return", "wide_return")
RESAMPLED = 2000

console = Console(stderr=True)


def policies(folder: Path) -> dict[str, Policy]:
    """The twelve, trained where they are not in the folder."""
    out = {}
    for preset, seed in TRAININGS:
        run = plan_run("velocity", ROBOT, preset=preset, settings={"iterations": STOPS[-1]}, seed=seed)
        run = replace(run, settings=replace(run.settings, every=STOPS[0]))
        work = folder / f"{preset}-{seed}"
        for number, stop in enumerate(STOPS):
            kept = folder / f"{work.name}-{stop}"
            if not (kept / "policy.onnx").is_file():
                console.print(f"training {kept.name}")
                train(run, work, resume=number > 0, iterations=stop)
                shutil.copytree(work, kept, dirs_exist_ok=True)
            out[kept.name] = load_policy(kept)
    return out


def reward(policy: Policy, preset: str) -> float:
    """Mean reward per second in a preset."""
    twin = Twin.load(ROBOT)
    environment = Environment(
        twin, task_of("velocity", twin), WORLDS, draw_from(preset, twin), np.random.default_rng(17), 0, policy.contract
    )
    observation, total = environment.reset()["policy"], 0.0
    policy.reset()
    for _ in range(round(RETURN_SECONDS / twin.control_dt)):
        step = environment.step(policy(observation))
        policy.reset(step.failed | step.timeout)
        observation, total = step.observation["policy"], total + float(step.reward.mean())
    return total / RETURN_SECONDS


def on_standin(policy: Policy, seed: int, commands: Array | None = None, difficulty: str = DIFFICULTY, **more: Any) -> Any:
    """Runs of a policy on a stand-in, one for each command."""
    spec = draw_standin(ROBOT, difficulty, seed)
    twin, secrets = build_standin(spec), StandIn(spec).reveal()
    trials = trials_of(policy, twin, "velocity", seed=seed, **more)
    asked = trials.commands(COMMANDS) if commands is None else commands
    values = np.array([secrets[name] for name in twin.space.names])
    return trials.run(spread([values], len(asked)), asked, trials.usual_push if commands is None else 0.0)


def rank(every: dict[str, Policy], robots: int) -> dict[str, Any]:
    """How well each score predicts performance on stand-ins."""
    twin, rows = Twin.load(ROBOT), {}
    for name, policy in every.items():
        started = time.perf_counter()
        stressed = stress(policy, twin, task="velocity", each=EACH, seconds=SECONDS, runs=RUNS)
        verdict = gate(policy, twin, task="velocity", stressed=stressed)
        axes = [float(np.mean(c.loss)) for c in stressed.curves]
        seconds = time.perf_counter() - started
        met = [on_standin(policy, FIRST + k, seconds=SECONDS) for k in range(robots)]
        rows[name] = {
            "gate": verdict.score,
            "with_axes": 1 - float(np.mean([stressed.together.loss, np.mean(axes), stressed.corner.loss])),
            "answer": verdict.answer,
            "why": verdict.verdict().text,
            "nominal_return": reward(policy, "none"),
            "wide_return": reward(policy, "wide"),
            "performance": 1 - float(np.mean([losses(r).mean() for r in met])),
            "survival": float(np.mean([1 - r.fell.mean() for r in met])),
            "gate_seconds": seconds,
        }
        if verdict.answer == "pass":
            usual = [on_standin(policy, FIRST + k, difficulty="normal", seconds=SECONDS) for k in range(robots)]
            rows[name]["survival_normal"] = float(np.mean([1 - r.fell.mean() for r in usual]))
        console.print(name, {k: v if isinstance(v, str) else round(v, 3) for k, v in rows[name].items()})
    scores = {name: np.array([r[name] for r in rows.values()]) for name in (*SCORES, "performance")}
    correlations = {name: _rank(scores, name, np.arange(len(rows))) for name in SCORES}
    rng = np.random.default_rng(0)
    again = [rng.integers(len(rows), size=len(rows)) for _ in range(RESAMPLED)]
    spread_of = {name: np.array([_rank(scores, name, which) for which in again]) for name in SCORES}
    passed = [r["survival"] for r in rows.values() if r["answer"] == "pass"]
    share = float(np.mean(passed)) if passed else None
    return {
        "policies": rows,
        "correlations": correlations,
        "intervals": {name: _interval(values) for name, values in spread_of.items()},
        "gate_minus": {name: _interval(spread_of["gate"] - spread_of[name]) for name in SCORES[1:]},
        "passed": len(passed),
        "survival_of_passed": share,
        "robots": robots,
    }


def _rank(scores: dict[str, Array], name: str, which: Any) -> float:
    """Rank correlation of a score with performance, over some of the policies."""
    return float(stats.spearmanr(scores[name][which], scores["performance"][which]).statistic)


def _interval(values: Array) -> list[float]:
    """The middle 90 %; policies drawn again may all be one, which has no rank."""
    return [float(q) for q in np.nanquantile(values, (0.05, 0.95))]


def certified(policy: Policy) -> dict[str, Any]:
    """How often the interval from a few trials on a stand-in holds, over repetitions on several."""
    twin, figure = Twin.load(ROBOT), CERTIFIED_FIGURES[FIGURE][1]
    trials = trials_of(policy, twin, "velocity", seed=5, seconds=SECONDS)
    each = REPETITIONS // CERTIFIED
    asked = trials_of(policy, twin, "velocity", seed=6).commands(each * TRIALS)
    figures = simulate_trials(trials, np.concatenate([asked, trials.commands(128)]), None, FIGURE)
    weight, predicted = tuned_weight(figures[len(asked) :]), figures.mean(axis=1)
    mine, others = predicted[: len(asked)], predicted[len(asked) :]
    held, alone_held, ratios = [], [], []
    for k in range(CERTIFIED):
        commands = trials_of(policy, twin, "velocity", seed=7).commands(TRUTH)
        truth = float(figure(on_standin(policy, FIRST + k, commands, seconds=SECONDS)).mean())
        real = figure(on_standin(policy, FIRST + k, asked, seconds=SECONDS))
        for r in range(each):
            rows = slice(r * TRIALS, (r + 1) * TRIALS)
            both = estimate(real[rows], mine[rows], others, weight)
            alone = estimate(real[rows], mine[rows], others, 0.0)
            held.append(both.low <= truth <= both.high)
            alone_held.append(alone.low <= truth <= alone.high)
            ratios.append(both.width / alone.width)
    return {
        "weight": weight,
        "coverage": float(np.mean(held)),
        "coverage_alone": float(np.mean(alone_held)),
        "width_ratio_median": float(np.median(ratios)),
        "repetitions": len(held),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policies", type=Path, default=Path("out/gate"))
    parser.add_argument("--robots", type=int, default=20)
    parser.add_argument("--part", choices=("rank", "certify"))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    every = policies(options.policies)
    result: dict[str, Any] = {}
    if options.part != "rank":
        result["certify"] = certified(every["wide-3-120"])
        console.print(result["certify"])
    if options.part != "certify":
        result |= rank(every, options.robots)
        console.print(
            result["correlations"],
            result["intervals"],
            result["gate_minus"],
            f"survival of those that pass: {result['survival_of_passed']}",
        )
        result["spearman"] = result["correlations"]["gate"]
    if options.json:
        print(json.dumps(result))
        if "spearman" in result:
            print(json.dumps({"spearman": result["spearman"]}))


if __name__ == "__main__":
    main()
