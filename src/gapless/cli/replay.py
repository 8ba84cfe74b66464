"""`gapless replay`: drive logs through a model and show how far it is from the robot."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

if TYPE_CHECKING:
    from gapless.twin import Twin
    from gapless.worlds import Replay

HORIZONS = (0.05, 0.1, 0.2, 0.5, 1.0)


def replay(
    model: Annotated[str, tyro.conf.Positional],
    logs: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="LOG...")],
    *,
    mapping: Annotated[str | None, tyro.conf.arg(metavar="NAME|TOML")] = None,
    window: Annotated[float | None, tyro.conf.arg(metavar="S")] = None,
    end: Annotated[float | None, tyro.conf.arg(metavar="S")] = None,
    kp: float | None = None,
    kd: float | None = None,
    set: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=VALUE")] = (),
    belief: Annotated[Path | None, tyro.conf.arg(metavar="JSON")] = None,
    in_air: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    out: Annotated[Path | None, tyro.conf.arg(metavar="HTML")] = None,
    view: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
) -> None:
    """Drive logs through a model: measured, replayed and commanded motion, and the error by joint and horizon.

    For example `gapless replay go2.xml walk.mcap --kp 20 --kd 1.5`, or
    `gapless replay so101.xml motions/multisine --mapping so101 --window 0.5 --set "friction.coulomb/*=0.1"`.

    Args:
        model: A built-in robot, a path to an MJCF or URDF file, or menagerie:NAME.
        logs: Files, SAGE or LeRobot folders, or folders of logs.
        mapping: What the files cannot say: so101, go2_inair, double_pendulum, xl330, simple_pendulum, or a TOML file.
        window: Start anew from the measured state every so many seconds; runs free from the first sample unless given.
        end: Use only the first so many seconds of each log.
        kp: Proportional gain of all drives [Nm/rad], for a model that takes torque and a robot that takes positions.
        kd: Derivative gain of all drives [Nms/rad].
        set: Parameters at other than their nominal values; patterns match.
        belief: A belief whose mean is used.
        in_air: The floating base is held fixed.
        out: Plot into this file; replay.html unless given (none with --json).
        view: Show both robots in the browser, the replayed one as a ghost.
        json: Print JSON: rmse by signal and joint, the command as prediction, seconds.
    """
    import time

    import numpy as np
    from rich.console import Console
    from rich.progress import track

    from gapless.cli.options import log_paths
    from gapless.errors import BadInput
    from gapless.logs import load_mapping, read
    from gapless.robots import load_robot
    from gapless.twin import as_given, load_recipe, stated_gains, written_recipe
    from gapless.worlds import Replayer

    for option, seconds in (("window", window), ("end", end)):
        if seconds is not None and not 0 < seconds < np.inf:
            raise BadInput(f"--{option} must be a positive number of seconds, not {seconds:g}")
    if out and not out.parent.is_dir():
        raise BadInput(f"{out}: there is no folder {out.parent}")
    robot = load_robot(model)
    paths = log_paths(logs)
    stated = load_mapping(mapping) if mapping else None
    if belief and written_recipe(belief):
        twin = load_recipe(robot, belief, stated_gains(kp, kd), in_air)
    else:
        twin = as_given(robot, read(paths[0], stated), kp, kd, in_air)
    values = _values(twin, belief, set)
    results: dict[str, Replay] = {}
    started, robot_seconds = time.perf_counter(), 0.0
    console = Console(stderr=True)
    for path in track(paths, "replaying", console=console, disable=json or len(paths) < 2 or not console.is_terminal):
        log = read(path, stated)
        results[str(path)] = Replayer(twin, log, window, end=end)(values)
        robot_seconds += float(np.nanmax(results[str(path)].time)) * len(results[str(path)].starts)
    seconds = time.perf_counter() - started
    if json:
        _print_json(results, seconds, robot_seconds)
    else:
        _print_table(results, window, seconds, robot_seconds, twin.warnings)
        out = out or Path("replay.html")
    if out:
        from gapless.worlds import replay_page as page

        page(results, out)
        if not json:
            console.print(f"plotted into {out}", markup=False, highlight=False)
    if view:
        from gapless.worlds import view_replay as show

        show(twin, next(iter(results.values())))


def _values(twin: Twin, belief: Path | None, given: tuple[str, ...]) -> Any:
    """One vector of parameters: nominal, or a belief's mean, with what was set put in. Shape: (1, parameters)."""
    from gapless.twin import load_belief

    values = twin.space.nominal[None].copy()
    if belief is not None:
        known = load_belief(belief)
        values = twin.expand(known.mean()[None], known.space)
    for name, value in _settings(given).items():
        for hit in twin.space.match(name):
            values[:, twin.space.names.index(hit)] = value
    twin.space.check(values)
    return values


