"""`gapless fit`: from a model and logs to a twin that predicts, and what the logs could not tell."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

if TYPE_CHECKING:
    from collections.abc import Callable

    from gapless.identify import Fit
    from gapless.logs import Log, Mapping
    from gapless.twin import Belief, Twin

SIMULATIONS = 4000  # of each window of the logs, for --method posterior


def fit(
    model: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL")],
    logs: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="LOG...", help_behavior_hint="(required)")],
    *,
    mapping: Annotated[str | None, tyro.conf.arg(metavar="NAME|TOML", help_behavior_hint="")] = None,
    kp: Annotated[float | None, tyro.conf.arg(metavar="NM/RAD", help_behavior_hint="")] = None,
    kd: Annotated[float | None, tyro.conf.arg(metavar="NMS/RAD", help_behavior_hint="")] = None,
    fix: Annotated[
        tuple[tuple[str, ...], ...], tyro.conf.UseAppendAction, tyro.conf.arg(metavar="NAME=VALUE...", help_behavior_hint="")
    ] = (),
    in_air: Annotated[bool, tyro.conf.FlagCreatePairsOff, tyro.conf.arg(help_behavior_hint="")] = False,
    signals: Annotated[tuple[str, ...], tyro.conf.arg(metavar="SIGNAL...")] = ("q",),
    method: Literal["least-squares", "evolve", "posterior"] = "least-squares",
    particles: Annotated[int, tyro.conf.arg(metavar="N", help_behavior_hint="")] = 0,
    resume: Annotated[bool, tyro.conf.FlagCreatePairsOff, tyro.conf.arg(help_behavior_hint="")] = False,
    out: Annotated[Path, tyro.conf.arg(metavar="DIR")] = Path("fit"),
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff, tyro.conf.arg(help_behavior_hint="")] = False,
) -> None:
    """Fit a model to logs: find the drives' gains, delay and friction, and say what the logs do not tell.

    For example:

    gapless fit arm monday.mcap tuesday.mcap --out fitted

    gapless fit so101.xml motions/ --mapping so101 --fix "gains.kp/*=14.5"

    The folder gets twin.xml (plain MJCF), belief.json, fit.json and report.html.

    Each half of the logs is predicted by a fit to the other half: that error chooses the model and judges it.

    Bad logs are left out and named if others are good. Ctrl-C keeps the best so far, and --resume goes on.

    Args:
        model: A built-in robot, an MJCF or URDF file, or menagerie:NAME.
        logs: Files, SAGE or LeRobot folders, or folders of logs.
        mapping: What the files cannot say: so101, go2_inair, double_pendulum, xl330, simple_pendulum, or a TOML file.
        kp: Proportional gain of all drives, for a model that takes torque and a robot that takes positions.
        kd: Derivative gain of all drives.
        fix: Parameters that are known and not fitted, such as "gains.kp/*=14.5".
        in_air: The floating base was held fixed.
        signals: What the full model is fitted to: q, dq, tau. A floating base's IMU and motion capture are always used.
        method: evolve goes on with CMA-ES in the full model, for minutes. posterior learns all that the logs leave possible
            from simulations, by a network (needs gapless[posterior]).
        particles: Write the belief as so many weighted samples instead of a Gaussian.
        resume: Go on with what DIR has of an earlier run.
        out: Folder for the results.
        json: Print JSON instead of tables.
    """
    from dataclasses import replace

    from rich.console import Console

    from gapless.cli.inputs import log_paths
    from gapless.errors import BadInput
    from gapless.identify import Memory, admit, key_of
    from gapless.identify import fit as identify
    from gapless.identify import fit_page as page
    from gapless.logs import load_mapping
    from gapless.robots import load_robot
    from gapless.twin import as_given, recipe_of
    from gapless.twin import save_belief as save

    if particles < 0:
        raise BadInput(f"--particles must be a positive number, not {particles}")
    stated = _pairs(fix)
    robot = load_robot(model)
    paths = log_paths(logs)
    read, left_out = _read(paths, load_mapping(mapping) if mapping else None)
    twin = as_given(robot, next(iter(read.values())), kp, kd, in_air)
    known = _known(stated, twin, {"gains.kp": kp, "gains.kd": kd})
    admitted = admit(twin, list(read.values()))
    left_out += admitted.refused.values()
    used = [str(list(read)[i]) for i in admitted.places]
    words = [model, str(mapping), str(kp), str(kd), str(sorted(known.items())), str(in_air), method, *signals]
    memory = Memory.open(out / "progress.json", key_of(paths, words), resume)
    out.mkdir(parents=True, exist_ok=True)
    with Console(stderr=True).status("reading", spinner="dots") as status:
        try:
            found = identify(twin, admitted.logs, lambda text: status.update(text), memory, known, method == "evolve", signals)
            belief, more = _belief(found, admitted.logs, method, particles, signals, lambda text: status.update(text))
        except BadInput as error:
            kept = f"; what was computed until then is in {memory.path}, for --resume" if memory.done else ""
            raise BadInput(f"{error}{kept}") from None
    found = replace(found, warnings=[*found.warnings, *more, *(f"left out {why}" for why in left_out), *admitted.notes])
    found.twin.save(out / "twin.xml", found.values)
    save(belief, out / "belief.json", recipe_of(found.twin))
    hashes = {path: log.provenance.sha256 for path, log in zip(used, admitted.logs, strict=True)}
    summary = _summary(found, used) | {"left_out": left_out, "provenance": {"model": model, "fixed": known, "sha256": hashes}}
    _write_json(out / "fit.json", summary)
    page(_plain(summary), found.traces, out / "report.html")
    if json:
        import json as text

        print(text.dumps(_plain(summary)))
    else:
        _print(found, summary, out)


def _belief(
    found: "Fit", logs: "list[Log]", method: str, count: int, signals: tuple[str, ...], tick: "Callable[[str], object]"
) -> "tuple[Belief, list[str]]":
    """The fit's Gaussian, or particles; and what speaks against them."""
    import numpy as np

    from gapless.identify import particles, posterior

    rng = np.random.default_rng(0)
    if method == "posterior":
        drawn = posterior(found, logs, SIMULATIONS, rng, tick, count or 1000, signals)
    elif count:
        drawn = particles(found, logs, count, rng, tick, signals)
    else:
        return found.belief, []
    return drawn.belief, drawn.warnings


