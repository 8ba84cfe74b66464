"""`gapless gap`: how far a model is from its robot, why, and what to do next."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

if TYPE_CHECKING:
    from rich.console import Console

    from gapless.logs import Log
    from gapless.twin import Twin

SHORTEST = 4.0  # s: two blocks of 2 s, one to explain and one to test on


def gap(
    model: Annotated[str, tyro.conf.Positional],
    logs: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="LOG...")] = (),
    *,
    mapping: Annotated[str | None, tyro.conf.arg(metavar="NAME|TOML")] = None,
    kp: float | None = None,
    kd: float | None = None,
    in_air: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    task: Annotated[Path | None, tyro.conf.arg(metavar="TABLE.json")] = None,
    experiment: Literal["replay"] | None = None,
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None,
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
) -> None:
    """Measure how far a model is from logs, share it out among causes, and say what to do next.

    For example `gapless gap go2.xml inair.npz --mapping go2_inair --out gap`. With --experiment replay the same commands played
    twice are compared over time: `gapless gap --experiment replay monday.mcap tuesday.mcap` asks how much a robot differs from
    itself; a log recorded in the twin, or a model before the logs, adds how the twin parts from the robot.

    Args:
        model: A built-in robot, a path to an MJCF or URDF file, or menagerie:NAME. With --experiment it may be left out.
        logs: Files, SAGE or LeRobot folders, or folders of logs.
        mapping: What the files cannot say: so101, go2_inair, double_pendulum, xl330, simple_pendulum, or a TOML file.
        kp: Proportional gain of all drives [Nm/rad], for a model that takes torque and a robot that takes positions.
        kd: Derivative gain of all drives [Nms/rad].
        in_air: The floating base is held fixed.
        task: What each mechanism costs the task: a JSON table of mechanism to loss, shown beside its share of the error.
        experiment: Compare runs of the same commands over time instead.
        out: Folder for gap.json (or experiment.json) and report.html; nothing is written unless given.
        json: Print JSON instead of a picture.
    """
    from rich.console import Console

    from gapless.cli.options import log_paths
    from gapless.errors import BadInput
    from gapless.logs import load_mapping, read
    from gapless.twin import as_given

    console = Console(stderr=True)
    if out and out.exists() and not out.is_dir():
        raise BadInput(f"{out}: not a folder, so no results can be put there")
    losses = _losses(task) if task else []
    named, given = (None, (Path(model), *logs)) if experiment and _is_log(model) else (model, logs)
    paths = log_paths(given)
    stated = load_mapping(mapping) if mapping else None
    read_logs = [read(path, stated) for path in paths]
    twin = as_given(named, read_logs[0], kp, kd, in_air) if named else None
    if experiment or twin is None:
        summary, traces = _experiment(read_logs, twin), ()
    else:
        summary, traces = _gap(twin, read_logs, losses, console)
    provenance = _provenance(named, read_logs)
    if out:
        _write(summary | {"robot": twin.name if twin else "", "provenance": provenance}, traces, out)
    if json:
        import json as text

        print(text.dumps(summary))
        return
    _show(summary, twin, Console())
    if out:
        console.print(f"{', '.join(p.name for p in sorted(out.iterdir()))} in {out}", markup=False, highlight=False)


def _gap(twin: Twin, logs: list[Log], losses: list[dict[str, Any]], console: Console) -> tuple[dict[str, Any], Any]:
    """The gap as plain data under the keys of gap.json, and traces to plot."""
    from gapless.explain import explain
    from gapless.explain import gap_verdict as verdict
    from gapless.gap import admit, finite, long_enough, measure, moving, phase_map, plain

    admit(twin, logs)
    long_enough(logs, SHORTEST)
    moving(logs)
    with console.status("looking for causes", spinner="dots") as status:
        found = finite(explain(twin, logs, lambda text: status.update(text)).json())
        status.update("measuring")
        measured = measure(twin, logs, _with_causes(twin, found["mechanisms"]))
    remainder = {"share": found["remainder"]["share"], "where": found["remainder"]["where"], "kind": found["verdict"]}
    remainder |= {"tolerances": found["tolerances"], "map": phase_map(measured.traces)}
    summary = {
        "verdict": "",
        **plain(measured),
        "explained": found["explained"],
        "mechanisms": found["mechanisms"],
        "remainder": remainder,
        "task": losses,
        "next": found["next"],
    }
    summary["verdict"] = verdict(summary).text
    return summary, measured.traces


def _with_causes(twin: Twin, mechanisms: list[dict[str, Any]]) -> Any:
    """The twin's parameters with the causes put in; None where there are none, or the twin has no place for one of them."""
    found = {name: p["value"] for m in mechanisms for name, p in m["parameters"].items()}
    return twin.space.values(found) if found and set(found) <= set(twin.space.names) else None


