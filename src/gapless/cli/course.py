"""`gapless course`: judge a policy on robots that it has never met."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from gapless.learn import CourseResult as Result
    from gapless.report import Cell

WORDS = {
    "runs": ("runs", "{:.0f}"),
    "falls": ("falls", "{:.1%}"),
    "success": ("success", "{:.1%}"),
    "velocity_error": ("velocity error", "{:.3f} m/s"),
    "yaw_error": ("yaw rate error", "{:.3f} rad/s"),
    "cost_of_transport": ("cost of transport", "{:.2f}"),
    "torque_margin": ("least torque margin", "{:.0%}"),
    "joint_speed": ("fastest joint", "{:.1f} rad/s"),
    "speed_margin": ("least margin of joint speed", "{:.0%}"),
    "roughness": ("change of a target in a period", "{:.3f} rad"),
}


def course(
    policy: Annotated[Path, tyro.conf.Positional],
    *,
    robot: str | None = None,
    belief: Annotated[Path | None, tyro.conf.arg(metavar="JSON")] = None,
    preset: Literal["none", "narrow", "wide", "models30"] | None = None,
    terrain: Literal["flat", "rough", "steps", "slopes", "mixed"] | None = None,
    draws: int = 6,
    push: bool = True,
    seed: int = 1,
    threads: int = 0,
    out: Annotated[Path | None, tyro.conf.arg(metavar="HTML")] = None,
    clip: Annotated[Path | None, tyro.conf.arg(metavar="PNG")] = None,
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
) -> None:
    """Run a policy over the course: every command of a grid, on unseen robots, kicked every 2.5 s.

    For example `gapless course runs/walk --robot quadruped`.

    Args:
        policy: Folder of a policy, as `gapless train` leaves it.
        robot: A built-in robot, a path to an MJCF or URDF file, or menagerie:NAME; that of the training unless given.
        belief: What robots are drawn from, with preset narrow.
        preset: What robots are drawn from: that of the training unless given; narrow with a belief.
        terrain: What the robots walk on, that of the training unless given; always other ground than there.
        draws: Robots for each command.
        push: Whether the base is kicked.
        seed: Of the robots and kicks; training never uses these.
        threads: Of physics; 0 for one per core.
        out: A page with a picture; course.html unless given (none with --json).
        clip: Film the policy at its task on one of the robots, as an animated PNG.
        json: Print one JSON line.
    """
    import dataclasses
    import json as text

    import numpy as np
    from rich.console import Console

    from gapless.errors import BadInput
    from gapless.learn import film_course, load_run, on_terrain, run_course
    from gapless.policy import load_policy

    for option, number, least in (("draws", draws, 1), ("seed", seed, 0)):
        if number < least:
            raise BadInput(f"--{option} must be at least {least}, not {number}")
    for file in (out, clip):
        if file and not file.parent.is_dir():
            raise BadInput(f"{file}: there is no folder {file.parent}")
    network = load_policy(policy)
    run = load_run(policy)
    chosen = preset or ("narrow" if belief else run.preset)
    run = dataclasses.replace(run, robot=robot or run.robot, preset=chosen, belief=str(belief) if belief else run.belief)
    twin, task, drawn = run.build(lot=2 + seed)
    twin = on_terrain(twin, terrain or run.terrain, np.random.default_rng([seed, 5]))
    console = Console(stderr=True)
    with console.status("running the course"):
        result = run_course(
            twin,
            task,
            network,
            drawn,
            np.random.default_rng([seed, 2]),
            draws,
            push,
            threads=threads,
            contract=network.contract,
            reset=network.reset,
        )
    summary = result.summary()
    if json:
        print(text.dumps(summary))
    else:
        for name, value in summary.items():
            label, form = WORDS[name]
            console.print(f"{label:<32}{form.format(value):>14}", markup=False, highlight=False)
    out = out or (None if json else Path("course.html"))
    if out:
        _page(out, str(policy), result)
        console.print(f"plotted into {out}", markup=False, highlight=False)
    if clip:
        film_course(clip, twin, task, network, drawn, np.random.default_rng([seed, 4]), network.contract, network.reset)
        console.print(f"filmed into {clip}", markup=False, highlight=False)


def _cell(errors: NDArray[np.float64]) -> Cell:
    """The mean error of runs at one command; none where all fell before errors count."""
    from gapless.report import Cell

    return Cell(f"{errors.mean():.3f}", min(2 * float(errors.mean()), 1.0)) if len(errors) else Cell("all fell", 1.0)


def _page(path: Path, name: str, result: Result) -> None:
    """Figures, and errors by command."""
    from itertools import pairwise

    import numpy as np

    from gapless.report import BLUE, RED, Cell, Plot, Section, Table, Verdict, dots, write

    summary = result.summary()
    rows = [[WORDS[k][0], WORDS[k][1].format(v)] for k, v in summary.items()]
    sections = [Section("Figures", table=Table(("", "value"), rows))]
    if np.isfinite(result.velocity_error).any():
        asked = np.unique(result.command, axis=0)
        table: list[list[str | Cell]] = []
        for command in asked:
            of = (result.command == command).all(axis=1)
            errors = [e[of][np.isfinite(e[of])] for e in (result.velocity_error, result.yaw_error)]
            fell = float(result.fell[of].mean())
            words = ", ".join(f"{c} {v:+.1f}" for c, v in zip(result.columns, command, strict=True))
            table.append([words, Cell(f"{fell:.0%}", fell), *map(_cell, errors)])
        head = ("command", "falls", "velocity error [m/s]", "yaw rate error [rad/s]")
        clouds = [
            dots(result.velocity_error[of], result.yaw_error[of], colour, 7, 0.8)
            for of, colour in ((~result.fell, BLUE), (result.fell, RED))
        ]
        axes = {"xaxis": {"title": {"text": "velocity error [m/s]"}}, "yaxis": {"title": {"text": "yaw rate error [rad/s]"}}}
        plot = Plot("each run; red ones fell", clouds, axes, 360)
        sections += [Section("Every run", plots=[plot], wide=True), Section("By command", table=Table(head, table))]
    if result.hardness.any():
        ends = np.linspace(0.0, 1.0, 5)
        bands = [(low, high, (result.hardness >= low) & (result.hardness <= high)) for low, high in pairwise(ends)]
        rows = [[f"{low:.2f} to {high:.2f}", f"{result.fell[of].mean():.0%}"] for low, high, of in bands if of.any()]
        sections.append(Section("By hardness of the ground", table=Table(("0 flat, 1 hardest", "falls"), rows)))
    good = summary["success"] >= 0.95
    write(path, f"Course of {name}", Verdict(f"{summary['success']:.1%} of {len(result.fell)} runs succeeded.", good), sections)
