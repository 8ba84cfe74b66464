"""`gapless inspect`: what is wrong with logs, in plain words, before anything is fitted to them."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

if TYPE_CHECKING:
    from gapless.logs import Delay, Facts, Report

COLOURS = {"error": "bold red", "warning": "yellow", "info": "cyan"}


def inspect(
    logs: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="LOG...")],
    *,
    robot: Annotated[str | None, tyro.conf.arg(metavar="MODEL")] = None,
    mapping: Annotated[str | None, tyro.conf.arg(metavar="NAME|TOML")] = None,
    plot: Annotated[Path | None, tyro.conf.arg(metavar="HTML|PNG")] = None,
    delay: bool = True,
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
) -> None:
    """Say what is wrong with logs: clocks, channels, units, signs, joints, IMU; and how late each joint hears its command.

    For example `gapless inspect recording.mcap --robot quadruped`, or
    `gapless inspect motions/chirp_sweep --mapping so101 --robot so101.xml --plot chirp.html`.
    Exits 0 if no error was found, 1 if one was, 2 if a log cannot be read.

    Args:
        logs: Files, SAGE or LeRobot folders, or folders of logs.
        robot: A built-in robot or a model file: joint names and ranges are compared with it.
        mapping: What the files cannot say: so101, go2_inair, double_pendulum, xl330, simple_pendulum, or a TOML file.
        plot: Draw every signal into this file (HTML works offline; PNG needs kaleido).
        delay: Estimate the delay of each joint (about a second a joint).
        json: Print JSON instead of text.
    """
    from gapless.errors import BadInput
    from gapless.logs import delays, find, load_mapping, read
    from gapless.logs import inspect as inspect_log

    if not logs:
        raise BadInput("name at least one log: gapless inspect LOG...")
    facts = _facts(robot) if robot else None
    stated = load_mapping(mapping) if mapping else None
    paths = [path for given in logs for path in find(given)]
    if not paths:
        raise BadInput(f"there is no log in {', '.join(map(str, logs))}")
    results = []
    for path in paths:
        log = read(path, stated)
        report = inspect_log(log, facts)
        found = delays(log) if delay else {}
        results.append((report, found))
        if not json:
            _print(report, found)
        if plot:
            from gapless.logs import plot as draw

            target = plot if len(paths) == 1 else plot.with_name(f"{plot.stem}_{path.name.split('.')[0]}{plot.suffix}")
            draw(log, report, target)
            print(f"drawn into {target}", file=sys.stderr)
    if json:
        import json as encoder

        print(encoder.dumps({"errors": sum(r.errors for r, _ in results), "logs": [_plain(*r) for r in results]}))
    if any(report.errors for report, _ in results):
        sys.exit(1)


def _facts(robot: str) -> "Facts":
    """Names and ranges of a model's joints, those of a floating base left out."""
    import mujoco

    from gapless.logs import Facts
    from gapless.robots import load_robot

    model = load_robot(robot).model
    kinds = (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE))
    kept = [model.joint(i) for i in range(model.njnt) if int(model.jnt_type[i]) in kinds]
    ranges = {j.name: (float(j.range[0]), float(j.range[1])) for j in kept if model.jnt_limited[j.id]}
    return Facts(tuple(j.name for j in kept), ranges)


def _print(report: "Report", found: "dict[str, Delay]") -> None:
    from rich.console import Console
    from rich.markup import escape

    from gapless.logs import common_delay as together

    console = Console(highlight=False, soft_wrap=True)
    by_rate: dict[str, list[str]] = {}
    for name, rate in report.rates.items():
        by_rate.setdefault(f"{rate:.1f} Hz", []).append(name)
    rates = "; ".join(f"{', '.join(names)} at {rate}" for rate, names in by_rate.items())
    console.print(f"[bold]{escape(report.source)}[/bold]: {report.duration:.1f} s; {rates}")
    for finding in report.findings:
        console.print(f"  [{COLOURS[finding.severity]}]{finding.severity:8}[/] {escape(finding.sentence)}")
    told = {j: d for j, d in found.items() if d.determined}
    for joint, d in told.items():
        console.print(
            f"  delay    {escape(joint)} hears its command {d.seconds * 1e3:.1f} ms late (within {d.uncertainty * 1e3:.1f} ms)"
        )
    if open_ := [j for j in found if j not in told]:
        console.print(f"  delay    not determined by this log: {escape(', '.join(open_))}")
    if len(found) > 1 and (shared := together(found)) and shared.determined:
        console.print(
            f"  delay    all joints together: {shared.seconds * 1e3:.1f} ms (within {shared.uncertainty * 1e3:.1f} ms)"
        )
    if not report.findings:
        console.print("  nothing wrong was found")


def _plain(report: "Report", found: "dict[str, Delay]") -> dict[str, Any]:
    from dataclasses import asdict

    from gapless.logs import common_delay as together

    delays = {joint: asdict(d) for joint, d in found.items()}
    shared = together(found)
    findings = [{k: v for k, v in asdict(f).items() if v not in ("", None)} for f in report.findings]
    head = {"source": report.source, "duration_s": report.duration, "rates_hz": report.rates}
    return {
        **head,
        "errors": report.errors,
        "findings": _numbers(findings),
        "delays": delays,
        "delay": asdict(shared) if shared else None,
    }


def _numbers(value: Any) -> Any:
    """The same without numpy numbers, which JSON does not know."""
    if isinstance(value, dict):
        return {k: _numbers(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_numbers(v) for v in value]
    return value.item() if hasattr(value, "item") else value
