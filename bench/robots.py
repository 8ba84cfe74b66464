"""What each command makes of robots that others modelled: it works, works in part and says why, or refuses in one sentence.

    python -m bench.robots [--only panda,h1] [--stages robots,standin,...] [--seed 7] [--keep FILE] [--json | --table]

Robots are the models of shared/data/models, and 20 URDF files of the package example-robot-data where it is installed. Each is
given the same three secrets (drives at 0.8 of their gain, 12 ms of delay, 0.05 N m of dry friction more; everything else within
its tolerance), moves for --seconds with its base held, and goes through the commands as a user would type them. With --keep
every finished stage is written to a file, and what the file has is not run again. `--load-only` loads all URDF files and does
nothing else.
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
from gapless.files import atomic

STAGES = ("robots", "standin", "inspect", "replay", "gap", "fit", "excite", "export")
NEEDS = {"inspect": "standin", "replay": "standin", "gap": "standin", "fit": "standin", "export": "fit"}
PATIENCE = 1200.0  # s that one command may take
TOO_LONG = -1  # the exit code of one that takes longer
SECRETS = """robot = "{robot}"
in_air = {in_air}
seed = {seed}
[change]
"gains.kp/*" = "x0.8"
"latency.action" = 0.012
"friction.coulomb/*" = "+0.05"
[sensors]
noise_q = 0.0005
noise_dq = 0.02
quantum_q = 0.0004
"""
# what sentences say of parts that are not used, and of motions or fits that came to nothing
LEFT_OUT = ("it is ignored", "touch nothing", "have no drive", "left out", "cannot be fitted", "not moved", "nothing was found")
GOES_ON = ("works", "in part")
URDF_FOLDER = "cmeel.prefix/share/example-robot-data"  # below site-packages, or a folder of PYTHONPATH
URDFS = 20  # of the package, every third or so by name
GAINS = {"agility_cassie": ("80", "2"), "unitree_h1": ("200", "5")}  # of robots whose models take torque: kp, kd
MARKS = {"works": "yes", "in part": "part", "refused": "no", "failed": "fails"}

Stages = dict[str, dict[str, Any]]


def models() -> list[Path]:
    """The models of others that are here."""
    return sorted((DATA / "models").glob("*.xml"))


def urdfs() -> list[Path]:
    """All URDF files of the package example-robot-data; none where it is not installed."""
    return sorted(file for folder in sys.path for file in Path(folder, URDF_FOLDER).rglob("*.urdf"))


def run(*words: str) -> dict[str, Any]:
    """A command as a user types it: how it ended, the sentence that says why, what it printed, and how long it took."""
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
        code, printed, said = TOO_LONG, "", f"stopped after {PATIENCE:.0f} s"
    seconds = round(time.perf_counter() - started, 1)
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    broken = "Traceback" in said or code not in (0, 1, 2, 3, TOO_LONG) or not (printed.strip() or lines)
    ends = {TOO_LONG: "stopped", 2: "refused", 1: "failed"}
    end = "traceback or silence" if broken else ends.get(code, "works")
    why = lines[-1] if lines else _first_error(printed) if end == "failed" else ""
    left_out = next((s for s in _sentences(printed, lines) if any(words in s for words in LEFT_OUT)), None)
    if end == "works":
        end, why = ("in part", left_out) if left_out else ("works", "")
    return {"end": end, "said": why[:300], "seconds": seconds, "printed": printed}


def _sentences(printed: str, lines: list[str]) -> list[str]:
    """What a command said of the robot: on stderr, and as the warnings of a result in JSON."""
    result = json.loads(printed) if printed.lstrip().startswith("{") else {}
    return [line.removeprefix("assumed: ") for line in lines] + [str(w) for w in result.get("warnings", ())]


def _first_error(printed: str) -> str:
    """The first error that an inspection in JSON names."""
    logs = json.loads(printed).get("logs", ()) if printed.lstrip().startswith("{") else ()
    found = [finding for log in logs for finding in log["findings"]]
    return next((f["sentence"] for f in found if f["severity"] == "error"), "")


def called(robots: list[Path]) -> dict[str, Path]:
    """Robots by the names of their files, with their folders' where two are called alike."""
    stems = [robot.stem for robot in robots]
    return {r.stem if stems.count(r.stem) == 1 else f"{r.parent.parent.name}/{r.stem}": r for r in robots}


