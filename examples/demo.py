"""The demo: a robot with secrets is recorded, its gap measured and explained, the model fitted, the truth revealed.

python examples/demo.py

Everything is written to out/demo.
"""

import time
from pathlib import Path

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

import gapless
from gapless.worlds import StandIn, StandInSpec, build_standin, load_standin, plan_motion, record

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


def main() -> None:
    console, started = Console(highlight=False), time.perf_counter()
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "robot.toml").write_text(ROBOT)
    spec = load_standin(OUT / "robot.toml")
    with console.status("recording 3 logs of 20 s"):
        logs = [recorded(spec, seed) for seed in range(3)]
    twin = gapless.as_given("quadruped", in_air=True)
    with console.status("looking for causes") as status:
        diagnosis = gapless.diagnose(twin, logs[:1], lambda doing, left: status.update(doing))
    console.rule("how far the model is from the robot, and why", align="left")
    console.print(diagnosis)
    diagnosis.save(OUT / "gap")
    with console.status("fitting") as status:
        fit = gapless.fit(twin, logs[:2], tick=status.update)
    console.rule("the model, fitted to two logs", align="left")
    console.print(fit)
    fit.save(OUT / "fit")
    console.rule("the third log, which the fit did not see", align="left")
    saved = gapless.Twin.load(OUT / "fit/twin.xml")
    before, after = (np.degrees(np.mean(list(gapless.replay_logs(t, logs[2:]).rmse["q"].values()))) for t in (twin, saved))
    console.print(f"free run: [b]{before:.3f} deg[/b] with the model as given, [b]{after:.3f} deg[/b] with the twin")
    console.print(revealed(StandIn(spec), fit))
    console.print(f"{time.perf_counter() - started:.0f} s in all. Open {OUT}/gap/report.html and {OUT}/fit/report.html")


def recorded(spec: StandInSpec, seed: int) -> gapless.Log:
    """20 s of rich motion of the stand-in, also written to a file."""
    commands = plan_motion("rich", build_standin(spec), 20.0, np.random.default_rng(seed))
    robot = StandIn(spec)
    log = record(robot, commands, robot.signal, "robot.toml")
    gapless.write(log, OUT / f"{seed}.npz")
    return gapless.read(OUT / f"{seed}.npz")


def revealed(robot: StandIn, fit: gapless.Fit) -> Table:
    """The secrets beside what was found."""
    truth, everything = robot.named(), robot.reveal()
    # of delays only the sum is seen; jitter delays by half of it on average
    truth["latency.action"] += everything["latency.observation"] + everything["latency.jitter"] / 2
    estimates = {member: p for name, p in fit.parameters.items() for member in p.shared_by or (name,)}
    note = "latency of command and reading together; intervals allow for masses, lengths and all else within their tolerances"
    table = Table(title="The secrets, revealed", caption=note, box=box.SIMPLE)
    for heading in ("", "model", "robot", "found", "90 % interval"):
        table.add_column(heading, justify="right" if heading else "left")
    shown: set[tuple[str, float]] = set()
    for name, value in truth.items():
        quantity = name.partition("/")[0]
        if name in estimates and (quantity, value) not in shown:
            shown.add((quantity, value))
            p = estimates[name]
            table.add_row(name, *(f"{x:.4g}" for x in (p.nominal, value, p.value)), f"{p.low:.4g} to {p.high:.4g}")
    return table


if __name__ == "__main__":
    main()
