"""`gapless train`: a policy from a task, a robot and what is known about it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from gapless.learn import News, Run


UNITS = {"velocity_error": " m/s", "yaw_error": " rad/s", "distance": " m"}
"""Of what tasks offer to watch; other metrics have none."""


def train(
    task: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="velocity|stand|reach|drive|swing")],
    *,
    robot: str = "quadruped",
    belief: Annotated[Path | None, tyro.conf.arg(metavar="JSON")] = None,
    preset: Literal["none", "narrow", "wide", "models30"] | None = None,
    out: Annotated[Path, tyro.conf.arg(metavar="DIR")] = Path("run"),
    iterations: int | None = None,
    worlds: int | None = None,
    rate: float | None = None,
    history: int = 1,
    lstm: Annotated[int, tyro.conf.arg(metavar="CELLS")] = 0,
    residual: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    kp: float | None = None,
    kd: float | None = None,
    terrain: Literal["flat", "rough", "steps", "slopes", "mixed"] = "flat",
    seed: int = 0,
    threads: int = 0,
    resume: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    start: Annotated[Path | None, tyro.conf.arg(name="from", metavar="DIR")] = None,
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
) -> None:
    """Train a policy that a robot can run, in worlds drawn from what is known and not known about it.

    For example `gapless train velocity --robot quadruped --out runs/walk`, and when it was stopped
    `gapless train velocity --out runs/walk --resume`. Ctrl-C leaves the best policy so far in the folder.

    Args:
        task: velocity (legs), stand (legs), reach (arm), drive (rover), swing (bench).
        robot: A built-in robot, a path to an MJCF or URDF file, or menagerie:NAME.
        belief: What is known about the robot, as `gapless fit` writes it.
        preset: What worlds are drawn from: narrow is the belief, and the default with one; wide are the ranges of the field.
        out: The run's folder: policy, checkpoints, TensorBoard events, a clip (none with --json).
        iterations: Updates of the policy; the task's own unless given.
        worlds: Robots that learn at once.
        rate: Learning rate at first.
        history: Frames of the sensors that the policy sees.
        lstm: Cells of a memory; 0 for none.
        residual: Let the policy add to an open-loop gait on the spot instead of making up its own (velocity only; always on
            two legs).
        kp: Proportional gain of all drives [Nm/rad], for a model that takes torque.
        kd: Derivative gain of all drives [Nms/rad].
        terrain: What the robots learn on; its hardness grows over the first half.
        seed: The same seed gives the same policy.
        threads: Of physics; 0 for one per core.
        resume: Go on where the run in the folder stopped; everything else is as it was given then.
        start: Folder of a run whose policy is tuned further.
        json: Print one JSON line at the end.
    """
    import json as text
    import time

    from rich.console import Console
    from rich.live import Live

    from gapless.learn import load_run
    from gapless.learn import train as run_training

    if resume:
        given = load_run(out)
    else:
        chosen = {"iterations": iterations, "worlds": worlds, "rate": rate, "recurrent": lstm or None}
        given = _run(task, robot, belief, preset, history, residual, kp, kd, terrain, seed, chosen)
    if given.task != task:
        raise _bad(f"{out}: the run there is of task {given.task}, not {task}")
    if not resume and any((out / file).exists() for file in ("checkpoint.pt", "best.pt")):
        raise _bad(f"{out} holds a run already: go on with --resume, or name another folder with --out")
    console = Console(stderr=True)
    started, seen = time.perf_counter(), [0]
    latest: list[News] = []
    stopped = False
    with Live(console=console, auto_refresh=False, transient=True) as live:

        def tell(news: News) -> None:
            seen[0] += 1
            latest[:] = [news]
            if console.is_terminal:
                each = (time.perf_counter() - started) / seen[0]
                live.update(_dashboard(news, given, each), refresh=True)
            elif news.held_out is not None:
                console.print(_line(news, given), markup=False, highlight=False, soft_wrap=True)

        try:
            run_training(given, out, tell, resume, start, threads)
        except KeyboardInterrupt:
            if not latest:
                raise
            stopped = True
            console.print(
                f"stopped at iteration {latest[0].progress.iteration}; the best policy so far is kept", highlight=False
            )
    minutes = (time.perf_counter() - started) / 60
    if json:
        news = latest[0] if latest else None
        print(
            text.dumps(
                {
                    "policy": str(out),
                    "iterations": news.progress.iteration if news else 0,
                    "best_iteration": news.best_iteration if news else 0,
                    "held_out": news.best if news else None,
                    "minutes": minutes,
                }
            )
        )
    else:
        console.print(f"{minutes:.1f} min; judge the policy with: gapless course {out} --robot {given.robot}", highlight=False)
        if latest and not stopped:
            _film(given, out, console)


def _film(given: Run, folder: Path, console: Console) -> None:
    """A clip of the best policy on the course; a machine that cannot draw has lost nothing else."""
    import numpy as np

    from gapless.errors import BadInput
    from gapless.learn import film_course, on_terrain
    from gapless.policy import load_policy

    policy, (twin, task, belief), clip = load_policy(folder), given.build(), folder / "clip.png"
    twin = on_terrain(twin, given.terrain, np.random.default_rng([given.seed, 7]))
    try:
        with console.status("filming the policy on the course"):
            film_course(clip, twin, task, policy, belief, np.random.default_rng([given.seed, 4]), policy.contract, policy.reset)
    except BadInput as error:
        console.print(f"no clip: {error}", markup=False, highlight=False, soft_wrap=True)
    else:
        console.print(f"filmed into {clip}", markup=False, highlight=False, soft_wrap=True)


def _run(
    task: str,
    robot: str,
    belief: Path | None,
    preset: str | None,
    history: int,
    residual: bool,
    kp: float | None,
    kd: float | None,
    terrain: str,
    seed: int,
    chosen: dict[str, Any],
) -> Run:
    """What was asked for, checked."""
    import dataclasses

    from gapless.learn import PPOSettings, Run, ppo_settings

    whole = {"iterations": 1, "worlds": 4, "recurrent": 1}
    for name, least in whole.items():
        if chosen[name] is not None and chosen[name] < least:
            raise _bad(f"--{name} must be at least {least}, not {chosen[name]}".replace("recurrent", "lstm"))
    if chosen["rate"] is not None and not 0 < chosen["rate"] < 1:
        raise _bad(f"--rate must be between 0 and 1, not {chosen['rate']:g}")
    if seed < 0 or history < 1:
        raise _bad("--seed must not be negative" if seed < 0 else f"--history must be at least 1, not {history}")
    if chosen["iterations"] is not None:  # what grows over a training grows at each checkpoint: a short one needs them too
        chosen["every"] = max(1, min(PPOSettings.every, chosen["iterations"] // 10))
    preset = preset or ("narrow" if belief else "wide")
    robot = str(Path(robot).resolve()) if Path(robot).is_file() else robot
    run = Run(task, robot, preset, str(belief.resolve()) if belief else "", seed, history, residual, kp, kd, terrain)
    settings = dataclasses.replace(ppo_settings(task, run.twin()), **{k: v for k, v in chosen.items() if v is not None})
    return dataclasses.replace(run, settings=settings)


def _dashboard(news: News, given: Run, seconds: float) -> Table:
    """Everything that is worth watching, on one screen."""
    from rich.table import Table

    progress = news.progress
    table = Table(title=f"{given.task} · {given.robot} · {given.preset}", title_style="bold")
    table.add_column("")
    table.add_column("", justify="right")
    took = progress.collect + progress.update
    left = seconds * (given.settings.iterations - progress.iteration)
    for name, value in (
        ("iteration", f"{progress.iteration} of {given.settings.iterations}"),
        ("left", f"{int(left) // 60}:{int(left) % 60:02d}"),
        ("steps/s", f"{progress.steps / took:,.0f}"),
        ("physics and inference, update", f"{progress.collect / took:.0%}, {progress.update / took:.0%}"),
        ("falls a minute", f"{60 * progress.terms['falls']:.2f}"),
        ("best in held-out worlds", f"{news.best:.2f} at {news.best_iteration}" if news.best > float("-inf") else "not yet"),
        *_metrics(news),
        ("reward per second", f"{progress.reward:.2f}"),
    ):
        table.add_row(name, value)
    table.add_section()
    for name, term in progress.terms.items():
        if name != "falls":
            table.add_row(f"  {name}", f"{term:+.3f}")
    return table


def _metrics(news: News) -> list[tuple[str, str]]:
    """What the task offers to watch, in words."""
    return [(name.replace("_", " "), f"{value:.3f}{UNITS.get(name, '')}") for name, value in news.progress.metrics.items()]


def _line(news: News, given: Run) -> str:
    progress = news.progress
    speed, falls = progress.steps / (progress.collect + progress.update), 60 * progress.terms["falls"]
    watched = "".join(f"{name} {value}, " for name, value in _metrics(news))
    return (
        f"{progress.iteration}/{given.settings.iterations}: reward {progress.reward:.2f}, held out {news.held_out:.2f} "
        f"(best {news.best:.2f} at {news.best_iteration}), {watched}falls {falls:.2f} a minute, {speed:,.0f} steps/s"
    )


def _bad(sentence: str) -> Exception:
    from gapless.errors import BadInput

    return BadInput(sentence)
