"""What a designed excitation is worth: errors of parameters fitted to it, beside a chirp, on robots with secrets.

    python -m bench.excite [--draws 20] [--seconds 10] [--seed 0] [--unmodelled] [--json]

Robots are drawn from a belief about the arm. Each is told a designed motion and a chirp of the same length, both as large as
the same limits allow, and the same fit (free-running least squares of all joints together, from nominal) finds its parameters
again. An error is in standard deviations of the belief: the root mean square over parameters and robots. Limits are checked on
what the robots measured, as modelled and with a finer time step and everything else off within its tolerance (`--unmodelled`
fits to the latter).
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np

from gapless.arrays import Array
from gapless.identify import Excitation, Guard, excite, least_squares, limits_of
from gapless.logs import Log
from gapless.twin import Gaussian, Space, Twin
from gapless.worlds import Replayer, StandIn, StandInSpec as Spec, plan_motion as plan, record

ROBOT = "arm"
UNCERTAIN = (
    "friction.viscous/*",
    "friction.coulomb/*",
    "armature.inertia/*",
    "latency.action",
    # positions tell gains only where gravity gives them a scale
    "gains.kp/shoulder_lift",
    "gains.kp/elbow_flex",
    "gains.kp/wrist_flex",
    "inertia.mass/upper_arm",
    "inertia.mass/forearm",
    "inertia.mass/hand",
)
SPREAD = 0.5  # of the belief, in units of a real mismatch
NOISE = 0.001  # rad


def belief(twin: Twin) -> Gaussian:
    space = twin.space.select(*UNCERTAIN)
    centre = np.where(np.array(space.names) == "latency.action", 1.0, 0.0)  # 10 ms: a delay of none has no spread
    return Gaussian(space, centre, SPREAD**2 * np.eye(len(space)))


def robot(twin: Twin, space: Space, truth: Array, seed: int, unmodelled: bool) -> StandIn:
    """A robot with these parameters; with `unmodelled` it steps twice as finely, and what is not fitted is off too."""
    change = dict(zip(space.names, truth.tolist(), strict=True))
    finer = None if unmodelled else twin.model.opt.timestep
    return StandIn(Spec(ROBOT, seed, tolerance=float(unmodelled), timestep=finer, change=change, sensors={"noise_q": NOISE}))


def error(twin: Twin, log: Log, space: Space, truth: Array) -> Array:
    """By how much a fit misses each parameter, in standard deviations of the belief."""
    replayer = Replayer(twin, log)

    def residuals(scaled: Array) -> Array:
        replay = replayer(space.clip(space.from_scaled(scaled)), space)
        return np.nan_to_num(replay.error("q"), nan=10.0).reshape(len(scaled), -1)

    low, high = space.to_scaled(space.low), space.to_scaled(space.high)
    start = np.where(np.array(space.names) == "latency.action", 1.0, 0.0)
    found = least_squares(residuals, start, np.maximum(low, -4), np.minimum(high, 4), iterations=12, tolerance=1e-4)
    return (found.x - space.to_scaled(truth)) / SPREAD


def broken(found: Excitation, log: Log, guard: Guard) -> list[str]:
    """Which limits a robot broke, by its own log."""
    q, dq, tau = (np.column_stack([log[s].column(j) for j in found.twin.joints]) for s in ("q", "dq", "tau"))
    return found.limits.broken(q, dq, tau) + (["collision"] if guard.touches(q) else [])


def measure(draws: int, seconds: float, unmodelled: bool, seed: int) -> dict[str, float | int]:
    twin, started = Twin.load(ROBOT), time.perf_counter()
    known = belief(twin)
    space, guard = known.space, Guard(twin, clearance=0.0)
    found = excite(twin, known, seconds, limits_of(twin), np.random.default_rng(2 * seed), NOISE)
    designed = time.perf_counter() - started
    expected = ", ".join(f"{k} {v:.3f}" for k, v in found.left.items())
    print(
        f"designed in {designed:.0f} s ({found.candidates} stretches); uncertainty expected to be left: {expected}", flush=True
    )
    motions = {"designed": found.motion, "chirp": found.baselines["chirp"]}
    truths = known.sample(draws, np.random.default_rng(2 * seed + 1))
    errors: dict[str, list[Array]] = {name: [] for name in motions}
    breaks: list[str] = []
    for i, truth in enumerate(truths):
        for name, motion in motions.items():
            log = record(robot(twin, space, truth, 1000 * seed + i, unmodelled), motion)
            errors[name].append(error(twin, log, space, truth))
            if name == "designed":  # and once more with what no model has
                other = record(robot(twin, space, truth, 1000 * seed + i, not unmodelled), motion)
                breaks += [f"{limit} of robot {i + 1}" for each in (log, other) for limit in broken(found, each, guard)]
        told = ", ".join(f"{name} {np.sqrt((e[-1] ** 2).mean()):.3f}" for name, e in errors.items())
        print(f"robot {i + 1:2} of {draws}: error {told}", flush=True)
    # the chirp as `gapless standin` has it, whether or not it keeps the limits
    stock = record(robot(twin, space, truths[0], 0, unmodelled), plan("chirp", twin, seconds, np.random.default_rng(0)))
    size = {name: float(np.sqrt((np.stack(e) ** 2).mean())) for name, e in errors.items()}
    print(f"limits broken: {', '.join(breaks) or 'none'}")
    each = {name: np.sqrt((np.stack(e) ** 2).mean(axis=0)) for name, e in errors.items()}
    for name, a, b in zip(space.names, each["designed"], each["chirp"], strict=True):
        print(f"  {name:32} {a:.4f} {b:.4f}")
    return {
        "error_designed": size["designed"],
        "error_chirp": size["chirp"],
        "ratio": size["designed"] / size["chirp"],
        "ratio_of_median_parameter": float(np.median(each["designed"] / each["chirp"])),
        "expected_ratio": found.left["designed"] / found.left["chirp"],
        "limits_broken": len(breaks),
        "limits_broken_by_stock_chirp": len(broken(found, stock, guard)),
        "draws": draws,
        "design_s": designed,
        "total_s": time.perf_counter() - started,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=20, help="robots")
    parser.add_argument("--seconds", type=float, default=10.0, help="length of the motions")
    parser.add_argument("--seed", type=int, default=0, help="of the design, the robots and their noise")
    parser.add_argument("--unmodelled", action="store_true", help="robots also differ in what is not fitted")
    parser.add_argument("--json", action="store_true", help="print one JSON line, last")
    options = parser.parse_args()
    result = measure(options.draws, options.seconds, options.unmodelled, options.seed)
    for name, value in result.items():
        print(f"{name:30} {value:.3f}")
    if options.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