def tried(robot: Path, stages: list[str], folder: Path, seed: int, seconds: float, kept: Stages) -> Stages:
    """Every stage of one robot that the stages before allow; those that were kept are not run again."""
    floating = bool(json.loads(run("robots", str(robot), "--json")["printed"] or "{}").get("floating"))
    gains = GAINS.get(robot.stem)
    told = ("--kp", gains[0], "--kd", gains[1]) if gains else ()
    held = (*(("--in-air",) if floating else ()), *told)
    log, spec, fitted = str(folder / "log.npz"), folder / "secret.toml", str(folder / "fit")
    spec.write_text(SECRETS.format(robot=robot, in_air="true" if floating else "false", seed=seed))
    commands = {
        "robots": ("robots", str(robot), "--json"),
        "standin": ("standin", str(spec), "--seconds", str(seconds), *told, "--out", log),
        "inspect": ("inspect", log, "--robot", str(robot), "--json"),
        "replay": ("replay", str(robot), log, *held, "--json"),
        "gap": ("gap", str(robot), log, *held, "--json"),
        "fit": ("fit", str(robot), log, *held, "--out", fitted, "--json"),
        "excite": ("excite", str(robot), *held, "--effort", "0.3", "--out", str(folder / "motion.csv"), "--json"),
        "export": ("export", fitted, "--to", "mjlab"),
    }
    todo = {stage for stage in stages if stage not in kept}
    for stage in reversed(STAGES):  # what a stage needs is made once more: only its figures were kept
        todo |= {NEEDS[stage]} if stage in todo and stage in NEEDS else set()
    out = dict(kept)
    for stage in (stage for stage in STAGES if stage in todo):
        allowed = stage == "robots" or out.get(NEEDS.get(stage, "robots"), {"end": ""})["end"] in (*GOES_ON, "failed")
        out[stage] = figures(stage, run(*commands[stage])) if allowed else {"end": "-", "said": "", "seconds": 0.0}
    return out


def figures(stage: str, ended: dict[str, Any]) -> dict[str, Any]:
    """What is kept of a command: how it ended, why, its seconds; of a fit its held-out errors, of a motion what it leaves."""
    printed = ended.pop("printed")
    if stage in ("fit", "gap", "excite") and printed.lstrip().startswith("{"):
        result = json.loads(printed)
        more = {"fit": ("heldout", ("given", "fit")), "excite": ("left", ("chirp", "multisine", "designed"))}
        key, names = more.get(stage, ("", ()))
        ended |= {"verdict": result["verdict"]} | ({key: {name: result[key][name] for name in names}} if key else {})
    return ended


def table(result: dict[str, Stages]) -> str:
    """The same as a table in Markdown, with the sentence of everything that is not plainly yes below it."""
    lines = [f"| robot | {' | '.join(STAGES)} | held out after fit | gap [s] |", "|---" * (len(STAGES) + 3) + "|"]
    notes: dict[str, list[str]] = {}
    for name, stages in result.items():
        cells = []
        for stage in STAGES:
            end = stages.get(stage, {"end": "-"})
            cells.append(MARKS.get(end["end"], end["end"]))
            if end["end"] in MARKS and end["end"] != "works":
                notes.setdefault(end["said"].removeprefix("gapless: "), []).append(f"{name} {stage}")
        errors, gap = stages.get("fit", {}).get("heldout"), stages.get("gap", {}).get("seconds")
        share = f"{100 * errors['fit'] / errors['given']:.1f} %" if errors else "-"
        lines.append(f"| {name} | {' | '.join(cells)} | {share} | {'-' if gap is None else f'{gap:.0f}'} |")
    return "\n".join([*lines, "", *(f"- {', '.join(where)}: {why}" for why, where in notes.items())])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="parts of the names of robots, with commas between them")
    parser.add_argument("--stages", default=",".join(STAGES), help="which commands")
    parser.add_argument("--seed", type=int, default=7, help="of the tolerances and the motion")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each robot's motion")
    parser.add_argument("--keep", type=Path, help="JSON file of what is finished, which is not run again")
    parser.add_argument("--load-only", action="store_true", help="load every URDF file of example-robot-data, and nothing else")
    parser.add_argument("--table", action="store_true", help="print what --keep has as a table, and run nothing")
    parser.add_argument("--json", action="store_true", help="print one JSON line, last")
    options = parser.parse_args()
    wanted = [part for part in options.only.split(",") if part]
    stages = ["robots"] if options.load_only else options.stages.split(",")
    every = urdfs()
    robots = every if options.load_only else models() + every[:: max(1, len(every) // URDFS)][:URDFS]
    result: dict[str, Stages] = json.loads(options.keep.read_text()) if options.keep and options.keep.exists() else {}
    for name, robot in () if options.table else called(robots).items():
        if wanted and not any(part in name for part in wanted):
            continue
        with tempfile.TemporaryDirectory() as folder:
            result[name] = tried(robot, stages, Path(folder), options.seed, options.seconds, result.get(name, {}))
        if options.keep:
            with atomic(options.keep) as part:
                part.write_text(json.dumps(result, indent=1))
        ends = ", ".join(f"{stage} {ended['end']} {ended['seconds']:.0f} s" for stage, ended in result[name].items())
        print(f"{name}: {ends}", flush=True)
    if options.table:
        print(table(result))
    if options.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
