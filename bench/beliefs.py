"""Whether beliefs that move do what they are for: ADR, SimOpt, posteriors, a classifier, and the choice of the next experiment.

    python -m bench.beliefs [--json] [--only adr,posterior] [--seeds 2] [--out out/bench_beliefs]

On the double pendulum (adr, simopt, autotuned, next), the bench (posterior) and the quadruped (asked). Hidden robots step
twice as finely as the model, and everything that is not named is off within its tolerance.

adr        ranges that grow, beside fixed narrow and wide ones of as many steps, on a grid of hidden robots; does entropy rise?
simopt     a robot beyond the first belief (commands 70 ms late): success of the first policy and of the kept one after 5 rounds
           and 15 rollouts, and the largest divergence of an update
posterior  an amortised network: do 90 % regions hold the truth; as modelled, with half the time step, and with 10 ms of delay
           besides; seconds a log. strict: the same without doubt about all that it is not asked for
bayessim   as simopt, by posteriors
autotuned  numbers 1.75 times wrong: which are within 10 % after 30 episodes, in three updates
next       the next experiment chosen by its worth, beside a fixed recipe of as much robot time, on 10 robots
asked      on the quadruped that walks: the loss after one rollout of 4 s at the command that is searched for (SPI-Active),
           beside ten random commands and straight ahead, on 10 robots

Finished parts are kept in --out by seed and not done again.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from gapless.check import trials_of
from gapless.close import (
    METHODS,
    Asked,
    Case,
    Experiment,
    Moved,
    divergence,
    field_twin,
    first_belief,
    matters,
    move,
    named,
    next_experiment,
    reps,
    shipped,
    telling_command,
    told,
)
from gapless.identify import calibrate, learn_amortised, measure_motion, posterior_space, robots_of
from gapless.learn import draw_from, plan_run, task_of, train
from gapless.plain import read_json, write_json
from gapless.policy import load_policy
from gapless.twin import BeliefHistory, Box, Gaussian, Stated, Twin, recipe_of, save_belief, within_tolerance
from gapless.worlds import StandInSpec, build_standin, plan_motion

ITERATIONS = 300
GRID = {
    "latency.action": (0.0, 0.02, 0.04),
    "motor.strength/*": ("x0.75", "x1", "x1.3"),
    "inertia.mass/lower": ("x0.8", "x1.4"),
    "friction.coulomb/*": ("x0.5", "x3"),
}
"""Hidden robots of `adr`: within the ranges of the field and beyond them."""
STARTS = 4
WRONG = 1.75
SIMULATIONS = 1000
"""That a network learns from: half a minute of one core."""
NEXT_SECONDS, NEXT_ROUNDS, NEXT_ROBOTS = 4.0, 4, 10


def trained(folder: Path, name: str, seed: int, **more: Any) -> Path:
    """A policy for the pendulum, from nothing."""
    out = folder / f"{name}{seed}"
    if not (out / "done").is_file():
        run = plan_run("swing", "pendulum", settings={"iterations": ITERATIONS}, seed=seed, **more)
        train(run, out, resume=(out / "checkpoint.pt").is_file())
        (out / "done").touch()
    return out


def on_grid(policy: Path, seed: int) -> float:
    """Success on the grid of hidden robots."""
    rows = []
    for values in itertools.product(*GRID.values()):
        twin, each = field_twin(StandInSpec("pendulum", 50 + seed, change=dict(zip(GRID, values, strict=True))))
        rows.append(each)
    runs = trials_of(load_policy(policy), twin, "swing", seed=1 + seed, seconds=10.0)
    return float(runs.run(np.repeat(np.array(rows), STARTS, axis=0)).success.mean())


def adr(folder: Path, seed: int) -> dict[str, Any]:
    twin = Twin.load("pendulum")
    wide = draw_from("wide", twin)
    assert isinstance(wide, Box)
    narrow = folder / "narrow.json"
    save_belief(within_tolerance(wide.space), narrow, recipe_of(twin))
    policies = {
        "adr": trained(folder, "adr", seed, adr=True),
        "wide": trained(folder, "wide", seed, preset="wide"),
        "narrow": trained(folder, "narrow", seed, preset="narrow", belief=narrow),
    }
    grown = BeliefHistory.load(policies["adr"] / "ranges")
    found = {name: on_grid(policy, seed) for name, policy in policies.items()}
    rank = float(spearmanr(grown.at, grown.entropy).statistic) if np.ptp(grown.entropy) else 0.0
    return found | {
        "rank_correlation": rank,
        "entropy": [grown.entropy[0], grown.entropy[-1]],
        "over_better_fixed": found["adr"] / max(found["wide"], found["narrow"], 1e-9),
    }


def simopt(folder: Path, seed: int, method: str = "simopt") -> dict[str, Any]:
    base = trained(folder, "wide", seed, preset="wide")
    spec = StandInSpec("pendulum", 70 + seed, change={"latency.action": 0.07}, sensors={"noise_q": 0.0005, "noise_dq": 0.02})
    case = Case("pendulum", "swing", spec, base=str(base), policy=str(base), iterations=60, seed=seed)
    result: Moved = move(case, folder / f"{method}{seed}", method)
    said = [r.said for r in result.rounds]
    found = dict(zip(result.history.names, result.history.middle[-1].tolist(), strict=True))
    return {
        "first": result.success["first"],
        "kept": result.success["kept"],
        "robot_seconds": result.robot_seconds,
        "rollouts": 3 * len(result.rounds),
        "lost": [r.lost for r in result.rounds],
        "distance": [[r.before, r.after] for r in result.rounds],
        "latency_found": found["latency.action"],
        "said": said,
        "largest_divergence": _largest(case, base) if method == "simopt" else None,
    }


def _largest(case: Case, policy: Path) -> float:
    """The largest divergence of 20 updates by costs that pull far off, which a bound of 1 must hold in."""
    belief, rng, out = first_belief(case.twin()), np.random.default_rng(0), []
    for _ in range(20):
        x = belief.centre + rng.standard_normal((320, len(belief.space))) @ np.linalg.cholesky(belief.covariance).T
        new = reps(belief, x, ((x - 3.0) ** 2).sum(axis=1))
        out.append(divergence(new, belief))
        belief = new
    return max(out)


def posterior(folder: Path, seed: int, doubt: float = 1.0) -> dict[str, Any]:
    twin, out = Twin.load("bench"), dict[str, Any]()
    names = tuple(n for n in posterior_space(twin).names if not n.startswith("latency"))
    space = posterior_space(twin, names)
    motion = plan_motion("rich", twin, 6.0, np.random.default_rng(1))
    finer = build_standin(StandInSpec("bench", seed))
    robots = {"as modelled": (twin, 0.0), "half the time step": (finer, 0.0), "and 10 ms of delay": (finer, 0.01)}
    began = time.perf_counter()
    known = learn_amortised(twin, motion, np.random.default_rng(seed), space, simulations=SIMULATIONS, doubt=doubt)
    out |= {"learnt_in_s": time.perf_counter() - began, "widened": known.widened, "simulations": SIMULATIONS}
    for what, (hidden, delay) in robots.items():
        rng = np.random.default_rng([seed, 9])
        truth = space.mirrored(rng.standard_normal((50, len(space))))
        values = robots_of(hidden, space, truth, rng)
        values[:, hidden.space.names.index("latency.action")] += delay
        q = measure_motion(hidden, values, motion, rng)
        found = calibrate(known, truth, q, rng)
        out[what] = {
            "regions_hold": found.covered,
            "intervals_hold": float(found.intervals.mean()),
            "gain": found.gain,
            "least_p_of_ranks": float(found.uniform().min()),
        }
        began = time.perf_counter()
        known.draws(q[0], 1000, 0)
        out["seconds_a_log"] = time.perf_counter() - began
    return out


def autotuned(folder: Path, seed: int) -> dict[str, Any]:
    policy = trained(folder, "wide", seed, preset="wide")
    twin, rng = Twin.load("pendulum"), np.random.default_rng([seed, 4])
    start = first_belief(twin)
    names = [n for n in start.space.names if start.space.nominal[start.space.names.index(n)] > 0]
    off = {n: float(WRONG ** rng.choice([-1, 1])) for n in names}
    spec = StandInSpec("pendulum", 90 + seed, change={n: f"x{by:.4g}" for n, by in off.items()})
    case = Case("pendulum", "swing", spec, base=str(policy), policy=str(policy), seed=seed)
    asked = Asked(case, policy, 1)
    truth = named(spec, everything=True)
    belief, said = start, list[str]()
    for k in range(3):
        every = [asked.real(10 * k + episode) for episode in range(10)]
        real = dataclasses.replace(every[0], seen=np.concatenate([each.seen for each in every]))
        belief, what = METHODS["autotuned"](belief, asked, real, np.random.default_rng([seed, k]))
        said.append(what)
    found = dict(zip(start.space.names, start.space.from_scaled(belief.centre).tolist(), strict=True))
    ratio = {n: found[n] / truth[n] for n in names}
    return {
        "within_tenth": [n for n in names if abs(ratio[n] - 1) <= 0.1],
        "of": len(names),
        "ratio": ratio,
        "said": said,
        "believed_sd": dict(zip(start.space.names, np.sqrt(np.diag(belief.covariance)).tolist(), strict=True)),
        "median_error": float(np.median([abs(np.log(r)) for r in ratio.values()])),
        "median_error_before": float(np.log(WRONG)),
    }


def next_(folder: Path, seed: int) -> dict[str, Any]:
    """Losses are errors in what the policy does, by numbers: the metric of `matters`."""
    policy, twin = trained(folder, "wide", 0, preset="wide"), Twin.load("pendulum")
    start, chosen = first_belief(twin), list[str]()
    space = start.space
    motions = {n: plan_motion(n, twin, NEXT_SECONDS, np.random.default_rng(2)) for n in ("rich", "chirp", "steps", "prbs")}
    losses: dict[str, list[float]] = {"chosen": [], "fixed": [], "before": []}
    for robot in range(NEXT_ROBOTS):
        rng = np.random.default_rng([seed, robot, 3])
        truth = space.mirrored(rng.standard_normal(len(space))[None])[0]
        change = dict(zip(space.names, space.clip(space.from_scaled(truth)).tolist(), strict=True))
        spec = StandInSpec("pendulum", 300 + 20 * seed + robot, change=change, sensors={"noise_q": 0.0005, "noise_dq": 0.02})
        asked = Asked(Case("pendulum", "swing", spec, base=str(policy), policy=str(policy), seed=seed), policy, 1, NEXT_SECONDS)
        hidden, secret = field_twin(spec)

        def rolled(x: np.ndarray, rng: np.random.Generator, asked: Asked = asked) -> np.ndarray:
            return asked.simulated(space.clip(space.from_scaled(x)), space, rng)[:, 0].reshape(len(x), -1)

        def logged(motion: np.ndarray) -> Callable[[np.ndarray, np.random.Generator], np.ndarray]:
            return lambda x, own: measure_motion(twin, robots_of(twin, space, x, own), motion, own).reshape(len(x), -1)

        real = {"rollout": lambda asked=asked, k=robot: asked.real(k).seen[0].ravel()}
        real |= {
            f"log, {n}": lambda m=m, hidden=hidden, secret=secret, k=robot: measure_motion(
                hidden, secret[None], m, np.random.default_rng(k)
            ).ravel()
            for n, m in motions.items()
        }
        each = [Experiment("rollout", NEXT_SECONDS, rolled)]
        each += [Experiment(f"log, {n}", NEXT_SECONDS, logged(m)) for n, m in motions.items()]
        metric = matters(start, rolled, rng)
        fixed = [e for e in each if e.name in ("log, rich", "rollout")][::-1]
        losses["before"].append(_loss(start, truth, metric))
        for how in ("chosen", "fixed"):
            belief = start
            for k in range(NEXT_ROUNDS):
                if how == "chosen":
                    _, ranked = next_experiment(belief, each, metric, rng)
                    best = ranked[0]
                    chosen.append(best.experiment.name)
                else:
                    best = told(belief, fixed[k % 2], metric, rng)
                belief = best.posterior(real[best.experiment.name]())
            losses[how].append(_loss(belief, truth, metric))
    mean = {how: float(np.mean(each)) for how, each in losses.items()}
    counts = {name: chosen.count(name) for name in dict.fromkeys(chosen)}
    return {**mean, "ratio": mean["chosen"] / mean["fixed"], "chose": counts, "each": losses}


def asked(folder: Path, seed: int) -> dict[str, Any]:
    """Losses as in `next`; the belief is half as wide as one about a model, since the robots have to walk."""
    rng = np.random.default_rng([seed, 5])
    case = Case("quadruped", seed=seed, standin=StandInSpec("quadruped", 0), **shipped("quadruped", "velocity", Stated()))
    policy = Path(case.base)
    walk = Asked(case, policy, 1, NEXT_SECONDS)
    start = first_belief(walk.twin, 0.5)
    space, ranges = start.space, list(task_of("velocity", walk.twin).commands.values())
    scale = np.nanstd(walk.simulated(space.nominal[None], space), axis=(0, 1, 2)) + 1e-6

    def experiment(command: np.ndarray) -> Experiment:
        own = Asked(case, policy, 1, NEXT_SECONDS)
        own.commands = command[None]
        return Experiment(
            str(command),
            NEXT_SECONDS,
            lambda x, r: own.features(own.simulated(space.clip(space.from_scaled(x)), space, r), scale),
        )

    metric = matters(start, experiment(walk.commands[0]).measure, rng)
    began = time.perf_counter()
    searched = telling_command(Asked(case, policy, 1, NEXT_SECONDS), ranges, start, metric, rng)
    took = time.perf_counter() - began
    random = rng.uniform(*np.array(ranges).T, (NEXT_ROBOTS, len(ranges)))
    commands = np.stack([searched, np.array([0.5, 0.0, 0.0]), *random])
    each = [told(start, experiment(c), metric, rng) for c in commands]
    losses, before = [], []
    for robot in range(NEXT_ROBOTS):
        truth = space.mirrored(0.5 * rng.standard_normal(len(space))[None])[0]
        numbers = space.clip(space.from_scaled(truth)).tolist()
        change = {n: v for p, v in zip(space.parameters, numbers, strict=True) for n in p.members or (p.name,)}
        spec = StandInSpec("quadruped", 500 + 20 * seed + robot, change=change, sensors={"noise_q": 0.0005, "noise_dq": 0.02})
        real = Asked(dataclasses.replace(case, standin=spec), policy, 1, NEXT_SECONDS)
        real.commands = commands
        seen = real.real().seen
        losses.append(
            [
                _loss(t.posterior(walk.features(one[None, None], scale)[0]), truth, metric)
                for t, one in zip(each, seen, strict=True)
            ]
        )
        before.append(_loss(start, truth, metric))
    mean = np.mean(losses, axis=0).tolist()
    found = {"searched": mean[0], "ahead": mean[1], "random": mean[2:], "ratio": mean[0] / float(np.mean(mean[2:]))}
    expected = {"command": searched.tolist(), "left": [t.left for t in each], "search_seconds": took}
    return {"before": float(np.mean(before)), **found, **expected}


def _loss(belief: Gaussian, truth: np.ndarray, metric: np.ndarray) -> float:
    away = belief.centre - truth
    return float(away @ metric @ away)


PARTS: dict[str, Callable[[Path, int], dict[str, Any]]] = {
    "adr": adr, "simopt": simopt, "posterior": posterior, "autotuned": autotuned, "next": next_,
    "asked": asked,
    "strict": lambda folder, seed: posterior(folder, seed, 0.0),
    "bayessim": lambda folder, seed: simopt(folder, seed, "bayessim"),
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON line, last")
    parser.add_argument("--only", default=",".join(PARTS), help="parts, with commas between them")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("out/bench_beliefs"))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    found: dict[str, list[dict[str, Any]]] = {}
    for part in given.only.split(","):
        for seed in range(given.seeds):
            file = given.out / f"{part}_{seed}.json"
            if not file.is_file():
                began = time.perf_counter()
                write_json(file, {**PARTS[part](given.out, seed), "took": time.perf_counter() - began})
            found.setdefault(part, []).append(read_json(file))
            print(f"{part}, seed {seed}: {json.dumps(found[part][-1])}", flush=True)
    if given.json:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
