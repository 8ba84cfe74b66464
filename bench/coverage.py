"""Whether 90 % intervals hold the truth on robots with secrets, whether they are sharp, and whether verdicts can say no.

    python -m bench.coverage [--robots 10] [--first 500] [--only bench,arm] [--alike 5] [--json]

Stand-ins as `gapless standin --random` draws them, normal and hard by turns: what is not a secret is within its tolerance,
their time step is half the twin's, and each gives two logs of 20 s of rich motion. A number that was fitted stands for what no
position tells apart from it (a gain for the motor's strength, one delay for all), so the truth is theirs together. With
--alike, so many robots more share the secrets of the first seed, and differ in their tolerances, motion and noise: intervals
should be as wide as the errors of their estimates differ, and no wider.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from gapless.errors import BadInput, PhysicsError
from gapless.identify import Fit, fit
from gapless.learn import draw_from
from gapless.twin import Box, Gaussian, as_given
from gapless.worlds import StandIn, StandInSpec, build_standin, draw_standin, plan_motion, record

KINDS: dict[str, tuple[str, bool]] = {
    "bench": ("bench", False),
    "arm": ("arm", False),
    "quadruped_in_air": ("quadruped", True),
    "quadruped": ("quadruped", False),
    "lopsided": ("quadruped", True),  # all centres of mass 35 mm to one side, and nothing else
}
SECONDS, LOGS = 20.0, 2
PERIOD = 0.02  # s between commands of all of these robots
DIFFICULTIES = ("normal", "hard")  # of even and odd seeds
ALIKE = 1000  # robots with equal secrets have seeds of their own: no seed that is drawn with others
WRONG = 0.25  # share of the identified numbers outside of their intervals that makes "use it" a wrong answer


def spec_of(kind: str, difficulty: str, seed: int) -> StandInSpec:
    """The secrets of a robot."""
    robot, in_air = KINDS[kind]
    if kind == "lopsided":
        sensors = {"noise_q": 0.0005, "noise_dq": 0.02, "quantum_q": 0.0004}
        return StandInSpec(robot, seed, in_air, change={"inertia.com_y/*": "+0.035"}, sensors=sensors)
    return draw_standin(robot, difficulty, seed, in_air)


def one(kind: str, spec: StandInSpec) -> tuple[Fit, dict[str, float]]:
    """A robot, its fit, and the truth."""
    robot, in_air = KINDS[kind]
    logs = []
    for k in range(LOGS):
        stand_in = StandIn(spec)
        motion = plan_motion("rich", build_standin(spec), SECONDS, np.random.default_rng([spec.seed, k]))
        logs.append(record(stand_in, motion, stand_in.signal, f"log {k}"))
    return fit(as_given(robot, logs[0], in_air=in_air), logs), stand_in.reveal()


def truth_of(name: str, secrets: Mapping[str, float]) -> float:
    """What a fitted number should be: that of the robot, with what it stands for."""
    quantity, _, place = name.partition("/")
    value = secrets.get(name, 0.0)
    if quantity in ("gains.kp", "gains.kd", "motor.limit"):
        return value * secrets.get(f"motor.strength/{place}", 1.0)
    if quantity == "latency.action":
        lost = secrets["latency.drop"] / (1 - secrets["latency.drop"])  # periods that a command is in force longer
        return value + secrets["latency.observation"] + secrets["latency.jitter"] / 2 + lost * PERIOD
    return value


def covered(found: Fit, secrets: Mapping[str, float]) -> dict[str, list[bool]]:
    """By quantity, whether the interval of each identified number has the truth of every joint that it is for."""
    out: dict[str, list[bool]] = {}
    for name, e in found.parameters.items():
        for member in e.shared_by or (name,):
            if e.identified:
                out.setdefault(name.partition("/")[0], []).append(e.low <= truth_of(member, secrets) <= e.high)
    return out


def beats_wide(found: Fit, secrets: Mapping[str, float]) -> bool:
    """Whether the belief's density of the truth is above that of the field's ranges, over the parameters of both."""
    wide = draw_from("wide", found.twin)
    assert isinstance(wide, Box)
    ends = {n: (lo, hi) for n, lo, hi in zip(wide.space.names, wide.low, wide.high, strict=True)}
    space, belief = found.belief.space, found.belief
    own = [i for i, p in enumerate(space.parameters) if all(n in ends for n in p.members or (p.name,))]
    truth = space.to_scaled(
        space.clip([float(np.mean([truth_of(n, secrets) for n in p.members or (p.name,)])) for p in space.parameters])
    )
    low, high = (
        space.to_scaled(space.clip([ends.get((p.members or (p.name,))[0], (p.nominal,) * 2)[k] for p in space.parameters]))
        for k in (0, 1)
    )
    if ((truth < low - 1e-9) | (truth > high + 1e-9))[own].any():
        return True  # the field's ranges rule the truth out
    covariance = belief.covariance[np.ix_(own, own)]  # type: ignore[union-attr]
    away = truth[own] - belief.centre[own]  # type: ignore[union-attr]
    log_belief = -0.5 * (away @ np.linalg.solve(covariance, away) + np.linalg.slogdet(2 * np.pi * covariance)[1])
    return bool(log_belief > -np.log(np.maximum(high - low, 1e-9)[own]).sum())


def judged(kind: str, seeds: range) -> dict[str, Any]:
    """Figures of one kind of robot."""
    by_quantity: dict[str, list[bool]] = {}
    shares, wide, widths, wrong, used, seconds, refused = [], [], [], 0, 0, [], 0
    for seed in seeds:
        difficulty = DIFFICULTIES[seed % 2]
        started = time.perf_counter()
        try:
            found, secrets = one(kind, spec_of(kind, difficulty, seed))
        except (BadInput, PhysicsError) as error:
            refused += 1
            print(f"{kind} {difficulty} {seed}: {error}", flush=True)
            continue
        hits = covered(found, secrets)
        every = [h for each in hits.values() for h in each]
        for quantity, each in hits.items():
            by_quantity.setdefault(quantity, []).extend(each)
        shares.append(float(np.mean(every)) if every else np.nan)
        wide.append(beats_wide(found, secrets))
        widths += [(e.high - e.low) / max(abs(e.value), 1e-9) for e in found.parameters.values() if e.identified]
        used += found.trusted
        wrong += bool(found.trusted and every and np.mean(every) < 1 - WRONG)
        seconds.append(time.perf_counter() - started)
        print(
            f"{kind} {difficulty} {seed}: {len(every)} identified, {shares[-1]:.2f} hold the truth, "
            f"{'use it' if found.trusted else 'suspicions' if found.predicts else 'do not use it'}, "
            f"{seconds[-1]:.0f} s; secrets {spec_words(kind, difficulty, seed)}",
            flush=True,
        )
    pooled = [h for each in by_quantity.values() for h in each]
    return {
        "coverage": float(np.mean(pooled)) if pooled else None,
        "by_robot": float(np.nanmean(shares)) if shares else None,
        "by_quantity": {q: [sum(h), len(h)] for q, h in sorted(by_quantity.items())},
        "beats_wide": float(np.mean(wide)) if wide else None,
        "median_relative_width": float(np.median(widths)) if widths else None,
        "use_it": used,
        "use_it_wrongly": wrong,
        "refused": refused,
        "seconds": float(np.mean(seconds)) if seconds else None,
    }


def sharpness(kind: str, difficulty: str, seed: int, robots: int) -> dict[str, Any]:
    """Width of 90 % intervals over that which the spread of errors asks for, of robots with the secrets of one seed."""
    spec, errors, widths = spec_of(kind, difficulty, seed), dict[str, list[float]](), dict[str, list[float]]()
    for k in range(robots):
        found, secrets = one(kind, dataclasses.replace(spec, seed=ALIKE * (seed + 1) + k))
        belief = found.belief
        assert isinstance(belief, Gaussian)
        for p, x, sd in zip(belief.space.parameters, belief.centre, np.sqrt(np.diag(belief.covariance)), strict=True):
            if found.parameters[p.name].identified and not p.members:
                own = dataclasses.replace(belief.space, parameters=(p,))
                truth = own.to_scaled(own.clip([truth_of(p.name, secrets)]))[0]
                errors.setdefault(p.name, []).append(float(x - truth))
                widths.setdefault(p.name, []).append(2 * 1.645 * float(sd))
    ratios: dict[str, list[float]] = {}
    for name, each in errors.items():
        if len(each) == robots:
            wide = float(np.median(widths[name])) / (2 * 1.645 * max(float(np.std(each, ddof=1)), 1e-9))
            ratios.setdefault(name.partition("/")[0], []).append(wide)
    every = [r for each in ratios.values() for r in each]
    by_quantity = {q: round(float(np.median(r)), 2) for q, r in sorted(ratios.items())}
    return {"wider_than_asked": float(np.median(every)) if every else None, "by_quantity": by_quantity, "robots": robots}


def spec_words(kind: str, difficulty: str, seed: int) -> str:
    """The secrets of a robot in words."""
    spec = spec_of(kind, difficulty, seed)
    return ", ".join([*(f"{k} {v}" for k, v in spec.change.items()), *spec.add])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robots", type=int, default=10, help="of each kind")
    parser.add_argument("--first", type=int, default=500, help="first seed")
    parser.add_argument("--only", default=",".join(KINDS), help="kinds of robots")
    parser.add_argument("--alike", type=int, default=0, help="robots with the secrets of the first seed, to judge widths by")
    parser.add_argument("--json", action="store_true", help="print one JSON line, last")
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.robots)
    result = {kind: judged(kind, seeds) for kind in options.only.split(",")}
    for kind, figures in result.items() if options.alike > 1 else ():
        figures["sharpness"] = sharpness(kind, DIFFICULTIES[options.first % 2], options.first, options.alike)
    for kind, figures in result.items():
        print(kind, figures)
    if options.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
