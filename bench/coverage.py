"""Whether 90 % intervals cover the truth on synthetic robots, and whether a fit notices what its model lacks.

    python -m bench.coverage [--robots 50] [--json]

Each robot is the built-in servo bench with its own gains, friction, armature and delay, structure as in the model, one log of
20 s with encoder noise; then the same with backlash added, which the model lacks.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np

from gapless.identify import Fit, fit
from gapless.twin import Twin
from gapless.twin.mechanisms import Friction
from gapless.worlds.motion import plan
from gapless.worlds.standin import Spec, StandIn, build, record

SENSORS: dict[str, float] = {"noise_q": 0.0005, "noise_dq": 0.01, "quantum_q": 0.0}
CHANGED = ("gains.kp/*", "friction.viscous/*", "friction.coulomb/*", "armature.inertia/*", "latency.action")


def one(seed: int, add: dict[str, Any]) -> tuple[Fit, dict[str, float]]:
    """A robot, its fit, and the truth."""
    rng = np.random.default_rng(seed)
    twin = Twin.load("bench", add=[Friction(full=True)])
    space = twin.space.select(*CHANGED)
    drawn = space.clip(space.from_scaled(rng.uniform(-1, 1, len(space))))
    change: dict[str, float | str] = dict(zip(space.names, drawn.tolist(), strict=True))
    change["latency.action"] = float(rng.uniform(0, 0.02))
    change |= {"latency.observation": 0.0, "latency.jitter": 0.0, "sensors.skew": 0.0}
    spec = Spec("bench", tolerance=0, timestep=twin.model.opt.timestep, change=change, add=add, sensors=SENSORS)
    stand_in = StandIn(spec)
    log = record(stand_in, plan("rich", build(spec), 20.0, rng), stand_in.signal)
    truth = dict(zip(twin.space.names, twin.space.nominal.tolist(), strict=True)) | stand_in.reveal()
    return fit(twin, [log]), truth


def covered(found: Fit, truth: dict[str, float]) -> dict[str, bool]:
    """By parameter, whether its 90 % interval has the truth; parameters that are called undetermined do not count."""
    space = found.belief.space
    spread = 1.645 * np.sqrt(np.diag(found.belief.covariance))
    at = space.to_scaled([truth[n] for n in space.names])
    inside = np.abs(at - found.belief.centre) <= spread
    return {n: bool(i) for n, i, s in zip(space.names, inside, spread, strict=True) if s < 1.645}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robots", type=int, default=50)
    parser.add_argument("--json", action="store_true", help="print one JSON line, last")
    options = parser.parse_args()
    hits: dict[str, list[bool]] = {}
    warned = 0
    for seed in range(options.robots):
        found, truth = one(seed, {})
        for name, hit in covered(found, truth).items():
            hits.setdefault(name, []).append(hit)
        warned += any("does not suffice" in w for w in found.warnings)
        print(f"{seed + 1}/{options.robots}: {np.mean([h for each in hits.values() for h in each]):.3f} covered", flush=True)
    tenth = max(1, options.robots // 5)
    noticed = [
        any("does not suffice" in w for w in one(seed, {"backlash": {"joints": "*", "width": 0.03}})[0].warnings)
        for seed in range(tenth)
    ]
    result = {
        "coverage": float(np.mean([h for each in hits.values() for h in each])),
        **{f"coverage_{n}": float(np.mean(h)) for n, h in hits.items()},
        "false_alarms": warned / options.robots,
        "noticed": float(np.mean(noticed)),
    }
    for name, value in result.items():
        print(f"{name:40} {value:.3f}")
    if options.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
