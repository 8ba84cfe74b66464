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
from gapless.errors import BadInput, PhysicsError
from gapless.logs import Log
from gapless.measure.admission import admitted_part
from gapless.measure.signals import units
from gapless.plain import NOT_SAVED
from gapless.report import (
    BLUE,
    GREY,
    ORANGE,
    Film,
    Plot,
    Result,
    Section,
    Table,
    Verdict,
    in_terminal,
    known,
    line,
    notes,
    short,
    shown,
)
from gapless.twin import Origin, Twin, origin_of
from gapless.worlds import Replay, Replayer, base_poses, film

HORIZONS = (0.05, 0.1, 0.2, 0.5, 1.0)
"""Times since the start of a window at which errors are told [s]."""
MOST_WORST = 5  # joints that are named first
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
    """The same of the commanded position as prediction, by joint."""
    horizons: dict[float, dict[str, float]]
    """Time since the start of a window [s] to joint to error."""
    logs: dict[str, dict[str, float]]
    """Log to joint to error."""
    units: dict[str, str]
    """Of the position of each joint: rad, or m where it slides."""
    diverged: dict[str, int]
    """Log to the number of its windows in which physics broke."""
    seconds: float
    """Computing time."""
    robot_seconds: float
    """How long the replayed motion lasts [s]."""
    warnings: tuple[str, ...]
    """What had to be assumed about the model."""
    noted: tuple[str, ...]
    """Logs that were left out, and what is odd about the others."""
    origin: Origin
    replays: dict[str, Replay] = field(default_factory=dict, metadata=NOT_SAVED)
    """By log; a loaded result has none."""
    moving: Film | None = field(default=None, metadata=NOT_SAVED)
    """Of the first log."""

    @property
    def title(self) -> str:
        return f"Replay of {self.robot}"

    def verdict(self) -> Verdict:
        if self.diverged:
            broken = sum(self.diverged.values())
            return Verdict(f"Physics broke in {broken} window{'s' * (broken > 1)} of {', '.join(self.diverged)}.", good=False)
        texts, good = [], True
        for unit in dict.fromkeys(self.units.values()):
            joints, (factor, name) = [j for j, of in self.units.items() if of == unit], shown(unit)
            error, command = (factor * np.array([by[j] for j in joints]) for by in (self.rmse["q"], self.command))
            worst = joints[int(error.argmax())]
            text = f"{error.mean():.3g} {name} off, mean over joints ({worst} most, by {error.max():.3g} {name})"
            if np.isfinite(command).any():
                text += f"; the command is {np.nanmean(command):.3g} {name} off"
                good &= bool(error.mean() <= np.nanmean(command))
            texts.append(text)
        return Verdict(f"The model is {'; and '.join(texts)}.", good=good)

    def sections(self) -> Iterator[Section]:
        yield self._summary()
        yield self._errors()
        legend = [("measured", BLUE), ("command", GREY), ("replayed", ORANGE)]
        for log, replay in self.replays.items():
            plots = [_plot(replay, j, self.units[name]) for j, name in enumerate(replay.joints)]
            yield Section(log, "Positions over time [s].", legend=legend, plots=plots, wide=True)
        yield self.origin.section(("motion", f"{self.robot_seconds:.0f} s"), ("computing time", f"{self.seconds:.2f} s"))

    def glance(self) -> Iterable[RenderableType]:
        broke = [f"{log}: physics broke in {n} window{'s' * (n > 1)}" for log, n in self.diverged.items()]
        told = Text(f"{self.robot_seconds:.0f} s of robot time in {self.seconds:.2f} s")
        return [
            in_terminal(self._errors()),
            *notes("diverged", broke, "red"),
            *notes("noted", self.noted),
            *notes("assumed", self.warnings),
            told,
        ]

    def _summary(self) -> Section:
        """The figures to take away, and both robots moving."""
        worst = sorted(self.rmse["q"], key=lambda j: -np.nan_to_num(self.rmse["q"][j], nan=np.inf))[:MOST_WORST]
        rows = []
        for joint in worst:
            factor, name = shown(self.units[joint])
            sizes = [factor * by[joint] for by in (self.rmse["q"], self.command)]
            rows.append([joint, *(f"{short(size)} {name}" if known(size) else "–" for size in sizes)])
        text = f"The first seconds of {next(iter(self.replays))}." if self.moving and self.replays else ""
        table = Table(("joints that are most off", "replayed", "command"), rows)
        return Section("At a glance", text, table, film=self.moving)

    def _errors(self) -> Section:
        columns = [self.command, self.rmse["q"], *self.horizons.values()]
        rows, kinds = [], list(dict.fromkeys(self.units.values()))
        for joint, unit in self.units.items():
            rows.append([joint, *(short(shown(unit)[0] * by[joint]) for by in columns), shown(unit)[1]])
        for unit in kinds:
            means = [[v for j, v in by.items() if self.units[j] == unit and known(v)] for by in columns]
            cells = [short(shown(unit)[0] * float(np.mean(m))) if m else "–" for m in means]
            rows.append(["mean", *cells, shown(unit)[1]])
        head = ("joint", "command", "replayed", *(f"{h:g} s" for h in self.horizons), "unit")
        if len(kinds) == 1:  # then the title says it
            rows, head = [row[:-1] for row in rows], head[:-1]
        kind = f"in windows of {self.window:g} s" if self.window else "free-running"
        many = f"{len(self.logs)} logs" if len(self.logs) > 1 else "1 log"
        unit = f" [{shown(kinds[0])[1]}]" if len(kinds) == 1 else ""
        return Section(f"Position error{unit}, root mean square, {many}, {kind}", table=Table(head, rows))


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
        logs: of one robot. Bad ones are left out, and named in the result, if others are good.
        values: parameters over the twin's space; nominal unless given. Shape: (parameters,).
        window: start anew from the measured state every so many seconds; runs free from the first sample unless given.
        end: how much of each log to use [s]; all of it unless given.
        tick: called once a log, for a progress bar.
    """
    started, replays, used, noted = time.perf_counter(), dict[str, Replay](), list[Log](), list[str]()
    refused = list[BadInput | PhysicsError]()
    vector = twin.space.nominal if values is None else np.asarray(values, float)
    for i, log in enumerate(logs):
        name = log.provenance.source or f"log {i + 1}"
        try:
            kept, odd = admitted_part(twin, log, vector)
            replays[name] = Replayer(twin, kept, window, end=end)(vector)
            used.append(kept)
            noted += odd
        except (BadInput, PhysicsError) as error:
            refused.append(error)
        tick()
    if not used:
        raise refused[0] if refused else BadInput("name at least one log")
    every, first = list(replays.values()), next(iter(replays.values()))
    if all(r.failed.all() for r in every):
        raise PhysicsError(f"{used[0].name}: the physics of {twin.name} breaks in every window ({every[0].broke})")
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
        units=dict(zip(joints, units(twin, "q", joints), strict=True)),
        warnings=twin.warnings,
        noted=(*(f"left out {error}" for error in refused), *noted),
        origin=origin_of(twin, used),
        replays=replays,
        moving=_film(twin, first),
    )


def _film(twin: Twin, replay: Replay) -> Film | None:
    """The measured robot, and the replayed one as a ghost."""
    sampled = ~np.isnan(replay.time)
    signals = {"measured": replay.measured, "replayed": {s: v[0] for s, v in replay.replayed.items()}}
    base = {label: poses[sampled] for label, by in signals.items() if (poses := base_poses(twin, by)) is not None}
    time = (replay.starts[:, None] - replay.starts[0] + replay.time)[sampled]
    return film(twin, time, {label: by["q"][sampled] for label, by in signals.items()}, base if len(base) == 2 else None)


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


def _plot(replay: Replay, joint: int, unit: str) -> Plot:
    """All windows after one another, with a break between two, thinned to what can be seen."""
    time = replay.starts[:, None] - replay.starts[0] + replay.time
    broken = np.full((len(time), 1), np.nan)
    lines, (factor, unit) = [], shown(unit)
    for name, values, colour, width in (
        ("measured", replay.measured["q"][..., joint], BLUE, 2.5),
        ("command", replay.command[..., joint], GREY, 1.0),
        ("replayed", replay.replayed["q"][0, ..., joint], ORANGE, 1.5),
    ):
        every = max(1, values.size // MOST_POINTS)
        x, y = (np.hstack([part, broken]).ravel()[::every] for part in (time, factor * values))
        lines.append(line(x, y, colour, width, name=name))
    error = factor * replay.rmse("q")[0, joint]
    return Plot(f"{replay.joints[joint]}: {short(error)} {unit} off", lines, {"yaxis": {"title": unit}}, height=220)
