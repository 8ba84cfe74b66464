"""`gapless train`: a policy from a task, a robot and what is known about it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from gapless.cli import options
from gapless.cli.options import ABOUT, About, Flag, Json, Overwrite, Preset, Robot, Threads

if TYPE_CHECKING:
    from gapless.learn import News, Progress, Run

Adapt = Annotated[
    Literal["teacher", "student", "rma", "osi", "es", "maml", "norml", "inverse", "residual", "forces"] | None,
    tyro.conf.arg(help_behavior_hint=""),
]


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
    adapt: Adapt = None,
    latent: Annotated[int | None, tyro.conf.arg(metavar="N", help_behavior_hint="")] = None,
    adr: Flag = False,
    adr_grow: float = 0.5,
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
    `gapless train velocity --out runs/walk --resume`. Ctrl-C leaves the best policy so far in the folder. One that finds out
    about its robot while it runs: `gapless train swing --robot pendulum --adapt rma --out runs/rma`.

    Args:
        task: velocity (legs), stand (legs), reach (arm), drive (rover), swing (bench).
        belief: What is known about the robot, as `gapless fit` writes it.
        preset: What worlds are drawn from: narrow (the belief; so with one), wide (the field's ranges) or informed (both).
        out: The run's folder: policy, checkpoints, TensorBoard events, a clip (none with --json).
        iterations: Updates of the policy; the task's own unless given.
        worlds: Robots that learn at once; the task's own unless given.
        rate: Learning rate at first.
        history: Frames of the sensors that the policy sees.
        lstm: Cells of a memory; 0 for none.
        residual: Let the policy add to an open-loop gait on the spot (velocity only; always on two legs).
        adapt: teacher is told its world's parameters; student, rma and osi find them in their history, and learn that from a
            teacher in DIR/teacher or --from; es, maml, norml and inverse prepare a plain policy (DIR/plain or --from) for
            gapless adapt; residual adds to the policy of --from; forces pulls at the robot.
        latent: With --adapt: numbers that the teacher's encoder makes of the parameters, 0 for none; 1 to 3 suit a search.
        adr: Let ranges grow from the model, or from the belief, as far as the policy can follow; they end in ranges.json.
        adr_grow: With --adr, the success at the end of a range at which it grows, from 0.2 to 1.
        terrain: What the robots learn on; its hardness grows over the first half.
        seed: The same seed gives the same policy.
        resume: Go on where the run in the folder stopped; everything else is as it was given then.
        start: Folder of a run whose policy is tuned further.
    """
    from gapless.learn import load_run, plan_run

    ppo = {"iterations": iterations, "worlds": worlds, "rate": rate, "recurrent": lstm or None}
    more = {"seed": seed, "history": history, "residual": residual, "stated": about.stated(), "terrain": terrain}
    more |= {"adr": adr, "adr_grow": adr_grow}
    out = options.wanted(out, "the run", "runs/walk")
    run = load_run(out) if resume else plan_run(task, robot, belief, preset, ppo, **more)
    _fits(task, run, adapt, latent, resume, start)
    options.result_folder(out, overwrite or resume, "checkpoint.pt", "best.npz", "policy.onnx")
    options.assumed(run.twin())
    if adapt and not (adapt == "teacher" and resume):
        _adapt(adapt, run, out, start, threads, json, latent)
    else:
        _train(run, out, resume, start, threads, json)


def _fits(task: str, run: Run, adapt: str | None, latent: int | None, resume: bool, start: Path | None) -> None:
    """Refuse options that do not go together."""
    from gapless.errors import BadInput

    if run.task != task:
        raise BadInput(f"the run that is to be resumed is of task {run.task}, not {task}")
    if adapt and resume and adapt != "teacher":
        raise BadInput(f"--resume goes on with a teacher or a plain training, not with {adapt}; start anew in another folder")
    if adapt and run.adr:
        raise BadInput("ranges that grow and --adapt do not go together yet: give either --adr or --adapt")
    if latent is not None and adapt not in ("teacher", "student", "rma", "osi"):
        raise BadInput("--latent is about what a teacher is told: it goes with --adapt teacher, student, rma or osi")
    if adapt == "forces" and start is not None:
        raise BadInput("--adapt forces begins from nothing: leave out --from")
    if adapt == "residual" and start is None:
        raise BadInput("--adapt residual learns on top of a policy: name it with --from")


def _adapt(method: str, run: Run, out: Path, start: Path | None, threads: int, json: bool, latent: int | None) -> None:
    """Train a policy that adapts, or one on top of another, and say what it believes about robots."""
    import json as text

    from gapless import adapt
    from gapless.cli.stages import stages

    with stages() as say:

        def each(progress: Progress, best: float) -> None:
            say(f"iteration {progress.iteration}: reward {progress.reward:.2f}, best on unseen robots {best:.2f}")

        def first(news: News) -> None:
            who = "plain policy" if method in adapt.PREPARED else "teacher"
            say(f"{who}, iteration {news.progress.iteration}: reward {news.progress.reward:.2f}")

        if method == "forces":
            scale = adapt.train_forces(run, out, each, threads).scale
            options.tell(f"forces have come to {scale:.0%} of the largest")
        elif method == "residual":
            assert start is not None
            adapt.train_residual(run, start, out, each, threads)
        elif method in adapt.PREPARED:
            what = "error of actions" if method == "inverse" else "reward of an episode after adaptation"
            adapt.train_prepared(method, run, out, first, lambda k, f: say(f"{method}, {k}: {what} {f:.2f}"), start, threads)
        else:
            adapt.train_adaptive(
                method,
                run,
                out,
                first,
                lambda news: say(f"{method}, round {news.round} of {news.rounds}: error of its estimate {news.error:.3f}"),
                start,
                threads,
                latent=latent,
            )
    told = None
    if method in ("student", "rma", "osi"):
        told = adapt.believes(out, threads=threads)
        told.save(out / "believes")
    if json:
        print(text.dumps({"policy": str(out), "method": method, "believes": told.verdict().text if told else None}))
        return
    if told:
        options.show(told, False)
        options.tell(f"what it believes about a robot while it runs, as a plot: {out / 'believes' / 'report.html'}")
    options.tell(f"judge the policy with: gapless course {out} --robot {run.robot}")


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
            if news.said:
                options.tell(news.said)
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
        done |= {"entropy": news.entropy} if news and run.adr else {}
        print(text.dumps({"policy": str(out), **done, "minutes": minutes}))
        return
    options.tell(f"{minutes:.1f} min; judge the policy with: gapless course {out} --robot {run.robot}")
    if run.adr:
        options.tell(f"the ranges are in {out / 'ranges.json'}, and how they grew in {out / 'ranges' / 'report.html'}")
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
