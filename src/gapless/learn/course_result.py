"""How a policy did on the course: figures of every run, as a result that prints itself and makes its page."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from rich.console import RenderableType

from gapless.arrays import Array, Bools
from gapless.plain import NOT_SAVED
from gapless.report import BLUE, RED, Cell, Plot, Result, Section, Table, Verdict, dots, in_terminal

GOOD = 0.95  # share of runs that succeed


@dataclass(frozen=True, repr=False)
class CourseResult(Result):
    """How a policy did. Shape of each array: (runs,)."""

    NAME = "course"

    command: Array
    """Shape: (runs, columns)."""
    columns: tuple[str, ...]
    fell: Bools
    success: Bools
    """Whether the task was done, as it says itself; that the robot did not fall, for a task that does not say."""
    velocity_error: Array
    """Mean length of the error in velocity over the ground, gait and all [m/s]; after a fall, that of standing still. NaN for
    robots without legs."""
    yaw_error: Array
    """[rad/s]"""
    cost_of_transport: Array
    """Positive mechanical power over weight and speed; NaN while told to stand."""
    torque_margin: Array
    """Share of the torque limit that was never used, of the joint that had the least."""
    speed: Array
    """Of the fastest joint [rad/s]."""
    speed_margin: Array
    """Share of the joints' velocity limits that was never used, of the joint that had the least; NaN where none is known."""
    roughness: Array
    """Root mean square of the change of an action in a period, in units of the target [rad]."""
    hardness: Array
    """Of the ground where it started, 0 to 1; 0 on a floor."""
    policy: str = ""
    """Where the policy comes from."""
    idle: dict[str, float] = field(default_factory=dict)
    """The figures of a policy whose output is zero, on the same robots; empty where it was not run."""
    power: Array = field(default_factory=lambda: np.zeros(0))
    """Mean positive mechanical power until a fall [W]."""
    away: Array = field(default_factory=lambda: np.zeros(0))
    """Mean distance from what is asked, for a task that tells it (`away`); after a fall, that at the start. NaN for others."""
    parameters: Array = field(default_factory=lambda: np.zeros((0, 0)), metadata=NOT_SAVED)
    """What each robot was. Shape: (runs, parameters)."""

    def summary(self) -> dict[str, float]:
        """The figures of the whole course that are known."""
        figures = {name: float(figure(self)) for name, (_, _, figure) in FIGURES.items()}
        return {name: value for name, value in figures.items() if np.isfinite(value)}

    def json(self) -> dict[str, Any]:
        head = {"verdict": self.verdict().text, "good": self.verdict().good, "figures": self.summary(), "idle": self.idle}
        return head | super().json()

    @property
    def title(self) -> str:
        return f"Course of {self.policy or 'a policy'}"

    def verdict(self) -> Verdict:
        share, idle = float(self.success.mean()), self.idle.get("success", 0.0)
        text = f"{share:.1%} of {len(self.fell)} runs succeeded"
        if not self.idle:
            return Verdict(f"{text}.", good=share >= GOOD)
        text += f"; of the same runs with a policy that does nothing (an output of zero), {idle:.1%}."
        if share <= idle:
            text += " The policy is no better than doing nothing."
        return Verdict(text, good=share >= max(GOOD, idle))

    def sections(self) -> Iterator[Section]:
        yield self._figures()
        if np.isfinite(self.velocity_error).any():
            clouds = [
                dots(self.velocity_error[runs], self.yaw_error[runs], colour, 7, 0.8)
                for runs, colour in ((~self.fell, BLUE), (self.fell, RED))
            ]
            axes = {"xaxis": "velocity error [m/s]", "yaxis": "yaw rate error [rad/s]"}
            layout = {axis: {"title": text} for axis, text in axes.items()}
            yield Section("Every run", plots=[Plot("each run; red ones fell", clouds, layout, 360)], wide=True)
            yield Section("By command", table=Table(("command", "falls", "success", *axes.values()), list(self._by_command())))
        if self.hardness.any():
            ends = np.linspace(0.0, 1.0, 5)
            bands = [(low, high, (self.hardness >= low) & (self.hardness <= high)) for low, high in pairwise(ends)]
            rows = [[f"{low:.2f} to {high:.2f}", f"{self.fell[runs].mean():.0%}"] for low, high, runs in bands if runs.any()]
            yield Section("By hardness of the ground", table=Table(("0 flat, 1 hardest", "falls"), rows))

    def glance(self) -> Iterable[RenderableType]:
        return [in_terminal(self._figures())]

    def _figures(self) -> Section:
        columns = {"value": self.summary()} | ({"doing nothing": self.idle} if self.idle else {})
        rows = [
            [FIGURES[name][0], *(FIGURES[name][1].format(of[name]) if name in of else "" for of in columns.values())]
            for name in columns["value"]
        ]
        return Section("Figures", table=Table(("", *columns), rows))

    def _by_command(self) -> Iterator[list[str | Cell]]:
        """Falls, success and mean errors of the runs at each command; no errors where none counted."""
        for command in np.unique(self.command, axis=0):
            runs = (self.command == command).all(axis=1)
            words = ", ".join(f"{c} {v:+.1f}" for c, v in zip(self.columns, command, strict=True))
            bad = [float(part[runs].mean()) for part in (self.fell, ~self.success)]
            cells = [Cell(f"{bad[0]:.0%}", bad[0]), Cell(f"{1 - bad[1]:.0%}", bad[1])]
            for errors in (self.velocity_error[runs], self.yaw_error[runs]):
                seen = errors[np.isfinite(errors)]
                cells.append(
                    Cell(f"{seen.mean():.3f}", min(2 * float(seen.mean()), 1.0)) if len(seen) else Cell("none counted", 1.0)
                )
            yield [words, *cells]


def _over(average: Callable[[Array], Any], values: Array) -> float:
    """An average of what is known; NaN where nothing is."""
    return float(average(values)) if np.isfinite(values).any() else np.nan


FIGURES: dict[str, tuple[str, str, Callable[[CourseResult], float]]] = {
    "runs": ("runs", "{:.0f}", lambda r: len(r.fell)),
    "falls": ("falls", "{:.1%}", lambda r: r.fell.mean()),
    "success": ("success", "{:.1%}", lambda r: r.success.mean()),
    "velocity_error": ("velocity error", "{:.3f} m/s", lambda r: _over(np.nanmean, r.velocity_error)),
    "yaw_error": ("yaw rate error", "{:.3f} rad/s", lambda r: _over(np.nanmean, r.yaw_error)),
    "cost_of_transport": ("cost of transport", "{:.2f}", lambda r: _over(np.nanmedian, r.cost_of_transport)),
    "torque_margin": ("least torque margin", "{:.0%}", lambda r: r.torque_margin.min()),
    "joint_speed": ("fastest joint", "{:.1f} rad/s", lambda r: r.speed.max()),
    "speed_margin": ("least margin of joint speed", "{:.0%}", lambda r: r.speed_margin.min()),
    "roughness": ("change of a target in a period", "{:.3f} rad", lambda r: _over(np.nanmean, r.roughness)),
}
"""Label, how it is shown, and how it follows from all runs."""
