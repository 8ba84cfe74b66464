"""Excitation: a designed motion and what it is expected to tell, as a result that prints itself and makes its page."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import RenderableType

from gapless.arrays import Array
from gapless.files import atomic
from gapless.identify.excitation.information import Uncertain
from gapless.identify.excitation.limits import Limits
from gapless.identify.result import NINETY
from gapless.plain import plain
from gapless.report import GREY, RED, Plot, Result, Section, Table, Verdict, in_terminal, line, notes
from gapless.twin import Twin

MOTIONS = ("chirp", "multisine", "designed")


@dataclass(frozen=True, repr=False)
class Excitation(Result):
    """A motion and what it is expected to tell."""

    NAME = "excitation"

    twin: Twin
    what: Uncertain
    limits: Limits
    motion: Array
    """Commands, one a control period. Shape: (periods, joints)."""
    baselines: dict[str, Array]
    """The usual motions at the same limits: "chirp" and "multisine". Shape of each: (periods, joints)."""
    after: dict[str, Array]
    """Expected standard deviations in the scaled space after "chirp", "multisine", "designed". Shape of each: (parameters,)."""
    left: dict[str, float]
    """How much uncertainty each leaves: mean over parameters of standard deviation after / before."""
    peaks: Limits
    """What robots drawn from the belief reach at most."""
    candidates: int
    """Stretches that were tried."""
    warnings: tuple[str, ...]
    """What could not be checked, and whether the search did not pay."""

    @property
    def title(self) -> str:
        return f"Motion to record with {self.twin.name}"

    @property
    def seconds(self) -> float:
        """How long the motion lasts."""
        return len(self.motion) * self.twin.control_dt

    def json(self) -> dict[str, Any]:
        """The 90 % interval of each parameter, now and expected after each motion; how near joints come to their limits."""
        space, limits, peaks = self.what.space, self.limits, self.peaks
        names, units, mean = space.names, [p.unit for p in space.parameters], space.from_scaled(self.what.centre)
        spans = {m: self._interval(spread) for m, spread in {"now": self.what.spread, **self.after}.items()}
        parameters = {
            name: {"unit": units[i], "mean": mean[i], **{m: span[i] for m, span in spans.items()}}
            for i, name in enumerate(names)
        }
        joints = {
            joint: {"position": [peaks.low[j], peaks.high[j]], "position_limits": [limits.low[j], limits.high[j]]}
            | {"speed": peaks.speed[j], "speed_limit": limits.speed[j]}
            | {"torque": peaks.torque[j], "torque_limit": limits.torque[j]}
            for j, joint in enumerate(self.twin.joints)
        }
        head = {"verdict": self.verdict().text, "seconds": self.seconds, "candidates": self.candidates, "left": self.left}
        table: dict[str, Any] = plain({**head, "parameters": parameters, "joints": joints, "warnings": self.warnings})
        return table

    def verdict(self) -> Verdict:
        left = {m: f"{100 * self.left[m]:.1f} %" for m in MOTIONS}
        text = f"After {self.seconds:g} s of this motion {left['designed']} of the uncertainty is expected to be left"
        text += f"; a chirp leaves {left['chirp']}, a multisine {left['multisine']}."
        return Verdict(text, good=self.left["designed"] < min(self.left["chirp"], self.left["multisine"]))

    def sections(self) -> Iterator[Section]:
        yield self._intervals()
        yield self._peaks()
        time = np.arange(len(self.motion)) * self.twin.control_dt
        plots = []
        for j, joint in enumerate(self.twin.joints):
            lines = [line(time, m[:, j], c, 1.4) for m, c in ((self.baselines["chirp"], GREY), (self.motion, RED))]
            plots.append(Plot(joint, lines, {"yaxis": {"title": "rad"}}))
        yield Section("Commands", "Over time [s].", legend=[("designed", RED), ("chirp", GREY)], plots=plots, wide=True)

    def glance(self) -> Iterable[RenderableType]:
        return [in_terminal(self._intervals()), in_terminal(self._peaks()), *notes("note", self.warnings)]

    def write_motion(self, path: str | os.PathLike[str]) -> None:
        """The motion as a CSV file that `gapless standin --motion` and a robot's own player read: time [s], joints [rad]."""
        rows = (f"{k * self.twin.control_dt:.6f}," + ",".join(f"{q:.7f}" for q in row) for k, row in enumerate(self.motion))
        with atomic(Path(path)) as part:
            part.write_text("\n".join([",".join(("time", *self.twin.joints)), *rows]) + "\n")

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write motion.csv, excitation.json and report.html."""
        super().save(folder)
        self.write_motion(Path(folder) / "motion.csv")

    def _interval(self, spread: Array) -> Array:
        """Of each parameter, in its unit. Shape: (parameters, 2)."""
        space, what = self.what.space, self.what
        return np.stack([space.clip(space.from_scaled(what.centre + k * NINETY * spread)) for k in (-1, 1)], axis=1)

    def _intervals(self) -> Section:
        space, mean = self.what.space, self.what.space.from_scaled(self.what.centre)
        halves = [np.diff(self._interval(s))[:, 0] / 2 for s in (self.what.spread, *(self.after[m] for m in MOTIONS))]
        rows = [
            [f"{p.name} {p.unit}".strip(), f"{mean[i]:.3g} ± {halves[0][i]:.2g}", *(f"± {h[i]:.2g}" for h in halves[1:])]
            for i, p in enumerate(space.parameters)
        ]
        rows.append(["uncertainty left", "100 %", *(f"{100 * self.left[m]:.1f} %" for m in MOTIONS)])
        title = "90 % interval of each parameter: now, and expected after a motion"
        return Section(title, table=Table(("parameter", "now", *MOTIONS), rows))

    def _peaks(self) -> Section:
        peaks, limits, rows = self.peaks, self.limits, []
        for j, joint in enumerate(self.twin.joints):
            most = f"{limits.torque[j]:.2f}" if np.isfinite(limits.torque[j]) else "none"
            position = f"{peaks.low[j]:.2f}..{peaks.high[j]:.2f} of {limits.low[j]:.2f}..{limits.high[j]:.2f}"
            speed = f"{peaks.speed[j]:.2f} of {limits.speed[j]:.2f}"
            rows.append([joint, position, speed, f"{peaks.torque[j]:.2f} of {most}"])
        head = ("joint", "position [rad]", "speed [rad/s]", "torque [N m]")
        return Section("Largest over robots drawn from the belief, of the limit", table=Table(head, rows))
