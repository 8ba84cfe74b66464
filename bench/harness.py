"""Interleaved measurements: every case once a round, in an order that changes, so that all meet the same machine."""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn


@dataclass
class Case:
    """One thing to measure: `prepare(round)` is not timed, `run(round)` is."""

    name: str
    run: Callable[[int], object]
    prepare: Callable[[int], object] = lambda _: None
    pids: Sequence[int] = ()
    """Other processes whose CPU time counts."""
    cpu: list[float] = field(default_factory=list)
    """Of all threads of these processes, one a round [s]."""
    wall: list[float] = field(default_factory=list)
    """[s]"""


def interleave(cases: Sequence[Case], rounds: int, console: Console | None = None) -> None:
    """Run all cases `rounds` times after a first round that is not kept; each case gains one time a round.

    All are prepared before the first is timed: a core that has been idle starts slowly.
    """
    order = list(cases)
    shuffle = random.Random(0).shuffle
    columns = (
        TextColumn("{task.description:<32}"),
        BarColumn(),
        TextColumn("round {task.fields[round]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=(rounds + 1) * len(cases), round=0)
        for r in range(rounds + 1):
            for case in order:
                case.prepare(r)
            for case in order:
                progress.update(task, description=case.name, round=r)
                cpu, wall = _time(case, r)
                if r:
                    case.cpu.append(cpu)
                    case.wall.append(wall)
                progress.advance(task)
            shuffle(order)


def _time(case: Case, r: int) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), _cpu(case.pids)
    case.run(r)
    return _cpu(case.pids) - cpu, time.perf_counter() - wall


def _cpu(pids: Sequence[int]) -> float:
    """CPU time of this process and others; ~pid << 3 | 2 is Linux's clock of a process (clock_getcpuclockid(3))."""
    return time.process_time() + sum(time.clock_gettime(~pid << 3 | 2) for pid in pids)


def ratio(limit: Sequence[float], times: Sequence[float]) -> float:
    """How much of the limit's speed is left: the median over rounds of limit / time."""
    return statistics.median(a / b for a, b in zip(limit, times, strict=True))


def uncertainty(limit: Sequence[float], times: Sequence[float]) -> float:
    """Standard error of that median, from the quartiles (as if the middle of the distribution were normal)."""
    ratios = [a / b for a, b in zip(limit, times, strict=True)]
    low, _, high = statistics.quantiles(ratios, n=4)
    return 1.2533 * (high - low) / 1.349 / math.sqrt(len(ratios))


def added(limit: Sequence[float], before: Sequence[float], after: Sequence[float]) -> float:
    """What a part adds, as a share of the limit: the median over rounds of (after - before) / limit."""
    return statistics.median((b - a) / c for a, b, c in zip(before, after, limit, strict=True))
