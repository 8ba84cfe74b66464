"""Replays: logs driven through a model, as one result: the error by joint and horizon, and curves of every joint.

result = replay_logs(as_given("arm.xml", log), [log], window=0.5)
print(result)
result.page("replay.html")
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from rich.console import RenderableType
from rich.text import Text

from gapless.arrays import Array
from gapless.logs import Log
from gapless.plain import NOT_SAVED
from gapless.report import BLUE, GREY, RED, Plot, Result, Section, Table, Verdict, in_terminal, known, line, notes, short
from gapless.twin import Origin, Twin, origin_of
from gapless.worlds.replayer import Replay, Replayer

HORIZONS = (0.05, 0.1, 0.2, 0.5, 1.0)
"""Times since the start of a window at which errors are told [s]."""
MOST_POINTS = 4000  # of a line; more cannot be seen and make the file slow


@dataclass(frozen=True, repr=False)
class Replays(Result):
    """Logs replayed in a model. Errors are root mean squares over all samples, NaN where physics broke."""

    NAME = "replay"

    robot: str
    window: float | None
    """Length of the windows, each started from the measured state [s]; None where replays run free."""
    rmse: dict[str, dict[str, float]]
    """Over all logs: signal to column to error, in the signal's unit."""
    command: dict[str, float]
    """The same of the commanded position as prediction, by joint [rad]."""
    horizons: dict[float, dict[str, float]]
    """Time since the start of a window [s] to joint to error [rad]."""
    logs: dict[str, dict[str, float]]
    """Log to joint to error [rad]."""
    diverged: dict[str, int]
    """Log to the number of its windows in which physics broke."""
    seconds: float
    """Computing time."""
    robot_seconds: float
    """How long the replayed motion lasts [s]."""
    warnings: tuple[str, ...]
    """What had to be assumed about the model."""
    origin: Origin
    replays: dict[str, Replay] = field(default_factory=dict, metadata=NOT_SAVED)
    """By log; a loaded result has none."""

    @property
    def title(self) -> str:
        return f"Replay of {self.robot}"

    def verdict(self) -> Verdict:
        error, command = (np.degrees(list(by.values())) for by in (self.rmse["q"], self.command))
        if self.diverged:
            broken = sum(self.diverged.values())
            return Verdict(f"Physics broke in {broken} window{'s' * (broken > 1)} of {', '.join(self.diverged)}.", good=False)
        worst = list(self.rmse["q"])[int(error.argmax())]
        text = f"The model is {error.mean():.3g} deg off, mean over joints ({worst} most, by {error.max():.3g} deg)"
        text += f"; the command is {np.nanmean(command):.3g} deg off." if np.isfinite(command).any() else "."
        return Verdict(text, good=not np.nanmean(command) < error.mean() if np.isfinite(command).any() else True)

    def sections(self) -> Iterator[Section]:
        yield self._errors()
        legend = [("measured", BLUE), ("command", GREY), ("replayed", RED)]
        for name, replay in self.replays.items():
            plots = [_plot(replay, j) for j in range(len(replay.joints))]
            yield Section(name, "Positions [deg] over time [s].", legend=legend, plots=plots, wide=True)
        yield self.origin.section(("motion", f"{self.robot_seconds:.0f} s"), ("computing time", f"{self.seconds:.2f} s"))

    def glance(self) -> Iterable[RenderableType]:
        broke = [f"{log}: physics broke in {n} window{'s' * (n > 1)}" for log, n in self.diverged.items()]
        told = Text(f"{self.robot_seconds:.0f} s of robot time in {self.seconds:.2f} s")
        return [in_terminal(self._errors()), *notes("diverged", broke, "red"), *notes("assumed", self.warnings), told]

    def _errors(self) -> Section:
        columns = [self.command, self.rmse["q"], *self.horizons.values()]
        rows = [[joint, *(short(np.degrees(by[joint])) for by in columns)] for joint in self.command]
        means = [np.degrees([v for v in by.values() if known(v)]) for by in columns]
        rows.append(["mean", *(short(float(m.mean())) if len(m) else "–" for m in means)])
        kind = f"in windows of {self.window:g} s" if self.window else "free-running"
        many = f"{len(self.logs)} logs" if len(self.logs) > 1 else "1 log"
        head = ("joint", "command", "replayed", *(f"{h:g} s" for h in self.horizons))
        return Section(f"Position error [deg], root mean square, {many}, {kind}", table=Table(head, rows))


