"""`gapless excite`: the motion to record next, because it tells most about what is still uncertain."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

if TYPE_CHECKING:
    from gapless.identify import Excitation
    from gapless.twin import Belief, Twin

NINETY = 1.645  # standard deviations to either side of the mean hold 90 %
MOTIONS = ("chirp", "multisine", "designed")


def excite(
    twin: Annotated[str, tyro.conf.Positional],
    *,
    belief: Annotated[Path | None, tyro.conf.arg(metavar="BELIEF.json")] = None,
    seconds: float = 20.0,
    out: Annotated[Path, tyro.conf.arg(metavar="CSV")] = Path("motion.csv"),
    speed: float = 3.0,
    torque: float = 1.0,
    reach: float = 3.14,
    noise: float | None = None,
    kp: float | None = None,
    kd: float | None = None,
    in_air: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    effort: float = 1.0,
    seed: int = 0,
    plot: Annotated[Path | None, tyro.conf.arg(metavar="HTML")] = None,
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
) -> None:
    """Design the motion that tells most about what is uncertain, within limits of position, speed, torque and collision.

    For example `gapless excite arm --belief fit/belief.json --seconds 20 --out motion.csv`, then
    `gapless standin secret.toml --motion motion.csv`, or the robot itself. Prints the interval that each parameter is expected
    to have afterwards, beside a chirp and a multisine within the same limits. Ctrl-C keeps the best motion so far.

    Args:
        twin: A built-in robot, a path to an MJCF or URDF file, or menagerie:NAME.
        belief: What is known so far; unless given, all that `gapless fit` fits, as wrong as models usually are.
        seconds: How long the motion lasts.
        out: The motion: a column `time` and one for each joint, in s and rad.
        speed: The fastest that a joint may turn [rad/s].
        torque: Share of each drive's torque limit that may be used.
        reach: How far a joint may go from home [rad], within its range.
        noise: Standard deviation of measured positions [rad]; the belief's, or 0.001, unless given.
        kp: Proportional gain of all drives [Nm/rad], for a model that takes torque and a robot that takes positions.
        kd: Derivative gain of all drives [Nms/rad].
        in_air: The floating base is held fixed.
        effort: How long to search: 1 is about a minute on two cores.
        seed: Of the search.
        plot: Draw the motion into this file.
        json: Print JSON instead of a table.
    """
    import time

    import numpy as np
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from gapless.errors import BadInput
    from gapless.identify import WORK, limits_of
    from gapless.identify import excite as design

    if not 0 < effort <= 1000:
        raise BadInput(f"--effort must be between 0 and 1000, not {effort:g}")
    if seed < 0:
        raise BadInput(f"--seed must not be negative, not {seed}")
    if out.suffix != ".csv":
        raise BadInput(f"{out}: a motion is written as .csv")
    for file in (out, plot):
        if file and not file.parent.is_dir():
            raise BadInput(f"{file}: there is no folder {file.parent}")
    model, known = _load(twin, belief, kp, kd, in_air)
    started, console = time.perf_counter(), Console(stderr=True)
    columns = (TextColumn("{task.description:<34}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=json or not console.is_terminal) as progress:
        task = progress.add_task("simulating", total=1.0)

        def tick(done: float, left: float) -> None:
            progress.update(task, completed=done, description=f"uncertainty that it leaves: {100 * left:.1f} %")

        found = design(
            model,
            known,
            seconds,
            limits_of(model, speed, torque, reach),
            np.random.default_rng(seed),
            _noise(known) if noise is None else noise,
            WORK * effort,
            tick,
        )
    _write(found, out)
    if plot:
        _plot(found, plot)
    summary = _summary(found) | {"motion": str(out), "seconds": seconds, "took": time.perf_counter() - started}
    if json:
        import json as text

        print(text.dumps(summary))
    else:
        _print(summary)


def _load(model: str, belief: Path | None, kp: float | None, kd: float | None, in_air: bool) -> "tuple[Twin, Belief | None]":
    """The twin that the belief is about, and the belief."""
    from gapless.robots import load_robot
    from gapless.twin import Twin, load_belief, load_recipe, stated_gains

    robot, given = load_robot(model), stated_gains(kp, kd)
    if belief is None:
        return Twin.load(robot, add=given, in_air=in_air), None
    known, twin = load_belief(belief), load_recipe(robot, belief, given, in_air)
    twin.check_belief(known)
    return twin, known


def _noise(belief: "Belief | None") -> float:
    """Noise of measured positions as the belief has it [rad], else a milliradian."""
    if belief is None:
        return 0.001
    means = dict(zip(belief.space.names, belief.mean().tolist(), strict=True)) | dict(belief.space.fixed)
    return float(means.get("sensors.noise_q", 0.0)) or 0.001


def _write(found: "Excitation", path: Path) -> None:
    """The motion as a file that `gapless standin --motion` and a robot's own player read."""
    from gapless.files import atomic

    rows = (f"{k * found.twin.control_dt:.6f}," + ",".join(f"{q:.7f}" for q in row) for k, row in enumerate(found.motion))
    with atomic(path) as part:
        part.write_text("\n".join([",".join(("time", *found.twin.joints)), *rows]) + "\n")


