"""Whether an ordinary walk shows what a robot carries: distributions under its policy against replay, on robots with secrets.

    python -m bench.walking [--policy runs/walk] [--robots 3] [--first 900] [--no-replay] [--json]

Stand-ins as `gapless standin --random` draws them (normal), each with 2 to 3 kg on its base besides, walk twice for 20 s at
0.5 m/s. The first walk is fitted, the second is the held-out one. Without a policy one is trained first, for 100 iterations.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from bench.coverage import truth_of
from gapless.errors import BadInput, PhysicsError
from gapless.identify import WalkingFit, fit, fit_walking, walking_distance
from gapless.learn import plan_run, train
from gapless.logs import Log
from gapless.policy import Pilot, Policy, load_policy
from gapless.twin import Twin, as_given
from gapless.worlds import StandIn, build_standin, draw_standin, record

COMMAND = (0.5, 0.0, 0.0)
SECONDS, LOGS = 20.0, 2
ITERATIONS = 100
PAYLOAD = "inertia.payload"


def trained() -> Policy:
    """A quadruped's policy that walks, if not well."""
    with TemporaryDirectory() as folder:
        train(plan_run("velocity", settings={"iterations": ITERATIONS}), Path(folder))
        return load_policy(folder)


def walks(seed: int, policy: Policy) -> tuple[list[Log], dict[str, float], dict[str, Any]]:
    """Two walks of a robot, its secrets, and those of them that were changed on purpose."""
    carried = round(float(np.random.default_rng([seed, 0xA11]).uniform(2, 3)), 2)
    spec = draw_standin("quadruped", "normal", seed)
    spec = replace(spec, change={**spec.change, PAYLOAD: carried})
    robot, twin, logs = StandIn(spec), build_standin(spec), []
    for k in range(LOGS):
        robot.reset()
        logs.append(record(robot, [Pilot(policy, twin, COMMAND)] * round(SECONDS / twin.control_dt), robot.signal, f"walk {k}"))
    return logs, robot.reveal(), dict(spec.change)


def held(found: WalkingFit, secrets: Mapping[str, float]) -> list[bool]:
    """Whether the interval of each number that walking shows has the mean truth of the joints that it is for."""
    return [
        e.low <= float(np.mean([truth_of(m, secrets) for m in e.shared_by or (name,)])) <= e.high
        for name, e in found.shown.items()
    ]


def by_replay(twin: Twin, logs: list[Log]) -> dict[str, Any]:
    """What the fit in windows of 0.5 s finds in both walks."""
    started = time.perf_counter()
    try:
        found = fit(twin, logs)
    except (BadInput, PhysicsError) as error:
        return {"replay": None, "replay_error": str(error)}
    carried = found.parameters.get(PAYLOAD)
    return {
        "replay": carried.value if carried else 0.0,
        "replay_interval": [carried.low, carried.high] if carried else None,
        "replay_trusted": found.trusted,
        "replay_seconds": time.perf_counter() - started,
    }


def one(seed: int, policy: Policy, replay: bool) -> dict[str, Any]:
    """The figures of one robot."""
    logs, secrets, changed = walks(seed, policy)
    twin = as_given("quadruped", logs[0])

    def crew(n: int) -> Any:
        return Pilot(policy, twin, COMMAND, n).answer

    found = fit_walking(twin, logs[:1], crew)
    carried, shown = found.parameters[PAYLOAD], held(found, secrets)
    nominal, fitted = (walking_distance(twin, logs[1], values, crew).mean.size for values in (twin.space.nominal, found.values))
    figures = {
        "seed": seed, "changed": changed, "truth": secrets[PAYLOAD], "walking": carried.value,
        "interval": [carried.low, carried.high], "shown": carried.identified, "holds": [sum(shown), len(shown)],
        "distance_nominal": nominal, "distance_fitted": fitted, "floor": found.floor, "unlike": found.unlike,
        "seconds": found.seconds,
    }  # fmt: skip
    return figures | (by_replay(twin, logs) if replay else {})


def summary(robots: list[dict[str, Any]]) -> dict[str, Any]:
    """Over all robots: mean absolute error of the payload [kg], the distance to the second walk, and coverage."""

    def off(key: str) -> float | None:
        errors = [abs(r[key] - r["truth"]) for r in robots if r.get(key) is not None]
        return float(np.mean(errors)) if errors else None

    return {
        "payload_error_nominal": float(np.mean([r["truth"] for r in robots])),
        "payload_error_walking": off("walking"),
        "payload_error_replay": off("replay"),
        "payload_in_interval": [sum(r["interval"][0] <= r["truth"] <= r["interval"][1] for r in robots), len(robots)],
        "distance_nominal": float(np.mean([r["distance_nominal"] for r in robots])),
        "distance_fitted": float(np.mean([r["distance_fitted"] for r in robots])),
        "floor": float(np.mean([r["floor"] for r in robots])),
        "coverage": np.sum([r["holds"] for r in robots], axis=0).tolist(),
        "robots": robots,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy", type=Path, help="folder of a quadruped's policy that walks; else one is trained")
    parser.add_argument("--robots", type=int, default=3)
    parser.add_argument("--first", type=int, default=900, help="first seed")
    parser.add_argument("--no-replay", action="store_true", help="leave out the fit by replay, which takes minutes")
    parser.add_argument("--json", action="store_true", help="print one JSON line, last")
    options = parser.parse_args()
    policy, robots = load_policy(options.policy) if options.policy else trained(), []
    for seed in range(options.first, options.first + options.robots):
        robots.append(one(seed, policy, not options.no_replay))
        print(robots[-1], flush=True)
    result = summary(robots)
    print({k: v for k, v in result.items() if k != "robots"})
    if options.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
