"""Whether 90 % intervals cover the truth on synthetic robots, and whether a fit notices what its model lacks.

    python -m bench.coverage [--robots 50] [--json]

Three in five robots are servo benches, one an arm, one a quadruped in the air, every joint with its own gains, friction and
armature, structure as in the model, one log of 20 s with encoder noise. Then some of them with backlash, which the ladder has
a rung for, and with a cable that pulls at the joints, which it has none for.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np

from gapless.identify import Fit, fit
from gapless.twin import Friction, Twin, quantities
from gapless.worlds import StandIn, StandInSpec as Spec, build_standin as build, plan_motion as plan, record

SENSORS: dict[str, float] = {"noise_q": 0.0005, "noise_dq": 0.01, "quantum_q": 0.0}
CHANGED = ("gains.kp/*", "friction.viscous/*", "friction.coulomb/*", "armature.inertia/*", "latency.action")


ROBOTS = ("bench", "bench", "bench", "arm", "quadruped")
STRUCTURES = {rung for rung, names in quantities.rungs().items() if any(quantities.of(n).structure for n in names)}
LACKING: dict[str, tuple[dict[str, Any], dict[str, float | str]]] = {
    "backlash": ({"backlash": {"width": 0.03}}, {}),
    "cable": ({}, {"disturbance.cable/*": 3.0}),
}


def one(seed: int, lacking: str = "") -> tuple[Fit, dict[str, float]]:
    """A robot, its fit, and the truth."""
    rng = np.random.default_rng(seed)
    robot = ROBOTS[seed % len(ROBOTS)]
    air = robot == "quadruped"
    twin = Twin.load(robot, add=[Friction(full=True)], in_air=air)
    space = twin.space.select(*CHANGED)
    drawn = space.clip(space.from_scaled(rng.uniform(-1, 1, len(space))))
    change: dict[str, float | str] = dict(zip(space.names, drawn.tolist(), strict=True))
    change["latency.action"] = float(rng.uniform(0, 0.004 if air else 0.02))  # with more, legs as light and stiff chatter
    change |= {"latency.observation": 0.0, "latency.jitter": 0.0, "sensors.skew": 0.0}
    add, more = LACKING.get(lacking, ({}, {}))
    add = {"friction": {"full": True}, **add}  # as in the model
    spec = Spec(robot, 0, air, 0, twin.model.opt.timestep, change | more, add, SENSORS)
    stand_in = StandIn(spec)
    log = record(stand_in, plan("rich", build(spec), 20.0, rng), stand_in.signal)
    truth = dict(zip(twin.space.names, twin.space.nominal.tolist(), strict=True)) | stand_in.reveal()
    return fit(twin, [log]), truth


def noticed(found: Fit) -> bool:
    """Whether a fit says that its model leaves unexplained error, or that it needs a structure which the model lacks."""
    added = {r.name for r in found.ladder if r.added}
    return any("unexplained error remains" in w for w in found.warnings) or bool(added & STRUCTURES)


def covered(found: Fit, truth: dict[str, float]) -> dict[str, bool]:
    """By parameter, whether its 90 % interval has the truth; parameters that are called undetermined do not count."""
    space = found.belief.space
    spread = 1.645 * np.sqrt(np.diag(found.belief.covariance))
    truth = {n: 0.0 for p in space.parameters for n in p.members or (p.name,)} | truth  # structures that are not there
    at = space.to_scaled([float(np.mean([truth[n] for n in p.members or (p.name,)])) for p in space.parameters])
    inside = np.abs(at - found.belief.centre) <= spread
    return {n: bool(i) for n, i, s in zip(space.names, inside, spread, strict=True) if s < 1.645}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robots", type=int, default=50)
    parser.add_argument("--json", action="store_true", help="print one JSON line, last")
    options = parser.parse_args()
    hits: dict[str, list[bool]] = {}
    alarms, trusted = [], []
    for seed in range(options.robots):
        found, truth = one(seed)
        hit = list(covered(found, truth).values())
        trusted.append(found.trusted)
        hits.setdefault(found.twin.name, []).extend(hit)
        alarms.append(noticed(found))
        every = [h for each in hits.values() for h in each]
        print(
            f"{seed + 1}/{options.robots} {found.twin.name}: {np.mean(hit):.2f}, {np.mean(every):.3f} of all covered",
            flush=True,
        )
    tried = range(max(len(ROBOTS), options.robots // 5))
    result = {
        # each robot counts once, however many joints it has
        "coverage": float(np.average([np.mean(h) for h in hits.values()], weights=[ROBOTS.count(n) for n in hits])),
        **{f"coverage_{name}": float(np.mean(h)) for name, h in hits.items()},
        "trusted": float(np.mean(trusted)),
        "false_alarms": float(np.mean(alarms)),
        **{f"noticed_{lacking}": float(np.mean([noticed(one(seed, lacking)[0]) for seed in tried])) for lacking in LACKING},
    }
    for name, value in result.items():
        print(f"{name:40} {value:.3f}")
    if options.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
