"""Learnt: whether a learned correction is any good, as an object that prints itself, makes its page and saves its networks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from rich.console import RenderableType

from gapless.arrays import Array
from gapless.measure import Trace
from gapless.plain import NOT_SAVED
from gapless.report import BLUE, Plot, Result, Section, Table, Verdict, dots, in_terminal, percent
from gapless.residual.base import LearntBase
from gapless.residual.files import save_nets
from gapless.residual.training import Material, inputs_of, numbers_of, owners, torques
from gapless.twin import Net, learned

FOLDER = "residual"
"""In the folder of a fit."""
MOST = 0.7  # share of a torque that one simple input explains: then a number of the model should have it
FAIR = 0.3  # share below which an input is not worth a word
MEANING = {
    "push": ("a gain that differs", "gains.kp"),
    "velocity": ("extra damping", "friction.viscous"),
    "direction": ("dry friction", "friction.coulomb"),
    "command velocity": ("a torque with the command's velocity: feed-forward, or a delay", "latency.action"),
    "load": ("a share of gravity: masses or their centres", "inertia.mass"),
    "angle": ("a spring", "disturbance.cable"),
    "windup": ("friction that winds up before it slips", "hysteresis.torque"),
    "slow velocity": ("damping that comes late", ""),
    "slow push": ("integral action, or a drive that gives way", ""),
    "sine": ("a torque over the angle", "ripple.sine"),
    "cosine": ("a torque over the angle", "ripple.cosine"),
}


@dataclass(frozen=True)
class LearntJoint:
    """What was learned of one joint."""

    kept: bool
    before: float
    """Held-out error without networks [rad], and with those of all joints that have one."""
    after: float
    outside: float
    """Share of the time in which some input was outside of what it was trained in, and was clipped."""
    size: float
    """Root mean square of its torque, as a share of the drive's."""
    bound: float
    """The most that it gives [N m]."""
    words: str
    """What it learned."""