def replay_logs(
    twin: Twin,
    logs: Iterable[Log],
    values: ArrayLike | None = None,
    window: float | None = None,
    end: float | None = None,
    tick: Callable[[], object] = lambda: None,
) -> Replays:
    """Replay logs for one vector of parameters.

    Args:
        twin: the model and its mechanisms.
        logs: of one robot.
        values: parameters over the twin's space; nominal unless given. Shape: (parameters,).
        window: start anew from the measured state every so many seconds; runs free from the first sample unless given.
        end: how much of each log to use [s]; all of it unless given.
        tick: called once a log, for a progress bar.
    """
    started, replays, used = time.perf_counter(), dict[str, Replay](), []
    for i, log in enumerate(logs):
        name = log.provenance.source or f"log {i + 1}"
        replays[name] = Replayer(twin, log, window, end=end)(twin.space.nominal if values is None else values)
        used.append(log)
        tick()
    every = list(replays.values())
    signals = [s for s in every[0].replayed if all(s in r.replayed for r in every)]
    columns = {s: every[0].columns[s] if s != "quat" else ("x", "y", "z") for s in signals}
    errors = {s: _pooled([r.error(s)[0] for r in every]) for s in signals}
    if any(r.failed.any() for r in every):
        errors = {s: np.full(len(columns[s]), np.nan) for s in signals}
    joints = every[0].joints

    def named(figures: Array) -> dict[str, float]:
        return dict(zip(joints, figures.tolist(), strict=True))

    return Replays(
        robot=twin.name,
        window=window,
        rmse={s: dict(zip(columns[s], errors[s].tolist(), strict=True)) for s in signals},
        command=named(_pooled([r.command - r.measured["q"] for r in every])),
        horizons={h: named(_at_horizon(every, h)) for h in HORIZONS if window and h <= window + 1e-9},
        logs={name: named(r.rmse("q")[0]) for name, r in replays.items()},
        diverged={name: int(r.failed.sum()) for name, r in replays.items() if r.failed.any()},
        seconds=time.perf_counter() - started,
        robot_seconds=float(sum(np.nanmax(r.time) * len(r.starts) for r in every)),
        warnings=twin.warnings,
        origin=origin_of(twin, used),
        replays=replays,
    )


def _pooled(errors: Sequence[Array]) -> Array:
    """Root mean square over all samples by column, NaN where there is none. Shape of each error: (..., columns)."""
    flat = np.concatenate([e.reshape(-1, e.shape[-1]) for e in errors])
    seen = np.isfinite(flat).any(axis=0)
    out = np.full(flat.shape[1], np.nan)
    out[seen] = np.sqrt(np.nanmean(flat[:, seen] ** 2, axis=0))
    return out


def _at_horizon(replays: Sequence[Replay], horizon: float) -> Array:
    """Root mean square error of the samples around a time since the window's start, by joint [rad]."""
    near = [np.abs(r.time - horizon) <= max(0.1 * horizon, np.nanmedian(np.diff(r.time, axis=1))) for r in replays]
    return _pooled([r.error("q")[0][rows] for r, rows in zip(replays, near, strict=True)])


def _plot(replay: Replay, joint: int) -> Plot:
    """All windows after one another, with a break between two, thinned to what can be seen."""
    time = replay.starts[:, None] - replay.starts[0] + replay.time
    broken = np.full((len(time), 1), np.nan)
    lines = []
    for name, values, colour, width in (
        ("measured", replay.measured["q"][..., joint], BLUE, 2.5),
        ("command", replay.command[..., joint], GREY, 1.0),
        ("replayed", replay.replayed["q"][0, ..., joint], RED, 1.5),
    ):
        every = max(1, values.size // MOST_POINTS)
        x, y = (np.hstack([part, broken]).ravel()[::every] for part in (time, np.degrees(values)))
        lines.append(line(x, y, colour, width, name=name))
    error = np.degrees(replay.rmse("q")[0, joint])
    return Plot(f"{replay.joints[joint]}: {short(error)} deg off", lines, {"yaxis": {"title": "deg"}}, height=220)
