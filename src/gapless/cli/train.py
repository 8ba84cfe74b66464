"""`gapless train`: a policy from a task, a robot and what is known about it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from gapless.cli import options
from gapless.cli.options import ABOUT, About, Flag, Json, Overwrite, Preset, Robot, Threads

if TYPE_CHECKING:
    from gapless.learn import News, Run


def train(
    task: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="velocity|stand|reach|drive|swing")],
    *,
    robot: Robot = "quadruped",
    belief: Annotated[Path | None, tyro.conf.arg(metavar="JSON", help_behavior_hint="")] = None,
    preset: Preset = None,
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="(needed)")] = None,
    overwrite: Overwrite = False,
    iterations: Annotated[int | None, tyro.conf.arg(metavar="N", help_behavior_hint="")] = None,
    worlds: Annotated[int | None, tyro.conf.arg(metavar="N", help_behavior_hint="")] = None,
    rate: Annotated[float | None, tyro.conf.arg(metavar="RATE", help_behavior_hint="")] = None,
    history: int = 1,
    lstm: Annotated[int, tyro.conf.arg(metavar="CELLS")] = 0,
    residual: Flag = False,
    about: About = ABOUT,
    terrain: Literal["flat", "rough", "steps", "slopes", "mixed"] = "flat",
    seed: int = 0,
    threads: Threads = 0,
    resume: Flag = False,
    start: Annotated[Path | None, tyro.conf.arg(name="from", metavar="DIR", help_behavior_hint="")] = None,
    json: Json = False,
) -> None:
    """Train a policy that a robot can run, in worlds drawn from what is known and not known about it.

    For example `gapless train velocity --robot quadruped --out runs/walk`, and when it was stopped
    `gapless train velocity --out runs/walk --resume`. Ctrl-C leaves the best policy so far in the folder.

    Args:
        task: velocity (legs), stand (legs), reach (arm), drive (rover), swing (bench).
        belief: What is known about the robot, as `gapless fit` writes it.
        preset: What worlds are drawn from: narrow is the belief, and the default with one; wide are the ranges of the field;
            informed is the belief, and those ranges for all that it does not speak of.
        out: The run's folder: policy, checkpoints, TensorBoard events, a clip (none with --json).
        iterations: Updates of the policy; the task's own unless given.
        worlds: Robots that learn at once; the task's own unless given.
        rate: Learning rate at first.
        history: Frames of the sensors that the policy sees.
        lstm: Cells of a memory; 0 for none.
        residual: Let the policy add to an open-loop gait on the spot (velocity only; always on two legs).
        terrain: What the robots learn on; its hardness grows over the first half.
        seed: The same seed gives the same policy.
        resume: Go on where the run in the folder stopped; everything else is as it was given then.
        start: Folder of a run whose policy is tuned further.
    """
    from gapless.errors import BadInput
    from gapless.learn import load_run, plan_run

    if resume:
        run = load_run(options.wanted(out, "the run that is resumed", "runs/walk"))
    else:
        settings = {"iterations": iterations, "worlds": worlds, "rate": rate, "recurrent": lstm or None}
        more = {"seed": seed, "history": history, "residual": residual, "stated": about.stated(), "terrain": terrain}
        run = plan_run(task, robot, belief, preset, settings, **more)
    out = options.wanted(out, "the run", "runs/walk")
    if run.task != task:
        raise BadInput(f"{out}: the run there is of task {run.task}, not {task}")
    options.result_folder(out, overwrite or resume, "checkpoint.pt", "best.npz")
    options.assumed(run.twin())
    _train(run, out, resume, start, threads, json)


def _train(run: Run, out: Path, resume: bool, start: Path | None, threads: int, json: bool) -> None:
    """Train, showing how it goes; then say how it went, and film it."""
    import json as text
    import time

    from rich.console import Console
    from rich.live import Live

    from gapless import learn

    console, started, stopped = Console(stderr=True), time.perf_counter(), False
    seen: list[News] = []
    with Live(console=console, auto_refresh=False, transient=True) as live:

        def tell(news: News) -> None:
            seen.append(news)
            if console.is_terminal:
                live.update(learn.dashboard(news, run, (time.perf_counter() - started) / len(seen)), refresh=True)
            elif news.unseen is not None:
                options.tell(learn.dashboard_line(news, run))

        try:
            learn.train(run, out, tell, resume, start, threads)
        except KeyboardInterrupt:
            if not seen:
                raise
            stopped = True
            options.tell(f"stopped at iteration {seen[-1].progress.iteration}; the best policy so far is kept")
    minutes, news = (time.perf_counter() - started) / 60, seen[-1] if seen else None
    if json:
        iteration, best = (news.progress.iteration, news.best_iteration) if news else (0, 0)
        done = {"iterations": iteration, "best_iteration": best, "unseen": news.best if news else None}
        print(text.dumps({"policy": str(out), **done, "minutes": minutes}))
        return
    options.tell(f"{minutes:.1f} min; judge the policy with: gapless course {out} --robot {run.robot}")
    if news and not stopped:
        _film(out, run.seed)


def _film(folder: Path, seed: int) -> None:
    """A clip of the best policy on the course; a machine that cannot draw has lost nothing else."""
    from rich.console import Console

    from gapless.errors import BadInput
    from gapless.learn import enter

    try:
        with Console(stderr=True).status("filming the policy on the course"):
            enter(folder, seed=seed).film(folder / "clip.png")
    except BadInput as error:
        options.tell(f"no clip: {error}")
    else:
        options.tell(f"filmed into {folder / 'clip.png'}")