@dataclass(frozen=True, repr=False)
class Learnt(Result):
    """A learned torque, and whether it is good."""

    NAME = "residual"

    robot: str
    kept: bool
    """Whether it is part of the twin."""
    heldout_before: float
    """In the full model, mean over joints [rad]."""
    heldout_after: float
    joints: dict[str, LearntJoint]
    motions: dict[str, tuple[float, float]]
    """Held-out error of each log before and after, mean over joints [rad]."""
    seconds: float
    """Computing time."""
    seconds_used: float
    seconds_given: float
    base: LearntBase | None = None
    """Of a robot that floats."""
    against: str = ""
    """Why networks are not used, or were forced against."""
    nets: tuple[Net, ...] = field(default=(), metadata=NOT_SAVED)

    def verdict(self) -> Verdict:
        before, after = np.degrees([self.heldout_before, self.heldout_after])
        fell = f"from {before:.3f} to {after:.3f} deg on motion that it has not seen"
        if not self.kept:
            return Verdict(f"No learned torque is used: the error would go {fell}, but {self.against}.", True)
        pull = self._pull()
        if not any(j.kept for j in self.joints.values()):
            return Verdict(f"No learned torque of joints is used: the error would go {fell}, but {self.against}.{pull}", True)
        largest = max(j.size for j in self.joints.values() if j.kept)
        count = sum(j.kept for j in self.joints.values())
        simple = [name for name, j in self.joints.items() if j.kept and "instead" in j.words]
        more = f" Of {len(simple)} joints a number of the model would do instead." if simple else ""
        what = f"Learned torque at {count} of {len(self.joints)} joints takes the error {fell}"
        forced = f" It was forced, but {self.against}." if self.against else ""
        good = not (simple or forced)
        return Verdict(f"{what}; it is at most {percent(largest)} of the drive's torque.{forced}{more}{pull}", good)

    def _pull(self) -> str:
        if self.base is None or not self.base.kept:
            return ""
        size = f"{self.base.force:.3g} N and {self.base.torque:.3g} N m"
        return f" A pull at the base of {size} takes {percent(self.base.gain)} off the squared error of unseen motion."

    def sections(self) -> Iterator[Section | None]:
        yield self._by_joint()
        if self.base is not None:
            yield self._at_the_base(self.base)
        rows = [[name, *(f"{np.degrees(e):.3f}" for e in errors)] for name, errors in self.motions.items()]
        yield Section("Motions", table=Table(["log", "before [deg]", "after [deg]"], rows))
        if len(self.motions) > 2:
            pairs = np.degrees(np.array(list(self.motions.values())))
            title = "held-out error of each log, before (across) and after (up) [deg]"
            yield Section("Before and after", plots=[Plot(title, [dots(pairs[:, 0], pairs[:, 1], BLUE, 6, 0.8)])])
        yield Section("What it is from", [f"Learned in {self.seconds:.0f} s from {self.used}."])

    def glance(self) -> Iterable[RenderableType]:
        return [in_terminal(self._by_joint())]

    def _by_joint(self) -> Section:
        head = ["joint", "what it learned", "used", "before [deg]", "after [deg]", "outside support", "of the drive's torque"]
        rows = [
            [name, j.words, "yes" if j.kept else "no", f"{np.degrees(j.before):.3f}", f"{np.degrees(j.after):.3f}"]
            + [percent(j.outside), percent(j.size)]
            for name, j in self.joints.items()
        ]
        text = "Held-out errors are those of the full model, each half of the logs predicted by what learned from the other."
        return Section("Joints", [text], Table(head, rows, words=3))

    def _at_the_base(self, base: LearntBase) -> Section:
        used = "is used" if base.kept else "is not used, since unseen motion is not truly predicted better"
        text = [
            f"A pull at the base, along its own axes, {used}: {base.force:.3g} N (at most {base.most_force:.3g}) and "
            f"{base.torque:.3g} N m (at most {base.most_torque:.3g}); for {percent(base.outside)} of the time the base moved "
            "otherwise than it was trained for, and its velocity was clipped to that range."
        ]
        rows = [[signal, *(f"{e:.4g}" for e in errors)] for signal, errors in base.errors.items()]
        return Section("Base", text, Table(["held-out error", "before", "after"], rows))

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write residual.json and report.html, and of what is used the networks: residual.npz and an ONNX file a joint."""
        super().save(folder)
        if self.nets:
            save_nets(self.nets, Path(folder))


def judged_joints(
    before: Sequence[Trace], after: Sequence[Trace], nets: Sequence[Net], kept: Sequence[Net], data: Material
) -> dict[str, LearntJoint]:
    """What was learned of each joint. data: what joints felt along the networks' own run."""
    old, new = (np.sqrt(np.concatenate([t.error("heldout") ** 2 for t in some]).mean(axis=0)) for some in (before, after))
    waves, owner = np.array([n.waves for n in nets]), owners(data)
    seen, torque = inputs_of(data, waves), torques(data, numbers_of(nets))
    drive = np.clip(seen[0] + data.felt[4] * data.felt[1], *data.joints[owner, 9:11].T)
    names, out = {n.joint for n in kept}, {}
    for j, net in enumerate(nets):
        mine = owner == j
        scaled = (seen[:, mine].T - net.centre) / net.spread
        outside = ((scaled < np.array(net.low)) | (scaled > np.array(net.high))).any(axis=1).mean()
        size = float(np.sqrt((torque[mine] ** 2).mean() / max((drive[mine] ** 2).mean(), 1e-12)))
        words = said(scaled, torque[mine])
        out[net.joint] = LearntJoint(net.joint in names, float(old[j]), float(new[j]), float(outside), size, net.bound, words)
    return out


def said(inputs: Array, torque: Array) -> str:
    """What a torque (steps,) mostly is, by the inputs (steps, inputs) that explain it best one after the other, in words."""
    left = torque - torque.mean()
    total = float(left @ left)
    if not total > 0:
        return "nothing"
    chosen: list[int] = []
    shares: list[float] = []
    for _ in range(2):
        found = []
        for i in set(range(learned.COUNT)) - set(chosen):
            columns = np.column_stack([np.ones(len(torque)), inputs[:, [*chosen, i]]])
            rest = torque - columns @ np.linalg.lstsq(columns, torque, rcond=None)[0]
            found.append((1 - float(rest @ rest) / total, i))
        share, best = max(found)
        if share - sum(shares) < FAIR / 2 or (not shares and share < FAIR):
            break
        shares.append(share - sum(shares))
        chosen.append(best)
    if not chosen:
        return "no simple law of one input"
    parts = [f"{MEANING[learned.INPUTS[i]][0]} ({percent(s)})" for i, s in zip(chosen, shares, strict=True)]
    number = MEANING[learned.INPUTS[chosen[0]]][1]
    instead = f": fit {number} instead" if shares[0] > MOST and number else ""
    return f"mostly {' and '.join(parts)}{instead}"