def _summary(found: "Excitation") -> dict[str, Any]:
    """The result as plain data."""
    space, what = found.what.space, found.what

    def interval(spread: Any) -> list[tuple[float, float]]:
        low, high = (space.clip(space.from_scaled(what.centre + s * NINETY * spread)) for s in (-1, 1))
        return list(zip(low.tolist(), high.tolist(), strict=True))

    now, after = interval(what.spread), {m: interval(found.after[m]) for m in MOTIONS}
    mean = space.from_scaled(what.centre)
    parameters = {
        p.name: {"unit": p.unit, "mean": float(mean[i]), "now": now[i]} | {m: after[m][i] for m in MOTIONS}
        for i, p in enumerate(space.parameters)
    }
    joints = {
        joint: {
            "position": [float(found.peaks["low"][j]), float(found.peaks["high"][j])],
            "position_limits": [float(found.limits.low[j]), float(found.limits.high[j])],
            "speed": float(found.peaks["speed"][j]),
            "speed_limit": float(found.limits.speed[j]),
            "torque": float(found.peaks["torque"][j]),
            "torque_limit": float(found.limits.torque[j]) if found.limits.torque[j] < float("inf") else None,
        }
        for j, joint in enumerate(found.twin.joints)
    }
    return {
        "left": found.left,
        "parameters": parameters,
        "joints": joints,
        "candidates": found.candidates,
        "warnings": list(found.warnings),
    }


def _print(summary: dict[str, Any]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    table = Table(title="90 % interval of each parameter: now, and expected after a motion", box=SIMPLE_HEAD)
    table.add_column("parameter", overflow="fold")
    for heading in ("now", *MOTIONS):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, p in summary["parameters"].items():
        now, *after = (f"± {(p[m][1] - p[m][0]) / 2:.2g}" for m in ("now", *MOTIONS))
        table.add_row(escape(f"{name} {p['unit']}".strip()), f"{p['mean']:.3g} {now}", *after)
    table.add_section()
    table.add_row("uncertainty left", "100 %", *(f"{100 * summary['left'][m]:.1f} %" for m in MOTIONS))
    console.print(table)
    joints = Table(title="Largest over robots drawn from the belief, of the limit", box=SIMPLE_HEAD)
    for heading in ("joint", "position (rad)", "speed (rad/s)", "torque (Nm)"):
        joints.add_column(heading, no_wrap=heading == "joint", justify="left" if heading == "joint" else "right")
    for name, j in summary["joints"].items():
        (low, high), (least, most) = j["position"], j["position_limits"]
        limit = f"{j['torque_limit']:.2f}" if j["torque_limit"] else "none"
        joints.add_row(
            escape(name),
            f"{low:.2f}..{high:.2f} of {least:.2f}..{most:.2f}",
            f"{j['speed']:.2f} of {j['speed_limit']:.2f}",
            f"{j['torque']:.2f} of {limit}",
        )
    console.print(joints)
    for warning in summary["warnings"]:
        console.print(f"[yellow]note[/yellow] {escape(warning)}")
    console.print(
        f"{summary['motion']}: {summary['seconds']:g} s; {summary['candidates']} stretches tried in {summary['took']:.0f} s"
    )


def _plot(found: "Excitation", path: Path) -> None:
    """Commands of the designed motion and of the chirp, joint by joint; works offline."""
    import numpy as np
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    from gapless.files import atomic

    joints = found.twin.joints
    figure = make_subplots(rows=len(joints), cols=1, subplot_titles=joints, shared_xaxes=True)
    time = np.arange(len(found.motion)) * found.twin.control_dt
    for name, motion, colour in (("chirp", found.baselines["chirp"], "#b0b0b0"), ("designed", found.motion, "#d62728")):
        for j in range(len(joints)):
            line = go.Scatter(x=time, y=motion[:, j], name=name, legendgroup=name, showlegend=j == 0, line={"color": colour})
            figure.add_trace(line, row=j + 1, col=1)
    figure.update_layout(title="Commands (rad) over time (s)", height=160 + 170 * len(joints), template="plotly_white")
    with atomic(path) as part:
        part.write_text(figure.to_html(include_plotlyjs=True))
