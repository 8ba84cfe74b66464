"""Whether a memory helps where delay, payload and friction are hidden, as Peng et al. 2018 asked.

    python -m bench.memory [--json] [--seeds 3] [--out out/memory]

A double pendulum swings up on servos so soft that gravity pulls harder (kp 2 N m/rad): what does not balance falls over. Four
policies learn it: on the nominal robot alone (`fixed`); on robots drawn from the ranges below, seeing one frame of its sensors
(`one_frame`), eight (`history`), or with an LSTM of 64 cells (`lstm`). All are judged on the same unseen robots of these
ranges, 216 by seed: the share that holds its last link up, with 90 % intervals over seeds and runs, and how much more each is
than `one_frame`, run by run. Finished trainings are kept in --out and not done again.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
from pathlib import Path
from typing import Any

from rich.console import Console

from bench.data import DATA
from bench.learn import difference, learned, summary
from gapless.learn import Run, box_belief, ppo_settings
from gapless.twin import Stated, recipe_of, save_belief

ROBOT = DATA / "double_pendulum" / "model" / "double_pendulum.xml"
HIDDEN = {
    "inertia.mass": ("x", 0.5, 2.0),
    "inertia.payload": ("of mass", 0.0, 0.5),
    "gains.kp": ("x", 0.5, 2.0),
    "friction.coulomb": ("x", 0.2, 2.0),
    "friction.viscous": ("x", 0.2, 20.0),
    "latency.action": ("", 0.0, 0.04),
    "latency.observation": ("", 0.0, 0.04),
    "latency.jitter": ("", 0.0, 0.02),
    "sensors.noise_q": ("", 0.0, 0.01),
    "sensors.noise_dq": ("", 0.0, 0.5),
}
"""As in `gapless.learn.presets`, after Peng et al.; in its `wide` one frame and eight both hold 99 % of these pendulums."""
CELLS = 64
ITERATIONS = 300
"""More than the swing's usual ones: such worlds take longer to learn."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON line, last")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("out/memory"))
    given = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    console = Console(stderr=True, highlight=False)
    plain = Run("swing", str(ROBOT), stated=Stated(kp=2.0, kd=0.05))
    twin = plain.twin()
    hidden, file = box_belief(twin, HIDDEN), given.out / "hidden.json"
    given.out.mkdir(parents=True, exist_ok=True)
    save_belief(hidden, file, recipe_of(twin))
    settings = dataclasses.replace(ppo_settings("swing", twin), iterations=ITERATIONS)
    drawn = dataclasses.replace(plain, preset="narrow", belief=str(file), settings=settings)
    runs = {
        "fixed": dataclasses.replace(drawn, preset="none", belief=""),
        "one_frame": drawn,
        "history": dataclasses.replace(drawn, history=8),
        "lstm": dataclasses.replace(drawn, settings=dataclasses.replace(settings, recurrent=CELLS)),
    }
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in runs}
    for seed in range(given.seeds):
        for name, run in runs.items():
            console.print(f"{name}, seed {seed}")
            made = dataclasses.replace(run, seed=seed)
            results[name].append(learned(made, given.out / f"{name}-{seed}", given.threads, console, hidden))
    figures: dict[str, float] = {}
    for name, got in results.items():
        told = summary(got) | (difference(got, results["one_frame"]) if name != "one_frame" else {})
        figures |= {f"{name}_{k}": v for k, v in told.items() if k.startswith(("success", "nominal_success", "minutes"))}
    if given.json:
        print(json.dumps(figures))


if __name__ == "__main__":
    main()