def _experiment(logs: list[Log], twin: Twin | None) -> dict[str, Any]:
    from gapless.gap import experiment, plain_experiment
    from gapless.gap import experiment_verdict as verdict

    found = plain_experiment(experiment(logs, twin))
    return {"verdict": verdict(found).text, **found}


def _is_log(name: str) -> bool:
    """Whether what was named first is a log (or a folder of them) and not a model."""
    from gapless.robots import BUILT_IN

    return (
        name not in BUILT_IN
        and not name.startswith("menagerie:")
        and Path(name).suffix.lower() not in (".xml", ".urdf", ".mjcf")
    )


def _losses(path: Path) -> list[dict[str, Any]]:
    """A table {mechanism: loss}, the largest loss first."""
    import json
    import math

    from gapless.errors import BadInput
    from gapless.files import text

    try:
        table = json.loads(text(path, 2**20))
    except (ValueError, RecursionError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(f"{path}: not valid JSON ({error})") from None
    numbers = isinstance(table, dict) and all(
        isinstance(v, int | float) and not isinstance(v, bool) and math.isfinite(v) for v in table.values()
    )
    if not numbers:
        raise BadInput(
            f'{path}: a table of losses has one number for each mechanism, such as {{"latency": 0.3, "friction": 0.1}}'
        )
    return [{"name": name, "loss": float(loss)} for name, loss in sorted(table.items(), key=lambda pair: -pair[1])]


def _provenance(model: str | None, logs: list[Log]) -> dict[str, Any]:
    """What it was made from: inputs with hashes, and versions."""
    from importlib.metadata import version

    from gapless.files import sha256

    made: dict[str, Any] = {}
    if model:
        file = Path(model)
        made["model"] = {"source": model, **({"sha256": sha256(file)} if file.is_file() else {})}
    made["log"] = [f"{log.provenance.source} {log.provenance.sha256}".strip() for log in logs]
    return made | {"version": {name: version(name) for name in ("gapless", "mujoco", "numpy", "scipy")}}


def _write(summary: dict[str, Any], traces: Any, out: Path) -> None:
    import json

    from gapless.explain import gap_page
    from gapless.files import atomic
    from gapless.gap import experiment_page

    out.mkdir(parents=True, exist_ok=True)
    measured = "error" in summary
    with atomic(out / ("gap.json" if measured else "experiment.json")) as part:
        part.write_text(json.dumps(summary, indent=1))
    if measured:
        gap_page(summary, traces, out / "report.html")
    else:
        experiment_page(summary, out / "report.html")


def _show(summary: dict[str, Any], twin: Twin | None, console: Console) -> None:
    from rich.markup import escape

    if "error" in summary:
        from gapless.explain import show_gap as show

        show(summary, console)
    else:
        from gapless.gap import show_experiment

        show_experiment(summary, console)
    for warning in twin.warnings if twin else ():
        console.print(f"[yellow]assumed[/yellow] {escape(warning)}")