def pooled(results: dict[str, Replay], signal: str) -> Any:
    """Root mean square error over all samples of all logs, by column; NaN samples are left out."""
    import numpy as np

    errors = [r.error(signal)[0].reshape(-1, r.error(signal).shape[-1]) for r in results.values() if signal in r.replayed]
    if any(r.failed.any() for r in results.values()):
        return np.full(errors[0].shape[1], np.inf)
    return np.sqrt(np.nanmean(np.concatenate(errors) ** 2, axis=0))


def _command(results: dict[str, Replay]) -> Any:
    import numpy as np

    errors = [(r.command - r.measured["q"]).reshape(-1, len(r.joints)) for r in results.values()]
    flat = np.concatenate(errors)
    there = ~np.isnan(flat).all(axis=0)
    out = np.full(flat.shape[1], np.nan)
    out[there] = np.sqrt(np.nanmean(flat[:, there] ** 2, axis=0))
    return out


def _print_json(results: dict[str, Replay], seconds: float, robot_seconds: float) -> None:
    import json
    import math

    first = next(iter(results.values()))
    signals = [s for s in first.replayed if all(s in r.replayed for r in results.values())]

    def named(names: tuple[str, ...], values: Any) -> dict[str, float | None]:
        return {n: float(v) if math.isfinite(v) else None for n, v in zip(names, values, strict=True)}

    columns = {s: first.columns[s] if s != "quat" else ("x", "y", "z") for s in signals}
    print(
        json.dumps(
            {
                "rmse": {s: named(columns[s], pooled(results, s)) for s in signals},
                "command": named(first.joints, _command(results)),
                "seconds": seconds,
                "robot_seconds": robot_seconds,
                "diverged": sorted(name for name, r in results.items() if r.failed.any()),
                "logs": {name: named(r.joints, r.rmse("q")[0]) for name, r in results.items()},
            }
        )
    )


def _print_table(
    results: dict[str, Replay], window: float | None, seconds: float, robot_seconds: float, warnings: tuple[str, ...]
) -> None:
    import numpy as np
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    first = next(iter(results.values()))
    console = Console()
    kind = f"windows of {window:g} s" if window else "free-running"
    many = f"{len(results)} logs" if len(results) > 1 else "1 log"
    table = Table(title=f"position error (deg), root mean square, {many}, {kind}")
    table.add_column("joint", no_wrap=True)
    horizons = [h for h in HORIZONS if window and h <= window + 1e-9]
    for heading in ("command", "replayed", *(f"{h:g} s" for h in horizons)):
        table.add_column(heading, justify="right")
    error, command = np.degrees(pooled(results, "q")), np.degrees(_command(results))
    at = np.array([_at_horizon(results, h) for h in horizons]).reshape(len(horizons), len(first.joints))
    for j, joint in enumerate(first.joints):
        cells = [_degrees(command[j]), _degrees(error[j]), *(_degrees(v) for v in at[:, j])]
        table.add_row(escape(joint), *cells)
    table.add_section()
    table.add_row("mean", _degrees(np.mean(command)), _degrees(np.mean(error)), *(_degrees(v.mean()) for v in at))
    console.print(table)
    for name, r in results.items():
        if r.failed.any():
            console.print(f"[red]diverged[/red] {escape(name)}: physics broke in {int(r.failed.sum())} windows")
    for warning in warnings:
        console.print(f"[yellow]assumed[/yellow] {escape(warning)}")
    console.print(f"{robot_seconds:.0f} s of robot time in {seconds:.2f} s")


def _at_horizon(results: dict[str, Replay], horizon: float) -> Any:
    """Root mean square error of the samples around a time since the window's start, by joint."""
    import numpy as np

    squares = []
    for r in results.values():
        near = np.abs(r.time - horizon) <= max(0.1 * horizon, np.nanmedian(np.diff(r.time, axis=1)))
        squares.append(r.error("q")[0][near] ** 2)
    return np.degrees(np.sqrt(np.nanmean(np.concatenate(squares), axis=0)))


def _degrees(value: float) -> str:
    return "-" if value != value else f"{value:.3g}"


def _settings(given: tuple[str, ...]) -> dict[str, float]:
    from gapless.errors import BadInput

    out = {}
    for text in given:
        name, equals, value = text.rpartition("=")
        try:
            out[name] = float(value)
        except ValueError:
            equals = ""
        if not equals or not name:
            raise BadInput(f"--set takes NAME=VALUE, such as friction.coulomb/*=0.1, not {text!r}")
    return out
