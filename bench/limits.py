"""Whether the smallest mismatch that `gap` says a log would show is true: stand-ins with one at twice and at half that size.

    python -m bench.limits [--cases 40] [--first 700] [--json]

A stand-in within its tolerances gives a log and, from it, the limits. The same stand-in then has one mismatch on all joints,
drawn among the causes that its log shows, at twice and at half its limit. Twice should be called a gap, half should not.
Beside: how often it was named, first or among those that the log cannot tell from the first.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from gapless.explain import explain
from gapless.identify import DetectionLimit
from gapless.logs import Log
from gapless.twin import Friction, Twin, quantities
from gapless.worlds import StandIn, StandInSpec as Spec, plan_motion, record

ROBOTS = (("bench", False), ("arm", False), ("quadruped", True))
SENSORS = {"noise_q": 0.0005, "noise_dq": 0.02, "quantum_q": 0.0004}
SECONDS = 20.0
TIMES = (2.0, 0.5)
ADDED = {"backlash.width": "backlash", "hysteresis.torque": "hysteresis"}  # causes that a stand-in has only if it is asked for


def twin_of(case: int) -> Twin:
    robot, in_air = ROBOTS[case % len(ROBOTS)]
    return Twin.load(robot, add=[Friction(full=True)], in_air=in_air)


def logged(case: int, change: dict[str, float | str], add: dict[str, Any]) -> Log:
    """The log of a case's robot with a mismatch."""
    robot, in_air = ROBOTS[case % len(ROBOTS)]
    stand_in = StandIn(Spec(robot, case, in_air, change=change, add={"friction": {"full": True}} | add, sensors=SENSORS))
    return record(stand_in, plan_motion("rich", twin_of(case), SECONDS, np.random.default_rng(case)), stand_in.signal)


def mismatches(case: int, limits: Sequence[DetectionLimit]) -> dict[str, list[tuple[dict[str, float | str], dict[str, Any]]]]:
    """By cause that the log shows, what a stand-in must have for twice and for half the limit."""
    out = {}
    space = twin_of(case).space
    for limit in limits:
        own = [p for p in space.parameters if quantities.cause(p.name) == limit.cause]
        if limit.smallest is None or not (own or limit.cause in ADDED):
            continue
        add = {} if own else {ADDED[limit.cause]: {}}
        quantity = own[0].quantity if own else limit.cause
        every = [p for p in own if p.quantity == quantity]
        name = f"{quantity}/*" if not own or "/" in own[0].name else quantity
        sign = 1.0 if not own or all(p.high > p.nominal for p in every) else -1.0
        sizes = [limit.smallest**k if limit.unit == "times" else limit.smallest * k for k in TIMES]
        twice = [p.nominal * sizes[0] ** sign if limit.unit == "times" else p.nominal + sign * sizes[0] for p in every]
        if all(p.low <= value <= p.high for p, value in zip(every, twice, strict=True)):
            words = [f"x{size**sign:.6g}" if limit.unit == "times" else f"{sign * size:+.6g}" for size in sizes]
            out[limit.cause] = [({name: word}, add) for word in words]
    return out


def one(case: int) -> dict[str, Any]:
    """A robot, one of the causes that its log shows, and what is said of it at twice and at half its limit."""
    started = time.perf_counter()
    found = explain(twin_of(case), [logged(case, {}, {})])
    possible = mismatches(case, found.limits)
    cause = str(np.random.default_rng(case).choice(sorted(possible)))
    out: dict[str, Any] = {
        "case": case,
        "robot": ROBOTS[case % len(ROBOTS)][0],
        "cause": cause,
        "none": found.verdict == "none",
    }
    for times, (change, add) in zip(("twice", "half"), possible[cause], strict=True):
        said = explain(twin_of(case), [logged(case, change, add)])
        first = said.mechanisms[0] if said.mechanisms else None
        out[times] = said.verdict != "none"
        out[f"{times}_named"] = first is not None and cause in (first.name, *first.group)
        out[f"{times}_change"] = change
    return out | {"seconds": time.perf_counter() - started}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=40)
    parser.add_argument("--first", type=int, default=700, help="first seed")
    parser.add_argument("--json", action="store_true", help="print one JSON line, last")
    options = parser.parse_args()
    every = []
    for case in range(options.first, options.first + options.cases):
        try:
            every.append(one(case))
        except RuntimeError as error:  # a stand-in whose physics broke
            print(f"{case}: {error}", flush=True)
            continue
        print(every[-1], flush=True)
    figures = {key: sum(r[key] for r in every) for key in ("none", "twice", "twice_named", "half", "half_named")}
    figures |= {"cases": len(every), "seconds": sum(r["seconds"] for r in every)}
    print(json.dumps(figures) if options.json else figures)


if __name__ == "__main__":
    main()
