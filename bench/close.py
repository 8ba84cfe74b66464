"""Whether closing the loop brings back what a robot outside the usual ranges takes from a policy.

    python -m bench.close [--json] [--cases 0 1 ...] [--seeds 2] [--no-hoist] [--out out/bench_close]

Quadrupeds with secrets: cases 0 to 7 are hard ones by seed that also lie beyond the ranges of `wide`, 8 to 11 are drawn within
these, 12 has no secrets. On each, by seed of training: the nominal policy as it is, the wide one, the wide one trained as long
as the loop tunes (the control), the loop (`gapless close`, 60 s of robot time), and outside the ranges the oracle, tuned on
the robot as it is.
All are judged in the same 216 kicked runs of 10 s on the stand-in. `recovered` is the share of what was lost between oracle and
nominal that the loop brings back; intervals (90 %) are drawn over cases and runs. Finished cases are kept in --out and not done
again, and a case that was stopped goes on at its stage, so it can be run in pieces.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from gapless.close import TECHNIQUES, Case, Stages, close, scored, shipped
from gapless.learn import CourseResult, draw_from
from gapless.plain import read_json, write_json
from gapless.twin import Stated, Twin
from gapless.worlds import StandInSpec, draw_standin

OUTSIDE, WITHIN = range(8), range(8, 12)
EXACT = 12
FIRST_SEED = 2100
"""Of the stand-ins; the loop was developed on the one in `close/standin.toml` and on no other."""
DRAWS = 6
"""Runs of each of the 36 commands."""
BEYOND = {
    "latency.action": (0.025, 0.035),
    "latency.observation": (0.018, 0.025),
    "motor.strength/*": (0.55, 0.75),
    "friction.coulomb/*": (2.2, 3.5),
    "inertia.payload": (2.6, 3.6),
    "contact.friction": (0.38, 0.48),
}
"""Ranges beyond those of `wide`; friction is a factor."""
BY = ("nothing", "wide", "wide_longer")
DRAWN = 1000  # of cases and runs, for intervals


def standin(case: int) -> StandInSpec:
    """The robot of a case."""
    if case == EXACT:
        return StandInSpec("quadruped", FIRST_SEED + case, tolerance=0.0)
    rng = np.random.default_rng([FIRST_SEED + case, 0xC105E])
    if case in WITHIN:
        box = draw_from("wide", Twin.load("quadruped"))
        assert box is not None
        values = dict(zip(box.space.names, box.sample(1, rng)[0].tolist(), strict=True))
        return StandInSpec("quadruped", FIRST_SEED + case, tolerance=0.0, change=values)
    spec = draw_standin("quadruped", "hard", FIRST_SEED + case)
    chosen = {"latency.action", *rng.choice([n for n in BEYOND if n != "latency.action"], 3, replace=False).tolist()}
    values = {n: float(rng.uniform(*BEYOND[n])) for n in BEYOND if n in chosen}
    said = {n: f"x{v:.3g}" if n.startswith("friction") else round(v, 4) for n, v in values.items()}
    return dataclasses.replace(spec, change={**spec.change, **said})


def beside(case: int) -> tuple[str, ...]:
    """What the loop is held against on a robot."""
    return (*BY, "oracle") if case in OUTSIDE else BY


def one(number: int, seed: int, hoist: bool, folder: Path, console: Console) -> dict[str, Any]:
    """Every technique on a case with a seed of training, and the loop."""
    file = folder / "figures.json"
    if file.is_file():
        return read_json(file)
    given = shipped("quadruped", "velocity", Stated())
    case = Case("quadruped", standin=standin(number), seed=seed, hoist=hoist, **given)

    def tell(text: str, left: float | None) -> None:
        console.print(f"case {number}, seed {seed}: {text}", markup=False)

    policies = {}
    for technique in (
        t for t in TECHNIQUES if t.name in beside(number)
    ):  # what knows nothing of the robot is the same for all cases
        where = folder / "others" if technique.cheats else folder.parent / f"seed{seed}"
        policies[technique.name] = technique.remedy(case, Stages(where, case.budget, tell))
    loop = close(case, folder / "loop", tell, score=False)
    policies["close"] = Path(loop.policy)
    figures: dict[str, Any] = {"case": number, "seed": seed, "answer": loop.answer, "kept": loop.kept, "why": loop.why}
    figures |= {"robot": loop.robot_seconds, "computing": loop.computing}
    for name, policy in policies.items():

        def make(where: Path, policy: Path = policy) -> None:
            scored(case, policy, DRAWS).save(where)

        course = Stages(folder / "score", 0.0, tell).run(name, {"policy": str(policy)}, make, CourseResult.load)
        figures[name] = {"falls": course.fell.astype(float).tolist(), "velocity_error": course.velocity_error.tolist()}
        tell(f"{name}: falls {course.fell.mean():.1%}, velocity error {course.velocity_error.mean():.3f} m/s", None)
    write_json(file, figures)
    return read_json(file)


def summary(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Means and intervals of what is shown, for the cases that are done."""
    out: dict[str, Any] = {"done": [f"{f['case']}/{f['seed']}" for f in found]}
    for name, cases in (("outside", OUTSIDE), ("within", (*WITHIN, EXACT))):
        group = [f for f in found if f["case"] in cases]
        if not group:
            continue
        out[name] = {"cases": len(group), "robot": max(f["robot"] for f in group)}
        out[name]["computing"] = max(f["computing"] for f in group)
        for figure in ("falls", "velocity_error"):
            runs = {by: np.array([f[by][figure] for f in group]) for by in (*beside(cases[0]), "close")}
            out[name][figure] = {by: float(each.mean()) for by, each in runs.items()}
            out[name][f"{figure}_less_than_wide_longer"] = _interval(runs["wide_longer"] - runs["close"])
            worst = int(np.argmax(runs["close"].mean(axis=1)))
            out[name][f"{figure}_worst"] = {"case": group[worst]["case"], "close": float(runs["close"][worst].mean())}
            if name == "outside":
                out[name][f"{figure}_recovered"] = _recovered(runs)
        worse = [f["case"] for f in group if np.mean(f["close"]["falls"]) > np.mean(f["wide"]["falls"]) + 0.02]
        out[name]["worse_than_wide"] = worse
    return out


