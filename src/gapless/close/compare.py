"""Compare: which remedy helps against which mismatch, at what price; techniques x mismatches x seeds, in pieces.

    print(compare(plan_comparison("pendulum", seeds=5), "out/compare", jobs=2))

A unit of work is a policy that needs nothing of the robot, by seed, or all techniques on one robot. Units of a round are
independent, so they run one by one, in processes or on many machines, with the same bits. All that is finished is kept in the
folder (`Stages`), policies that need nothing of the robot once for each seed.
"""

from __future__ import annotations

import dataclasses
import logging
import multiprocessing
import os
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gapless.close.case import Case, shipped
from gapless.close.compare_result import Compared, Row
from gapless.close.field import contents, scored
from gapless.close.mismatch import SINCE, Mismatch, mismatches_of
from gapless.close.stages import StageFailed, Stages, Tell, read_record
from gapless.close.technique import Outcome, Technique, applied
from gapless.close.techniques import TECHNIQUES
from gapless.close.training import to_tune
from gapless.errors import BadInput, PhysicsError, must_exist
from gapless.files import refusing
from gapless.learn import CourseResult
from gapless.plain import read_json, typed, write_json
from gapless.twin import Stated

TASKS = {"pendulum": "swing", "quadruped": "velocity"}
SCRATCH = {"pendulum": 400}
"""Iterations of policies from nothing: of two trainings in `wide`, one had learned to swing up after 150, one not after 200."""
FIRST = ("nothing", "wide")
"""Others tune what these leave."""
Unit = tuple[int, Mismatch | None, tuple[str, ...]]
"""Seed, mismatch (None: only train) and techniques."""


@dataclass(frozen=True)
class Plan:
    """What is compared."""

    robot: str
    task: str
    mismatches: tuple[Mismatch, ...]
    techniques: tuple[str, ...]
    seeds: tuple[int, ...]
    iterations: int
    """Of tuning."""
    scratch: int
    """Of a policy from nothing; 0 for as many as suit the task."""
    draws: int
    """Runs for each command (or 36 starts) on each robot."""


def plan_comparison(
    robot: str = "pendulum",
    techniques: tuple[str, ...] = (),
    mismatches: tuple[str, ...] = (),
    seeds: int = 5,
    iterations: int = 60,
    scratch: int = 0,
    draws: int = 1,
    first: int = 0,
) -> Plan:
    """What is compared, checked: all techniques on all mismatches of a built-in robot unless named; seeds from `first` on."""
    known = tuple(t.name for t in TECHNIQUES)
    must_exist("technique", list(techniques), known)
    if min(seeds, iterations, draws) < 1 or min(first, scratch) < 0:
        raise BadInput("seeds, iterations and draws must be at least 1, and the first seed not negative")
    of = mismatches_of(robot, mismatches)
    names = tuple(n for n in known if n in techniques) or known
    scratch = scratch or SCRATCH.get(robot, 0)
    return Plan(robot, TASKS[robot], of, names, tuple(range(first, first + seeds)), iterations, scratch, draws)


