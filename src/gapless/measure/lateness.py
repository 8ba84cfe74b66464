"""Commands that come unevenly late or are lost: what no number of a model stands for, told by joints that agree.

A command that is late moves every joint late, by that joint's own response to its own step. So how late each command was is
estimated from half of the joints, and judged by what it explains of the errors of the others: chance explains nothing there.
A model that lacks something makes joints that move together late together too, but for as long as a movement lasts; only
lateness that differs from one command to the next is the commands' own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from gapless.arrays import Array, Ints
from gapless.measure.trace import Trace

REACH = 0.4  # s after which a servo has followed a step of its command
LASTS = 0.2  # s in which what depends on the motion, such as friction, changes
FINEST = 0.005  # s between samples that lateness is told by: finer ones cost more and tell no more
EXPECTED = (1.0, 0.5, 0.25, 0.12)  # periods of the commands that these may be late: what explains most on other joints is taken
LEAST_SECONDS = 4.0  # of an unbroken run
SHOWN = 0.02  # share of the squared error that changes from command to command explain on other joints; by chance it is below 0
SINGULAR = 1e-6  # of the response's mean information, so that commands that do not move have an answer


@dataclass(frozen=True)
class Lateness:
    """How unevenly commands arrive."""

    share: float
    """Of the squared error that is left, explained on joints that it was not told by."""
    spread: float
    """Of how late commands are, root mean square about the delay that all have [s]."""
    traces: list[Trace]
    """What the twin predicts, and what was held out, if commands come as late as the other half of the joints says."""

    @property
    def sentence(self) -> str:
        """What that means, and what to do."""
        return (
            f"commands come unevenly late, by about {1e3 * self.spread:.2g} ms, or are lost: joints agree on when, and it makes"
            f" {100 * self.share:.0f} % of the squared error that is left. No number of the model stands for that; look at the"
            " bus and at the program that commands the robot"
        )


@dataclass(frozen=True)
class _Run:
    """An unbroken run of a trace, by the joints that move."""

    rows: Ints
    columns: Ints
    step: float
    """Between its samples [s]."""
    period: float
    """Of the commands, in samples."""
    error: Array
    """Twin minus measured, less what one delay of all commands explains. Shape: (samples, joints)."""
    ways: list[sparse.sparray]
    """By joint how errors grow with the lateness of each command, in samples. Shape of each: (samples, commands)."""
    moved: Array
    """How much each command moved. Shape: (commands,)."""


def uneven(traced: Sequence[Trace], step: float) -> Lateness | None:
    """Whether commands come unevenly late; None where the joints do not agree on it, or cannot tell.

    Args:
        traced: free runs of a fitted twin's servos, of which at least two move.
        step: of time in the twin [s]; less than half of it is the simulation's own.
    """
    squares, out = np.zeros((3, 2)), []
    for trace in traced:
        run = _run_of(trace)
        if run is None:
            out.append(trace)
            continue
        steady = _steady(run)
        changing, _ = _told_by_others(run, steady)
        explained, late = _told_by_others(run, run.error)
        pairs = ((steady, steady - changing), (run.error, run.error - explained))
        squares[:2] += [[float((e**2 / run.error.var(axis=0)).sum()) for e in pair] for pair in pairs]
        squares[2] += float(run.moved @ late**2), float(run.moved.sum())
        since, whole = trace.time[run.rows], np.zeros_like(trace.twin)
        inside = (trace.time >= since[0]) & (trace.time <= since[-1])
        for column, part in zip(run.columns, explained.T, strict=True):
            whole[inside, column] = np.interp(trace.time[inside], since, part)
        out.append(replace(trace, twin=trace.twin - whole, heldout=trace.heldout - whole))
    if not squares.all():
        return None
    (changes, share), spread = 1 - squares[:2, 1] / squares[:2, 0], float(np.sqrt(squares[2, 0] / squares[2, 1]))
    return Lateness(float(share), spread, out) if changes > SHOWN and spread > step / 2 else None


def _run_of(trace: Trace) -> _Run | None:
    """The longest unbroken run of a trace, where it is long enough and at least two joints move."""
    step = float(np.median(np.diff(trace.time)))
    ends = np.r_[0, np.flatnonzero(np.diff(trace.time) > 1.5 * step) + 1, len(trace.time)]
    k, every = int(np.diff(ends).argmax()), max(1, round(FINEST / step))
    rows, step = np.arange(ends[k], ends[k + 1], every), step * every
    commands, error = trace.command[rows], trace.error("twin")[rows]
    columns = np.flatnonzero(np.isfinite(commands).all(axis=0) & (np.ptp(commands, axis=0) > 0) & (error.var(axis=0) > 0))
    if len(columns) < 2 or len(rows) * step < LEAST_SECONDS:
        return None
    ways = [_responses(commands[:, j], trace.twin[rows, j], round(REACH / step)) for j in columns]
    steps, error = np.diff(commands, axis=0, prepend=commands[:1])[:, columns], error[:, columns]
    weights = 1 / error.var(axis=0)
    alike = np.column_stack([way.sum(axis=1) for way in ways])  # what one delay of all commands does
    error = error - alike * (weights * alike * error).sum() / (weights * alike**2).sum()
    period = float(np.median(np.diff(np.flatnonzero(steps.any(axis=1)))))
    return _Run(rows, columns, step, period, error, ways, (steps**2 * weights).sum(axis=1))


def _responses(command: Array, moved: Array, taps: int) -> sparse.dia_array:
    """How the errors of a joint grow with the lateness of each command, in samples. Shape: (samples, commands).

    A command that is a sample late takes its step's impulse response away. That response is the one which, summed over the
    steps of the command, comes nearest to what the twin did.
    """
    count, steps = len(command), np.diff(command, prepend=command[0])
    past = [np.r_[np.zeros(k), steps[: count - k]] for k in range(taps)]
    older = np.r_[np.zeros(taps), (command - command[0])[: count - taps]]  # steps that have been followed
    inputs = np.column_stack([*past, older, np.ones(count)])
    information = inputs.T @ inputs
    information += SINGULAR * np.trace(information) / len(information) * np.eye(len(information))
    response = np.linalg.solve(information, inputs.T @ (moved - moved[0]))[:taps]
    impulse = np.diff(response, prepend=0.0)
    # twin minus measured: the twin has moved, the robot has not yet
    return sparse.dia_array((impulse[:, None] * steps[None, :], -np.arange(taps)), shape=(count, count))


def _steady(run: _Run) -> Array:
    """Errors less what lateness explains that changes no sooner than the motion. Shape: (samples, joints)."""
    count, place = len(run.rows), np.arange(len(run.rows)) * run.step / LASTS
    since = place.astype(int)
    share = place - since  # between knots of a broken line
    where = (np.tile(np.arange(count), 2), np.r_[since, since + 1])
    line = sparse.coo_array((np.r_[1 - share, share], where), shape=(count, since[-1] + 2)).tocsr()
    late = line @ _most_probable([way @ line for way in run.ways], run.error, np.inf)
    return np.asarray(run.error - np.column_stack([way @ late for way in run.ways]))


def _told_by_others(run: _Run, error: Array) -> tuple[Array, Array]:
    """The part of errors that lateness explains as the other half of the joints tells it, (samples, joints), and how late each
    command was by all of them [s]."""
    halves = [list(range(parity, len(run.ways), 2)) for parity in (0, 1)]

    def explained(expected: float) -> Array:
        told = [_most_probable([run.ways[k] for k in half], error[:, half], expected) for half in halves]
        return np.column_stack([way @ told[1 - k % 2] for k, way in enumerate(run.ways)])

    def left(part: Array) -> float:
        return float(((error - part) ** 2 / error.var(axis=0)).sum())

    tried = [(explained(share * run.period), share * run.period) for share in EXPECTED]
    part, expected = min(tried, key=lambda pair: left(pair[0]))
    return part, _most_probable(run.ways, error, expected) * run.step


def _most_probable(ways: Sequence[sparse.sparray], error: Array, expected: float) -> Array:
    """The most probable lateness given the errors of some joints, and how large it is expected to be; in samples."""
    weights, count = 1 / error.var(axis=0), ways[0].shape[1]
    information = sparse.eye_array(count) * max(expected**-2, SINGULAR)
    for weight, way in zip(weights, ways, strict=True):
        information = information + weight * (way.T @ way)
    pull = sum(weight * (way.T @ e) for weight, way, e in zip(weights, ways, error.T, strict=True))
    return np.asarray(sparse.linalg.spsolve(sparse.csc_array(information), pull))
