"""The demo: a robot with secrets is recorded, its gap measured and explained, the model fitted, the truth revealed.

python examples/demo.py

What it runs are the commands that a user would run; everything is written to out/demo.
"""

import json
import time
from pathlib import Path

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from gapless.cli import main as gapless
from gapless.errors import BadInput
from gapless.logs import read
from gapless.twin import Twin
from gapless.worlds import StandIn, replay
from gapless.worlds import load_standin as load

OUT = Path("out/demo")
ROBOT = """robot = "quadruped"       # hung up in a frame
in_air = true
seed = 11                 # everything not named here is drawn within its tolerance
[change]
"gains.kp/*" = "x0.75"
"friction.coulomb/*_calf" = "x3"
"latency.action" = 0.011
[sensors]
noise_q = 0.0005
noise_dq = 0.02
"""
LOGS = ("monday", "tuesday", "held-out")


def main() -> None:
    console, started = Console(highlight=False), time.perf_counter()
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "robot.toml").write_text(ROBOT)
    for seed, name in enumerate(LOGS):
        run(console, "standin", OUT / "robot.toml", "--seconds", 20, "--seed", seed, "--out", OUT / f"{name}.npz")
    known = [OUT / f"{name}.npz" for name in LOGS[:2]]
    run(console, "gap", "quadruped", known[0], "--in-air", "--out", OUT / "gap")
    run(console, "fit", "quadruped", *known, "--in-air", "--out", OUT / "fit")
    console.rule("what it did not see")
    before, after = errors()
    console.print(
        f"{LOGS[2]}.npz, free run: [b]{before:.3f} deg[/b] with the model as given, [b]{after:.3f} deg[/b] with the twin"
    )
    console.print(revealed())
    console.print(f"{time.perf_counter() - started:.0f} s in all. Open {OUT}/gap/report.html and {OUT}/fit/report.html")


def run(console: Console, *words: object) -> None:
    """Run a command as a user would."""
    said = [str(w) for w in words]
    console.rule(f"gapless {' '.join(said)}", align="left")
    try:
        gapless(said)
    except BadInput as error:
        raise SystemExit(f"gapless: {error}") from None


def errors() -> tuple[float, float]:
    """Root mean square error of the model and of the twin on motion that neither has seen, mean over joints [deg]."""
    log = read(OUT / f"{LOGS[2]}.npz")
    twins = (Twin.load("quadruped", in_air=True), Twin.load(OUT / "fit/twin.xml"))
    before, after = (float(np.degrees(replay(twin, log).rmse("q").mean())) for twin in twins)
    return before, after


def revealed() -> Table:
    """The secrets beside what was found."""
    stand_in = StandIn(load(OUT / "robot.toml"))
    truth, everything = stand_in.named(), stand_in.reveal()
    # of delays only the sum is seen; jitter delays by half of it on average
    truth["latency.action"] += everything["latency.observation"] + everything["latency.jitter"] / 2
    found = json.loads((OUT / "fit/fit.json").read_text())["parameters"]
    by_member = {m: f for name, f in found.items() for m in f["shared_by"] or (name,)}
    note = (
        "latency of command and reading together; intervals take masses and lengths as given, and this robot's are not exactly"
    )
    table = Table(title="The secrets, revealed", caption=note, box=box.SIMPLE)
    for heading in ("", "model", "robot", "found", "90 % interval"):
        table.add_column(heading, justify="right" if heading else "left")
    shown: set[tuple[str, float]] = set()
    for name, value in truth.items():
        quantity = name.partition("/")[0]
        if name not in by_member or (quantity, value) in shown:
            continue
        shown.add((quantity, value))
        f = by_member[name]
        table.add_row(name, *(f"{x:.4g}" for x in (f["nominal"], value, f["value"])), f"{f['low']:.4g} to {f['high']:.4g}")
    return table


if __name__ == "__main__":
    main()