def compare(
    plan: Plan,
    folder: str | os.PathLike[str],
    jobs: int = 1,
    ray: str = "",
    tell: Tell = lambda text, left: None,
) -> Compared:
    """Compare; what is in the folder already is not done again.

    Args:
        plan: see `plan_comparison`.
        folder: of all policies, logs, fits and scores.
        jobs: processes.
        ray: address of a Ray cluster ("local" starts one here) whose machines all see the folder; in its place.
        tell: told what is done, and how many seconds are left.
    """
    folder = Path(folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    start = _on_ray(ray) if ray else _in_processes(jobs) if jobs > 1 else _one_by_one
    rounds, rows, began, done = units(plan), list[Row](), time.perf_counter(), 0
    for round_ in rounds:
        for got in start(plan, folder, round_):
            rows += got
            done += 1
            left = (time.perf_counter() - began) / done * (sum(map(len, rounds)) - done)
            tell(f"{done} of {sum(map(len, rounds))} pieces done", left)
    order = {name: i for i, name in enumerate([*plan.techniques, *(m.name for m in plan.mismatches)])}
    rows.sort(key=lambda r: (order[r.technique], order[r.mismatch], r.seed))
    limits = [t.name for t in TECHNIQUES if t.cheats and t.name in plan.techniques]
    says = {t.name: t.says for t in TECHNIQUES if t.name in plan.techniques}
    return Compared(plan.robot, plan.task, plan.iterations, rows, says, limits)


def units(plan: Plan) -> list[list[Unit]]:
    """The work in rounds, each of which needs what the rounds before it left."""
    given = shipped(plan.robot, plan.task, Stated())
    starts = [] if given else [name for name in FIRST if name in plan.techniques or set(plan.techniques) - set(FIRST)]
    free = [t.name for t in TECHNIQUES if t.name in plan.techniques and _free(t) and t.name not in FIRST]
    return [
        [(seed, None, (name,)) for name in starts for seed in plan.seeds],
        [(seed, None, (name,)) for name in free for seed in plan.seeds],
        [(seed, mismatch, plan.techniques) for seed in plan.seeds for mismatch in plan.mismatches],
    ]


def _free(technique: Technique) -> bool:
    """Whether a technique needs nothing of the robot, so that its policy is the same for all mismatches."""
    return technique.robot == 0 and not technique.cheats


def work(plan: Plan, folder: Path, unit: Unit) -> list[Row]:
    """Do one unit: train, and where there is a robot to try it on, a row of figures for each technique."""
    seed, mismatch, names = unit
    home, rows = folder / f"seed{seed}", []
    standin = (mismatch or Mismatch("none")).standin(plan.robot, seed)
    given = shipped(plan.robot, plan.task, Stated())
    more = {"iterations": plan.iterations, "scratch": plan.scratch, "seed": seed}
    alone = Case(plan.robot, plan.task, standin, **given, **more)  # type: ignore[arg-type]
    for technique in (t for t in TECHNIQUES if t.name in names):
        if mismatch is None:
            applied(technique, alone, home, lambda text, left: None)
        else:
            rows.append(_row(plan, home, alone, technique, mismatch))
    return rows


def _row(plan: Plan, home: Path, alone: Case, technique: Technique, mismatch: Mismatch) -> Row:
    """A technique on one robot: applied, then scored; where a stage fails, the policy that would have been tuned stays."""
    place, note, later = home / mismatch.name, "", mismatch.changed(alone.secret)
    if _free(technique):
        outcome = applied(technique, alone, home, lambda text, left: None)
    else:
        base = to_tune(alone, Stages(home))
        # what cheats also knows what the robot will be
        standin = later if later and technique.cheats else alone.secret
        case = dataclasses.replace(alone, base=str(base), standin=standin)
        try:
            outcome = applied(technique, case, place, lambda text, left: None)
        except (StageFailed, PhysicsError) as error:
            note, outcome = str(error), Outcome(base, technique.robot, 0.0)
        record = read_record(base)  # policies that come with the project have none
        trained = record.computing if record else 0.0
        outcome = Outcome(outcome.policy, outcome.robot, outcome.computing + trained)

    def make(to: Path) -> None:
        result = scored(alone, outcome.policy, plan.draws, seed=1, threads=0, later=later, since=SINCE)
        price = outcome.robot, outcome.computing
        write_json(to / "row.json", _figures(result, technique.name, mismatch.name, alone.seed, *price, note))

    inputs = {"standin": alone.secret, "later": later, "policy": contents(outcome.policy), "draws": plan.draws, "note": note}
    return Stages(place).run(
        f"score/{technique.name}", inputs, make, lambda found: typed(Row, read_json(found / "row.json", 1 << 22))
    )


def _figures(result: CourseResult, technique: str, mismatch: str, seed: int, robot: float, computing: float, note: str) -> Row:
    legs = np.isfinite(result.velocity_error).any()
    held, error = (~result.fell, result.velocity_error) if legs else (result.success, result.away)
    power = np.nan_to_num(result.power)
    return Row(technique, mismatch, seed, held.astype(float), error, power, robot, computing, note)


def _one_by_one(plan: Plan, folder: Path, round_: list[Unit]) -> Iterator[list[Row]]:
    for unit in round_:
        yield work(plan, folder, unit)


def _in_processes(jobs: int) -> Callable[[Plan, Path, list[Unit]], Iterator[list[Row]]]:
    def run(plan: Plan, folder: Path, round_: list[Unit]) -> Iterator[list[Row]]:
        # spawned, not forked: threads of physics and torch do not survive a fork
        with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
            futures = [pool.submit(work, plan, folder, unit) for unit in round_]
            for future in as_completed(futures):
                yield future.result()

    return run


def _on_ray(address: str) -> Callable[[Plan, Path, list[Unit]], Iterator[list[Row]]]:
    try:
        import ray
    except ImportError:
        raise BadInput("--ray needs Ray: pip install 'gapless[scale]'") from None
    with refusing(f"--ray {address}: no Ray cluster answers there", OSError, ValueError, RuntimeError):
        host, _, port = address.rpartition(":")
        if host:  # Ray itself would try for minutes
            socket.create_connection((host.removeprefix("ray://"), int(port)), timeout=5.0).close()
        if not ray.is_initialized():
            ray.init(address=address, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    remote = ray.remote(num_cpus=1)(work)

    def run(plan: Plan, folder: Path, round_: list[Unit]) -> Iterator[list[Row]]:
        waiting = [remote.remote(plan, folder, unit) for unit in round_]
        while waiting:
            ready, waiting = ray.wait(waiting)
            yield from ray.get(ready)

    return run
