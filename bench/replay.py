"""How quickly logs are replayed: all public SO-101 motions for 32 vectors of parameters, beside a raw C loop of `mj_step`.

    python -m bench.replay [--json] [--vectors 32] [--seconds 0]

For each motion in turn the replay and the limit are run one after the other, in changing order; the ratio is that of their
total CPU time. The limit steps the nominal model through the same number of steps, worlds and controls on two threads.
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np
from rich.console import Console
from rich.progress import track

from bench.data import DATA
from bench.raw_loop import compiled, states
from gapless.arrays import Array
from gapless.logs import Log, find, read
from gapless.twin import Box, Twin
from gapless.worlds import Replayer


def draws(twin: Twin, n: int) -> Array:
    """Vectors of parameters three tolerances wide, path and mechanics alike."""
    space = twin.space
    wide = Box(space, space.clip(space.nominal - 3 * space.tolerance), space.clip(space.nominal + 3 * space.tolerance))
    return wide.sample(n, np.random.default_rng(0))


def measure(vectors: int, seconds: float) -> dict[str, float]:
    console = Console(stderr=True)
    motions = find(DATA / "so101/motions")
    started = time.perf_counter()
    logs: list[Log] = [read(m, mapping="so101") for m in motions]
    reading = time.perf_counter() - started
    twin = Twin.load(DATA / "so101/model/so101.xml")
    values = draws(twin, vectors)
    ours = limit = once = robot = 0.0
    with compiled() as raw:
        Replayer(twin, logs[0], end=1.0)(values)  # compiles the path on its first use ever
        for k, log in enumerate(track(logs, "replaying", console=console, disable=not console.is_terminal)):
            replayer = Replayer(twin, log, end=seconds or None, threads=2)
            robot += replayer.steps * twin.model.opt.timestep
            wall = time.perf_counter()
            replayer(twin.space.nominal)
            once += time.perf_counter() - wall
            control = np.repeat(replayer.controls(), vectors, axis=0)
            start = states(twin.model, np.tile(twin.model.qpos0, (vectors, 1)))
            for which in ("ours", "limit") if k % 2 else ("limit", "ours"):
                cpu = time.process_time()
                if which == "ours":
                    replayer(values)
                    ours += time.process_time() - cpu
                else:
                    raw(twin.model, start, control)
                    limit += time.process_time() - cpu
    return {
        "replay_ratio": limit / ours,
        "robot_minutes": robot / 60,
        "vectors": vectors,
        "steps_per_cpu_second": robot / twin.model.opt.timestep * vectors / ours,
        "read_s": reading,
        "replay_once_s": once,
        "read_over_replay_once": reading / once,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON line, last")
    parser.add_argument("--vectors", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=0.0, help="of each motion; 0: all of it")
    options = parser.parse_args()
    result = measure(options.vectors, options.seconds)
    amount = f"{result['robot_minutes']:.0f} min of robot time x {options.vectors}"
    print(f"replay at {result['replay_ratio']:.3f} of the raw limit: {amount}")
    print(f"reading all logs {result['read_s']:.2f} s, replaying them once {result['replay_once_s']:.2f} s")
    if options.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
