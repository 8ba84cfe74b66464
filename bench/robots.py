"""What each command makes of robots that others modelled: it works, works in part and says why, or refuses in one sentence.

    python -m bench.robots [--only panda,h1] [--stages load,standin,inspect,replay,gap,fit,excite,export] [--json]

Robots are the models of shared/data/models, and URDF files of the package example-robot-data where it is installed. Each is
given the same three secrets (drives at 0.8 of their gain, 12 ms of delay, 0.05 N m of dry friction more; everything else within
its tolerance), moves for 20 s with its base held, and goes through the commands as a user would type them. `--load-only` loads
all URDF files and does nothing else.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.data import DATA

STAGES = ("load", "standin", "inspect", "replay", "gap", "fit", "excite", "export")
SECONDS = 20.0
PATIENCE = 600.0  # s that one command may take
SECRETS = """robot = "{robot}"
in_air = {in_air}
seed = 7
[change]
"gains.kp/*" = "x0.8"
"latency.action" = 0.012
"friction.coulomb/*" = "+0.05"
[sensors]
noise_q = 0.0005
noise_dq = 0.02
quantum_q = 0.0004
"""
LEFT_OUT = ("it is ignored", "touch nothing", "have no drive")  # what sentences say of parts that are not used
GOES_ON = ("works", "in part")
URDFS = 20  # of the package, every third or so by name
GAINS = {"agility_cassie": ("80", "2"), "unitree_h1": ("200", "5")}  # of robots whose models take torque: kp, kd


def models() -> list[Path]:
    """The models of others that are here."""
    return sorted((DATA / "models").glob("*.xml"))


def urdfs() -> list[Path]:
    """All URDF files of the package example-robot-data; none where it is not installed."""
    share = (
        Path(sys.prefix) / "lib" / f"python3.{sys.version_info.minor}" / "site-packages/cmeel.prefix/share/example-robot-data"
    )
    return sorted(share.rglob("*.urdf"))


def run(*words: str) -> dict[str, Any]:
    """A command as a user types it: how it ended, what it said, and how long it took."""
    started = time.perf_counter()
    try:
        done = subprocess.run(
            [sys.executable, "-c", "from gapless.cli import main; main()", *words],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        code, printed, said = done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired:
        code, printed, said = -1, "", f"stopped after {PATIENCE:.0f} s"
    seconds = round(time.perf_counter() - started, 1)
    lines = [line for line in said.strip().splitlines() if line.strip()]
    traceback = "Traceback" in said or code not in (0, 1, 2, 3)
    end = "traceback" if traceback else "refused" if code == 2 else "failed" if code == 1 else "works"
    left_out = [line.strip(' ",') for line in printed.splitlines() if any(words in line for words in LEFT_OUT)]
    if end == "works" and left_out:
        end, lines = "in part", [left_out[0][:300]]
    return {"end": end, "said": lines[-1] if lines else "", "printed": printed, "seconds": seconds}


def tried(robot: Path, stages: list[str], folder: Path) -> dict[str, dict[str, Any]]:
    """Every stage of one robot that the stages before allow."""
    out: dict[str, dict[str, Any]] = {"load": run("robots", str(robot), "--json")}
    if out["load"]["end"] not in GOES_ON:
        return out
    floating = bool(json.loads(out["load"]["printed"]).get("floating"))
    gains = GAINS.get(robot.stem)
    told = ("--kp", gains[0], "--kd", gains[1]) if gains else ()
    held = (*(("--in-air",) if floating else ()), *told)
    log, spec, fitted = str(folder / "log.npz"), folder / "secret.toml", str(folder / "fit")
    spec.write_text(SECRETS.format(robot=robot, in_air="true" if floating else "false"))
    commands = {
        "standin": ("standin", str(spec), "--seconds", str(SECONDS), *told, "--out", log),
        "inspect": ("inspect", log, "--robot", str(robot), "--json"),
        "replay": ("replay", str(robot), log, *held, "--json"),
        "gap": ("gap", str(robot), log, *held, "--json"),
        "fit": ("fit", str(robot), log, *held, "--out", fitted, "--json"),
        "excite": ("excite", str(robot), *held, "--effort", "0.3", "--out", str(folder / "motion.csv"), "--json"),
        "export": ("export", fitted, "--to", "mjlab"),
    }
    needs = {"inspect": "standin", "replay": "standin", "gap": "standin", "fit": "standin", "export": "fit"}
    for stage, words in commands.items():
        if stage in stages and out.get(needs.get(stage, "load"), {}).get("end") in GOES_ON:
            out[stage] = run(*words)
    return out


def figures(stages: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """What is kept of one robot: how each stage ended, what it said, and the error held out before and after."""
    kept: dict[str, Any] = {
        name: {k: stage[k] for k in ("end", "said", "seconds")}
        | ({} if stage["end"] == "works" else {"said": stage["said"][:300]})
        for name, stage in stages.items()
    }
    if stages.get("fit", {}).get("end") in (*GOES_ON, "failed") and stages["fit"]["printed"].strip():
        result = json.loads(stages["fit"]["printed"].splitlines()[-1])
        kept["fit"] |= {"verdict": result["verdict"], "heldout": {k: result["heldout"][k] for k in ("given", "fit")}}
    return kept


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="parts of the names of robots, with commas between them")
    parser.add_argument("--stages", default=",".join(STAGES), help="which commands")
    parser.add_argument("--load-only", action="store_true", help="load every URDF file of example-robot-data, and nothing else")
    parser.add_argument("--json", action="store_true", help="print one JSON line, last")
    options = parser.parse_args()
    wanted = [part for part in options.only.split(",") if part]
    stages = ["load"] if options.load_only else options.stages.split(",")
    every = urdfs()
    robots = every if options.load_only else models() + every[:: max(1, len(every) // URDFS)][:URDFS]
    result = {}
    for robot in robots:
        if wanted and not any(part in robot.stem for part in wanted):
            continue
        with tempfile.TemporaryDirectory() as folder:
            result[robot.stem] = figures(tried(robot, stages, Path(folder)))
        ends = ", ".join(f"{name} {stage['end']} {stage['seconds']:.0f} s" for name, stage in result[robot.stem].items())
        print(f"{robot.stem}: {ends}", flush=True)
        for name, stage in result[robot.stem].items():
            if stage["end"] != "works":
                print(f"    {name}: {stage['said']}", flush=True)
        if "heldout" in result[robot.stem].get("fit", {}):
            print(f"    fit: {result[robot.stem]['fit']['verdict']}", flush=True)
    if options.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
