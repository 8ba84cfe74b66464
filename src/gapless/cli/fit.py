"""`gapless fit`: from a model and logs to a twin that predicts, and what the logs could not tell."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

if TYPE_CHECKING:
    from gapless.identify import Fit


def fit(
    model: Annotated[str, tyro.conf.Positional],
    logs: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="LOG...")],
    *,
    mapping: Annotated[str | None, tyro.conf.arg(metavar="NAME|TOML")] = None,
    kp: float | None = None,
    kd: float | None = None,
    fix: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=VALUE...")] = (),
    in_air: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    method: Literal["least-squares", "evolve"] = "least-squares",
    resume: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    out: Annotated[Path, tyro.conf.arg(metavar="DIR")] = Path("fit"),
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
) -> None:
    """Fit a model to logs: drive, delay, the friction that each actuator needs, links where torque is commanded, a table.

    For example `gapless fit go2.xml inair.npz --mapping go2_inair --out fitted`. The folder gets twin.xml (plain MJCF),
    belief.json, fit.json and report.html. Each half of the logs is predicted by a fit to the other, to choose the model and
    to judge it. Ctrl-C keeps the best so far, and --resume goes on.

    Args:
        model: A built-in robot, a path to an MJCF or URDF file, or menagerie:NAME.
        logs: Files, SAGE or LeRobot folders, or folders of logs.
        mapping: What the files cannot say: so101, go2_inair, double_pendulum, xl330, simple_pendulum, or a TOML file.
        kp: Proportional gain of all drives [Nm/rad], for a model that takes torque and a robot that takes positions.
        kd: Derivative gain of all drives [Nms/rad].
        fix: Parameters that are known, such as "gains.kp/*=14.5"; they are not fitted.
        in_air: The floating base is held fixed.
        method: evolve goes on with CMA-ES in the full model after least squares; it takes minutes.
        resume: Go on with what the folder has of an earlier run.
        out: Folder for the results.
        json: Print JSON instead of tables.
    """
    import numpy as np
    from rich.console import Console

    from gapless.cli.given import drive, log_paths
    from gapless.errors import BadInput
    from gapless.identify import fit as identify
    from gapless.identify.memory import Memory, key_of
    from gapless.logs import load_mapping, read
    from gapless.robots import load
    from gapless.twin import Twin
    from gapless.twin.belief import save
    from gapless.twin.mechanisms import Friction
    from gapless.worlds.sense import imu_of

    known = _known(fix)
    robot = load(model)
    paths = log_paths(logs)
    stated = load_mapping(mapping) if mapping else None
    read_logs = [read(path, stated) for path in paths]
    compiled = robot.spec.copy().compile()
    limits = np.abs(compiled.actuator_ctrlrange[compiled.actuator_ctrllimited.astype(bool)])
    stall = float(limits.max()) if limits.size else 1.0
    twin = Twin.load(robot, add=[Friction(full=True), *drive(kp, kd, read_logs[0], stall)], in_air=in_air)
    if imu_of(twin.model) is not None:
        raise BadInput(
            f"{twin.name} has a floating base, and only a base that is held can be fitted so far: hang it up (--in-air)"
        )
    out.mkdir(parents=True, exist_ok=True)
    words = [model, str(mapping), str(kp), str(kd), str(sorted(known.items())), str(in_air), method]
    memory = Memory.open(out / "progress.json", key_of(paths, words), resume)
    with Console(stderr=True).status("reading", spinner="dots") as status:
        found = identify(twin, read_logs, lambda text: status.update(text), memory, known, method == "evolve")
    found.twin.save(out / "twin.xml", found.values)
    save(found.belief, out / "belief.json")
    summary = _summary(found, [str(p) for p in paths])
    _write_json(out / "fit.json", summary)
    _report(found, summary, out / "report.html")
    if json:
        import json as text

        print(text.dumps(_plain(summary)))
    else:
        _print(found, summary, out)


def _known(fix: tuple[str, ...]) -> dict[str, float]:
    """Name=value pairs."""
    from gapless.errors import BadInput

    out: dict[str, float] = {}
    for pair in fix:
        name, equals, value = pair.rpartition("=")
        try:
            number = float(value)
        except ValueError:
            number = float("nan")
        if not equals or number != number:
            raise BadInput(f"--fix {pair}: expected NAME=NUMBER, such as gains.kp/*=14.5")
        if out.get(name, number) != number:
            raise BadInput(f"--fix {name}: two different values, {out[name]:g} and {number:g}")
        out[name] = number
    return out


def _summary(found: "Fit", paths: list[str]) -> dict[str, Any]:
    """The result as plain data."""
    from importlib.metadata import version

    import numpy as np

    space = found.belief.space
    spread = np.sqrt(np.diag(found.belief.covariance))
    values = space.clip(space.from_scaled(found.belief.centre))
    low, high = (space.clip(space.from_scaled(found.belief.centre + s * 1.645 * spread)) for s in (-1, 1))
    parameters = {}
    for i, p in enumerate(space.parameters):
        width = 1e-6 * (p.high - p.low)
        parameters[p.name] = {
            "value": float(values[i]),
            "low": float(low[i]),
            "high": float(high[i]),
            "nominal": p.nominal,
            "unit": p.unit,
            "identified": bool(spread[i] < 1.0),
            "at_bound": bool(values[i] - p.low < width or p.high - values[i] < width),
        }
    return {
        "robot": found.twin.name,
        "parameters": parameters,
        "undetermined": [{"parameters": list(u.parameters), "meaning": u.meaning} for u in found.undetermined],
        "errors": {"train": vars(found.train), "heldout": vars(found.heldout)},
        "ladder": [vars(r) for r in found.ladder],
        "warnings": found.warnings,
        "trusted": found.trusted,
        "zeros": {paths[i]: dict(zip(found.twin.joints, z.tolist(), strict=True)) for i, z in found.zeros.items()},
        "pose": dict(zip(found.twin.joints, found.poses.tolist(), strict=True)),
        "seconds": found.seconds,
        "logs": paths,
        "versions": {name: version(name) for name in ("gapless", "mujoco", "numpy")},
    }


def _report(found: "Fit", summary: dict[str, Any], path: Path) -> None:
    import numpy as np

    from gapless.report.fit import Trace, page

    traces = [
        Trace(
            Path(t.name).name, t.joints, t.time, t.measured, t.command, t.delayed, t.nominal, t.heldout,
            np.ones(len(t.time), dtype=bool), t.dq, t.load,
        )
        for t in found.traces
    ]  # fmt: skip
    page(_plain(summary), traces, path)


def _print(found: "Fit", summary: dict[str, Any], out: Path) -> None:
    import numpy as np
    from rich.console import Console
    from rich.table import Table

    console = Console()
    ladder = Table(title="Which model does it need? Held-out error; from `full model` on together, before each joint alone")
    for heading, justify in (("rung", "left"), ("error (deg)", "right"), ("gain", "right"), ("", "left")):
        ladder.add_column(heading, justify=justify)  # type: ignore[arg-type]
    for r in found.ladder:
        gain = f"{100 * r.gain:.0f} ± {100 * r.error:.0f} %" if r.gain or r.error else ""
        ladder.add_row(r.name, f"{np.degrees(r.heldout):.3f}", gain, "climbed" if r.climbed else "[dim]left out[/dim]")
    console.print(ladder)
    errors = Table(title="Error in the full model (deg), mean over joints")
    for heading in ("", "command", "best delay", "as given", "fitted"):
        errors.add_column(heading, justify="right" if heading else "left")
    for name, e in (("held out", found.heldout), ("all", found.train)):
        errors.add_row(name, *(f"{np.degrees(v):.3f}" if np.isfinite(v) else "-" for v in vars(e).values()))
    console.print(errors)
    for u in found.undetermined[:5]:
        names = ", ".join(u.parameters[:4]) + (" ..." if len(u.parameters) > 4 else "")
        console.print(f"[yellow]not known[/yellow] {names}: {u.meaning}")
    if len(found.undetermined) > 5:
        console.print(f"[yellow]not known[/yellow] {len(found.undetermined) - 5} more in report.html")
    for w in found.warnings:
        console.print(f"[yellow]note[/yellow] {w}")
    if not found.trusted:
        console.print("[red]do not use this fit[/red]")
    console.print(f"{found.seconds:.1f} s; twin.xml, belief.json, fit.json and report.html in {out}")


def _plain(x: Any) -> Any:
    """Without numbers that JSON does not have."""
    import math

    if isinstance(x, dict):
        return {k: _plain(v) for k, v in x.items()}
    if isinstance(x, list):
        return [_plain(v) for v in x]
    return None if isinstance(x, float) and not math.isfinite(x) else x


def _write_json(path: Path, data: dict[str, Any]) -> None:
    import json

    from gapless.logs.disk import atomic

    with atomic(path) as part:
        part.write_text(json.dumps(_plain(data), indent=1))
