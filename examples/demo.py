"""The demo: sixteen robots that differ as real ones do, told the same thing and pushed; in numbers and a picture.

python examples/demo.py
"""

import time
from pathlib import Path

import mujoco
import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from gapless.robots.draw import render, write_png
from gapless.twin import Box, Twin
from gapless.worlds import Worlds

OUT = Path("out/demo.png")
SECONDS, PUSH_AT = 4.0, 2.0


def main() -> None:
    console = Console()
    twin = Twin.load("quadruped")
    space = twin.space.select(
        "gains.*", "motor.strength*", "friction.*", "armature.*", "inertia.*", "latency.action", "latency.observation"
    )
    # three times as wrong as its parts may be without being news: the robots of one production run, badly maintained
    belief = Box(space, space.clip(space.nominal - 3 * space.tolerance), space.clip(space.nominal + 3 * space.tolerance))
    worlds = Worlds(twin, 16, belief, np.random.default_rng(7))
    periods, heights, tilts, pictures = round(SECONDS / twin.control_dt), [], [], []
    worlds.step(worlds.home_command)  # compiles the command and sensor path on its first use ever
    worlds.reset(redraw=False)
    started = time.perf_counter()
    stepping = 0.0
    for k in track(range(periods), "16 robots", console=console):
        t = k * twin.control_dt
        if k == round(PUSH_AT / twin.control_dt):
            worlds.push([0.0, 0.93, 0.0])
        squat = 0.25 * (1 - np.cos(2 * np.pi * t)) / 2 if t < PUSH_AT else 0.0
        before = time.perf_counter()
        worlds.step(worlds.home_command + squat * np.tile([0.0, 1.0, -2.0], 4))
        stepping += time.perf_counter() - before
        heights.append(worlds.qpos[:, 2].copy())
        tilts.append(2 * np.degrees(np.arccos(np.clip(np.hypot(worlds.qpos[:, 3], worlds.qpos[:, 6]), 0, 1))))
        if k == round((PUSH_AT + 0.5) / twin.control_dt):
            pictures = [picture(worlds, i) for i in range(8)]
    OUT.parent.mkdir(exist_ok=True)
    rows = [np.concatenate(pictures[i : i + 4], axis=1) for i in (0, 4)]
    write_png(OUT, np.concatenate(rows, axis=0))

    high, tilt = np.array(heights), np.array(tilts)
    table = Table(title=f"16 quadrupeds, {len(space)} parameters each their own, the same command, pushed at {PUSH_AT:g} s")
    for column in ("", "lowest robot", "median", "highest robot"):
        table.add_column(column, justify="left" if not column else "right")
    before = round(PUSH_AT / twin.control_dt) - 1
    for name, values, unit in (
        ("base height before the push", high[before] * 1e3, "mm"),
        ("tilt before the push", tilt[before], "deg"),
        ("largest tilt after the push", tilt[before:].max(axis=0), "deg"),
        ("sideways travel", np.abs(worlds.qpos[:, 1]) * 1e3, "mm"),
    ):
        table.add_row(name, *(f"{v:.1f} {unit}" for v in (values.min(), np.median(values), values.max())))
    console.print(table)
    steps = periods * 16 * twin.substeps
    console.print(
        f"{(tilt[-1] > 60).sum()} of 16 fell over. {steps:,} physics steps at {steps / stepping:,.0f} a second, "
        f"{time.perf_counter() - started:.1f} s in all with the pictures. Eight of them 0.5 s after the push: {OUT}"
    )


def picture(worlds: Worlds, world: int) -> np.ndarray:
    model, data = worlds.batch.get_model(world), worlds.batch.get_data(world)
    mujoco.mj_forward(model, data)
    return render(model, data, 320, 240)


if __name__ == "__main__":
    main()
