"""`gapless fit`: from a model and logs to a twin that predicts, and what the logs could not tell."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
    in_air: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    out: Annotated[Path, tyro.conf.arg(metavar="DIR")] = Path("fit"),
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
) -> None:
    """Fit a model to logs: gains, delay, armature and the friction that each actuator needs, joint by joint.

    For example `gapless fit go2.xml inair.npz --mapping go2_inair --out fitted`. The folder gets twin.xml (plain MJCF),
    belief.json and fit.json. Half of the logs is held out to choose the model and to judge it.

    Args:
        model: A built-in robot, a path to an MJCF or URDF file, or menagerie:NAME.
        logs: Files, SAGE or LeRobot folders, or folders of logs.
        mapping: What the files cannot say: so101, go2_inair, double_pendulum, xl330, simple_pendulum, or a TOML file.
        kp: Proportional gain of all drives [Nm/rad], for a model that takes torque and a robot that takes positions.
        kd: Derivative gain of all drives [Nms/rad].
        in_air: The floating base is held fixed.
        out: Folder for the results.
        json: Print JSON instead of tables.
    """
    from rich.console import Console

    from gapless.cli.given import gains, log_paths
    from gapless.errors import BadInput
    from gapless.identify import fit as identify
    from gapless.logs import load_mapping, read
    from gapless.robots import load
    from gapless.twin import Twin
    from gapless.twin.belief import save
    from gapless.twin.mechanisms import Friction
    from gapless.worlds.sense import imu_of

    robot = load(model)
    paths = log_paths(logs)
    stated = load_mapping(mapping) if mapping else None
    read_logs = [read(path, stated) for path in paths]
    twin = Twin.load(robot, add=[Friction(full=True), *gains(kp, kd, read_logs[0])], in_air=in_air)
    if imu_of(twin.model) is not None:
        raise BadInput(
            f"{twin.name} has a floating base, and only a base that is held can be fitted so far: hang it up (--in-air)"
        )
    console = Console(stderr=True)
    with console.status("reading", spinner="dots") as status:
        found = identify(twin, read_logs, lambda text: status.update(text))
    out.mkdir(parents=True, exist_ok=True)
    twin.save(out / "twin.xml", found.values)
    save(found.belief, out / "belief.json")
    summary = _summary(found, [str(p) for p in paths])
    _write_json(out / "fit.json", summary)
    if json:
        import json as text

        print(text.dumps(summary))
    else:
        _print(found, summary, out)


def _summary(found: "Fit", paths: list[str]) -> dict[str, Any]:
    """The result as plain data."""
    import numpy as np

    space = found.belief.space
    spread = np.sqrt(np.diag(found.belief.covariance))
    mean = found.belief.mean()
    low, high = (space.clip(space.from_scaled(found.belief.centre + s * 1.645 * spread)) for s in (-1, 1))
    parameters = {}
    for i, p in enumerate(space.parameters):
        width = 1e-6 * (p.high - p.low)
        parameters[p.name] = {
            "value": float(mean[i]),
            "low": float(low[i]),
            "high": float(high[i]),
            "nominal": p.nominal,
            "unit": p.unit,
            "identified": bool(spread[i] < 1.0),
            "at_bound": bool(mean[i] - p.low < width or p.high - mean[i] < width),
        }
    loose = [n for n, v in parameters.items() if not v["identified"]]
    undetermined = []
    if loose:
        undetermined.append({"parameters": loose, "meaning": "the logs do not say: a real mismatch either way fits as well"})
    undetermined.append(
        {
            "parameters": sorted(
                {p.quantity for p in space.parameters if p.quantity.startswith(("gains", "friction", "armature"))}
            ),
            "meaning": "fitted to positions: joints without gravity load share one free scale of kp, damping, friction and "
            "armature; fix kp, add a known mass, or log torque",
        }
    )
    return {
        "parameters": parameters,
        "undetermined": undetermined,
        "errors": {"train": vars(found.train), "heldout": vars(found.heldout)},
        "ladder": [vars(r) for r in found.ladder],
        "seconds": found.seconds,
        "logs": paths,
    }


def _print(found: "Fit", summary: dict[str, Any], out: Path) -> None:
    import numpy as np
    from rich.console import Console
    from rich.table import Table

    console = Console()
    ladder = Table(title="Which model does the actuator need? Held-out error, each joint alone")
    for heading, justify in (("rung", "left"), ("error (deg)", "right"), ("gain", "right"), ("", "left")):
        ladder.add_column(heading, justify=justify)  # type: ignore[arg-type]
    for r in found.ladder:
        gain = f"{100 * r.gain:.0f} ± {100 * r.error:.0f} %" if r.gain or r.error else ""
        ladder.add_row(r.name, f"{np.degrees(r.heldout):.3f}", gain, "climbed" if r.climbed else "[dim]left out[/dim]")
    console.print(ladder)
    errors = Table(title="Error in the full model, free-running (deg), mean over joints")
    for heading in ("", "command", "best delay", "as given", "fitted"):
        errors.add_column(heading, justify="right" if heading else "left")
    for name, e in (("held out", found.heldout), ("all", found.train)):
        errors.add_row(name, *(f"{np.degrees(v):.3f}" for v in (e.command, e.delay, e.nominal, e.fit)))
    console.print(errors)
    loose = [n for n, v in summary["parameters"].items() if not v["identified"]]
    stuck = [n for n, v in summary["parameters"].items() if v["at_bound"]]
    for text, names in (("not determined by these logs", loose), ("at a bound, so do not trust them", stuck)):
        if names:
            console.print(
                f"[yellow]{len(names)} parameters {text}[/yellow]: {', '.join(names[:6])}{' ...' if len(names) > 6 else ''}"
            )
    console.print(f"[yellow]scale[/yellow] {summary['undetermined'][-1]['meaning']}")
    if found.heldout.fit >= min(found.heldout.nominal, found.heldout.delay):
        console.print("[red]the fit does not beat the baselines: do not use it[/red]")
    console.print(f"{found.seconds:.1f} s; twin.xml, belief.json and fit.json in {out}")


def _write_json(path: Path, data: dict[str, Any]) -> None:
    import json
    import math

    from gapless.logs.disk import atomic

    def plain(x: Any) -> Any:
        if isinstance(x, dict):
            return {k: plain(v) for k, v in x.items()}
        if isinstance(x, list):
            return [plain(v) for v in x]
        return None if isinstance(x, float) and not math.isfinite(x) else x

    with atomic(path) as part:
        part.write_text(json.dumps(plain(data), indent=1))