def _read(paths: "list[Path]", mapping: "Mapping | None") -> "tuple[dict[Path, Log], list[str]]":
    """The logs that can be read, and why the others cannot; one that does not exist was mistyped."""
    from gapless.errors import BadInput
    from gapless.logs import read

    logs, refused = {}, []
    for path in paths:
        try:
            logs[path] = read(path, mapping)
        except BadInput as error:
            if len(paths) == 1 or not path.exists():
                raise
            refused.append(str(error))
    if not logs:
        raise BadInput(f"none of the {len(paths)} logs can be read; {refused[0]}")
    return logs, refused


def _pairs(fix: tuple[tuple[str, ...], ...]) -> list[tuple[str, float]]:
    """Name and value, as they were stated."""
    from gapless.errors import BadInput

    out = []
    for pair in (p for several in fix for p in several):
        name, _, value = pair.rpartition("=")
        try:
            number = float(value)
        except ValueError:
            number = float("nan")
        if not name or number != number:
            raise BadInput(f"--fix {pair}: expected NAME=NUMBER, such as gains.kp/*=14.5")
        out.append((name, number))
    return out


def _known(stated: list[tuple[str, float]], twin: "Twin", gains: dict[str, float | None]) -> dict[str, float]:
    """Values by the full names of parameters; BadInput where one is given two."""
    from gapless.errors import BadInput

    out: dict[str, tuple[float, str]] = {}
    for pattern, value in stated:
        for name in twin.space.fix({pattern: value}).fixed:
            before, by = out.setdefault(name, (value, pattern))
            if before != value:
                raise BadInput(f"--fix gives {name} two values, {before:g} ({by}) and {value:g} ({pattern}): state one")
            gain = gains.get(name.partition("/")[0])
            if gain is not None and gain != value:
                raise BadInput(f"{name} is {gain:g} by --{name[6:8]} and {value:g} by --fix {pattern}: state one")
    return {name: value for name, (value, _) in out.items()}


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
            "shared_by": list(p.members),
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


def _print(found: "Fit", summary: dict[str, Any], out: Path) -> None:
    import numpy as np
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from gapless.identify import fit_verdict as verdict

    console = Console(highlight=False)
    ladder = Table(title="Which causes the model needs, by held-out error", title_justify="left", box=box.SIMPLE)
    for heading, justify in (("rung", "left"), ("error (deg)", "right"), ("gain", "right"), ("", "left")):
        ladder.add_column(heading, justify=justify)  # type: ignore[arg-type]
    for i, r in enumerate(found.ladder):
        gain = f"{100 * r.gain:.0f} ± {100 * r.error:.0f} %" if r.gain or r.error else ""
        taken = "climbed" if r.climbed else "left out"
        ladder.add_row(
            escape(r.name), f"{np.degrees(r.heldout):.3f}", gain, taken if i else "", style="" if r.climbed else "dim"
        )
    console.print(ladder)
    errors = Table(title="Error in the full model (deg), mean over joints", title_justify="left", box=box.SIMPLE)
    for heading in ("", "command", "best delay", "as given", "fitted"):
        errors.add_column(heading, justify="right" if heading else "left")
    for name, e in (("held out", found.heldout), ("all", found.train)):
        errors.add_row(name, *(f"{np.degrees(v):.3f}" if np.isfinite(v) else "-" for v in vars(e).values()))
    console.print(errors)
    said = verdict(_plain(summary))
    console.print(f"[bold {'green' if said.good else 'red'}]{escape(said.text)}[/]")
    for u in found.undetermined[:5]:
        names = ", ".join(u.parameters[:4]) + (" ..." if len(u.parameters) > 4 else "")
        console.print(f"[yellow]not known[/yellow] {escape(names)}: {escape(u.meaning)}")
    if len(found.undetermined) > 5:
        console.print(f"[yellow]not known[/yellow] {len(found.undetermined) - 5} more in report.html")
    for w in found.warnings:
        console.print(f"[yellow]note[/yellow] {escape(w)}")
    console.print(f"{found.seconds:.1f} s; twin.xml, belief.json, fit.json and report.html in {out}", markup=False)


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

    from gapless.files import atomic

    with atomic(path) as part:
        part.write_text(json.dumps(_plain(data), indent=1))
