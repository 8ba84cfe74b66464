"""Foreign logs through `gapless init`, inspect, replay and fit, as a user types them, without a line of the draft edited.

    python -m bench.drafts [--only PART] [--json]

A stand-in moves for 20 s; what was recorded is written as a ROS 2 bag (MCAP) with JointTrajectory commands, a bag with bare
Float64MultiArray commands in another order, a .db3 bag, a pair of Unitree tables, and a table as people have them (German,
degrees, milliseconds, decimal commas, comment lines). How each command ended, and the held-out error before and after [deg].
"""

import argparse
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bench.robots import run
from gapless.logs import Log
from gapless.twin import Twin
from gapless.worlds import StandIn, StandInSpec, plan_motion, record
from tests.logs import bags

CHANGE = {"gains.kp/*": "x0.8", "latency.action": 0.012, "friction.coulomb/*": "+0.05"}
SENSORS = {"noise_q": 0.0005, "noise_dq": 0.02, "quantum_q": 0.0004}
LEGS = [f"{leg}_{part}" for leg in ("FR", "FL", "RR", "RL") for part in ("hip", "thigh", "calf")]


def recorded(robot: str, in_air: bool) -> Log:
    """20 s of a stand-in with the secrets of bench.robots."""
    motion = plan_motion("rich", Twin.load(robot, in_air=in_air), 20.0, np.random.default_rng(0))
    return record(StandIn(StandInSpec(robot, seed=7, change=CHANGE, sensors=SENSORS, in_air=in_air)), motion)


def bag(commands: Callable[[bags.Writer, Log], None], mcap: bool) -> Callable[[Path, Log], list[Path]]:
    """A way to write a log as a bag."""

    def written(folder: Path, log: Log) -> list[Path]:
        writer = bags.Writer(folder / "bag", mcap)
        bags.states(writer, log)
        commands(writer, log)
        writer.close()
        return [folder / "bag"]

    return written


def table(path: Path, columns: dict[str, np.ndarray], delimiter: str = ",", top: str = "") -> Path:
    rows = [delimiter.join(f"{v:.6f}" for v in row) for row in np.column_stack(list(columns.values())).tolist()]
    text = "\n".join(rows)
    path.write_text(f"{top}{delimiter.join(columns)}\n{text.replace('.', ',') if delimiter == ';' else text}\n")
    return path


def unitree(folder: Path, log: Log) -> list[Path]:
    """lowcmd.csv and lowstate.csv, in milliseconds and the order of Unitree's motors."""
    wanted, files = log.at("q_cmd", log["q"].time)[:, [log.joints.index(j) for j in LEGS]], []
    for name, part, fields in (
        ("lowcmd", "motor_cmd", {"q": wanted}),
        ("lowstate", "motor_state", {"q": log["q"].of(LEGS), "dq": log["dq"].of(LEGS)}),
    ):
        columns = {"timestamp": 1e3 * log["q"].time}
        columns |= {f"{part}[{i}].{field}": values[:, i] for field, values in fields.items() for i in range(len(LEGS))}
        files.append(table(folder / f"{name}.csv", columns))
    return files


def messy(folder: Path, log: Log) -> list[Path]:
    """Degrees, milliseconds, decimal commas, German titles, comment lines."""
    wanted, columns = log.at("q_cmd", log["q"].time), {"Zeit": 1e3 * log["q"].time}
    for i, joint in enumerate(log.joints):
        columns |= {f"{joint.title()} Winkel": np.degrees(log["q"].values[:, i])}
        columns |= {f"{joint.title()} Soll": np.degrees(wanted[:, i])}
    return [table(folder / "run 3.csv", columns, ";", "# lab 2\nArm, third try\n")]


FILES = {
    "MCAP bag, JointTrajectory": ("arm", bag(bags.trajectories, True)),
    "bag, Float64MultiArray": ("arm", bag(lambda writer, log: bags.arrays(writer, log, [3, 1, 0, 2, 5, 4]), True)),
    ".db3 bag, JointTrajectory": ("arm", bag(bags.trajectories, False)),
    "Unitree tables": ("quadruped", unitree),
    "messy table": ("arm", messy),
}


def through(robot: str, files: list[Path]) -> dict[str, Any]:
    """What each command made of the files."""
    mapping, fitted = str(files[0].parent / "drafted.toml"), str(files[0].parent / "fit")
    held = ("--in-air",) if robot == "quadruped" else ()
    given = (str(files[0]), "--mapping", mapping)
    ends = {
        "init": run("init", *map(str, files), "--robot", robot, "--out", mapping),
        "inspect": run("inspect", *given, "--robot", robot, *held, "--json"),
        "replay": run("replay", robot, *given, *held, "--json"),
        "fit": run("fit", robot, *given, *held, "--out", fitted, "--json"),
    }
    out: dict[str, Any] = {name: f"{end['end']} {end['said']}".strip() for name, end in ends.items()}
    if printed := ends["fit"]["printed"].strip():
        errors = json.loads(printed)["heldout"]
        out |= {
            "given": float(np.degrees(errors["given"])),
            "fitted": float(np.degrees(errors["fit"])),
            "seconds": ends["fit"]["seconds"],
        }
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON line, last")
    parser.add_argument("--only", default="", help="a part of the names of the files")
    options = parser.parse_args()
    logs = {robot: recorded(robot, robot == "quadruped") for robot in ("arm", "quadruped")}
    result = {}
    for name, (robot, written) in FILES.items():
        if options.only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            result[name] = through(robot, written(Path(folder), logs[robot]))
        print(f"{name}: {result[name]}", flush=True)
    if options.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