def _drawn(shape: tuple[int, ...], rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Cases, and runs of each, drawn with replacement."""
    return rng.integers(shape[0], size=shape[0])[:, None], rng.integers(shape[1], size=shape)


def _interval(each: np.ndarray) -> dict[str, float]:
    """Mean of a figure of (cases, runs), with its interval."""
    rng = np.random.default_rng(0)
    means = [each[_drawn(each.shape, rng)].mean() for _ in range(DRAWN)]
    return {"mean": float(each.mean()), "low": float(np.percentile(means, 5)), "high": float(np.percentile(means, 95))}


def _recovered(runs: dict[str, np.ndarray]) -> dict[str, float]:
    """Share of what was lost between oracle and nominal that the loop brings back, with its interval."""

    def share(at: Any) -> float:
        nominal, closed, oracle = (runs[by][at].mean() for by in ("nothing", "close", "oracle"))
        return float((nominal - closed) / max(nominal - oracle, 1e-9))

    rng = np.random.default_rng(0)
    drawn = [share(_drawn(runs["close"].shape, rng)) for _ in range(DRAWN)]
    return {"mean": share(slice(None)), "low": float(np.percentile(drawn, 5)), "high": float(np.percentile(drawn, 95))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON line, last")
    parser.add_argument("--cases", type=int, nargs="+", default=range(13))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--no-hoist", action="store_true", help="walking logs only")
    parser.add_argument("--out", type=Path, default=Path("out/bench_close"))
    given = parser.parse_args()
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    found, how = [], "walking" if given.no_hoist else "lifted"
    for number in given.cases:
        for seed in range(given.seeds):
            folder = given.out / how / f"{number}-{seed}"
            found.append(one(number, seed, not given.no_hoist, folder, console))
    result = summary(found)
    print(json.dumps(result) if given.json else json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
