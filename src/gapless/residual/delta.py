"""Delta action (ASAP, He 2025): what must be added to a policy's actions in simulation so that it moves as the robot does.

    learnt = learn_delta(Twin.load("arm"), logs)     # of a policy on the robot
    learnt.save("delta")                             # `gapless train --belief delta/belief.json` has it in every world

It is learned on the model as it is, without a fit: of a servo a shift of its target is a torque, so networks are those of
the residual (`networks.py`), trained by the same gradient, and what they give is within the drive's limits. A policy that is
tuned in these worlds never sees it and is deployed without it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from rich.console import RenderableType

from gapless.arrays import Array
from gapless.errors import BadInput
from gapless.identify import SCORE_SECONDS, Scorer
from gapless.logs import Log
from gapless.measure import Trace, admit, split_logs
from gapless.plain import NOT_SAVED
from gapless.report import Result, Section, Table, Verdict, in_terminal, percent
from gapless.residual.files import DELTA, save_nets
from gapless.residual.networks import Physics, Tick, noise, setting_of, trained, unsuitable, worth_it
from gapless.residual.result import judged_joints
from gapless.residual.training import numbers_of, owners, torques
from gapless.twin import Net, Point, Residual, Twin, recipe_of, save_belief


@dataclass(frozen=True)
class DeltaJoint:
    """What is added to the command of one joint, in its unit: rad, or N m of a drive that takes torque."""

    kept: bool
    before: float
    """Held-out error without it [rad], and with that of all joints."""
    after: float
    size: float
    """Root mean square."""
    most: float
    """It is never more."""
    outside: float
    """Share of the time in which some input was outside of what it was trained in, and was clipped."""
    words: str
    """What it learned, as a torque."""


@dataclass(frozen=True, repr=False)
class DeltaAction(Result):
    """A correction of a policy's actions that makes a simulated robot move as the real one, and whether it is good."""

    NAME = "delta"

    robot: str
    heldout_before: float
    """In the full model, mean over joints [rad]."""
    heldout_after: float
    joints: dict[str, DeltaJoint]
    seconds: float
    """Computing time."""
    seconds_used: float
    seconds_given: float
    twin: Twin = field(metadata=NOT_SAVED)
    """With the correction in it."""
    values: Array = field(metadata=NOT_SAVED)
    nets: tuple[Net, ...] = field(default=(), metadata=NOT_SAVED)

    @property
    def title(self) -> str:
        return "Delta action"

    def verdict(self) -> Verdict:
        before, after = np.degrees([self.heldout_before, self.heldout_after])
        if not self.nets:
            return Verdict(f"No delta action is used: none truly lowers the error of {before:.3f} deg on unseen motion.", False)
        largest = max(j.size for j in self.joints.values() if j.kept)
        fell = f"from {before:.3f} to {after:.3f} deg on motion that it has not seen"
        what = f"A delta action at {len(self.nets)} of {len(self.joints)} joints takes the error {fell}"
        return Verdict(f"{what}; its largest root mean square is {largest:.3g}. Deploy the tuned policy without it.", True)

    def sections(self) -> Iterator[Section]:
        yield self._by_joint()
        yield Section(
            "What it is from", [f"Learned in {self.seconds:.0f} s from {self.used}, on top of the model as it was given."]
        )

    def glance(self) -> Iterable[RenderableType]:
        return [in_terminal(self._by_joint())]

    def _by_joint(self) -> Section:
        head = ["joint", "what it learned", "used", "before [deg]", "after [deg]", "delta", "at most", "outside support"]
        rows = [
            [name, j.words, "yes" if j.kept else "no", f"{np.degrees(j.before):.3f}", f"{np.degrees(j.after):.3f}"]
            + [f"{j.size:.3g}", f"{j.most:.3g}", percent(j.outside)]
            for name, j in self.joints.items()
        ]
        text = "The delta is in the unit of the command. Held-out errors are those of the full model; each half of the logs is "
        return Section("Joints", [f"{text}predicted by what learned from the other."], Table(head, rows, words=3))

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write delta.json, report.html, belief.json (for `gapless train --belief`), delta.npz and an ONNX file a joint."""
        super().save(folder)
        save_belief(Point(self.twin.space, self.values), Path(folder) / "belief.json", recipe_of(self.twin))
        if self.nets:
            save_nets(self.nets, Path(folder), DELTA)


def learn_delta(
    twin: Twin, logs: Sequence[Log], values: Array | None = None, tick: Tick = lambda text: None, force: bool = False
) -> DeltaAction:
    """Learn what must be added to commands so that a twin moves as logs say that the robot did.

    Args:
        twin: the model as policies are trained in it.
        logs: of a policy (or any other motion) on the robot: commands and positions.
        values: parameters of the twin, (parameters,); nominal unless given.
        tick: told what is being done.
        force: keep the correction of every joint, also where it does not truly help.
    """
    started, logs = time.perf_counter(), admit(twin, logs).logs
    split = split_logs(logs, twin.joints)
    why = unsuitable(twin, split)
    if why:
        raise BadInput(f"no delta action can be learned: {why}")
    point = twin.space.nominal if values is None else values
    scorer = Scorer(twin.joints, logs, split, split.spread(split.logs, SCORE_SECONDS / twin.model.nv), [], twin)
    tick("delta action: replaying the model as it is")
    before = scorer(twin, point, np.stack([point, point]), {})
    physics = Physics(twin, np.tile(point, (3, 1)), {}, before, np.empty((0, 0)))
    nets, data = trained(physics, setting_of(twin, logs, split), True, lambda text: tick(f"delta action: {text}"))
    tick("delta action: checking in the full model")
    every = physics.predicted(Residual(tuple(nets), target=True), scorer)
    kept = nets if force else worth_it(nets, physics.best(scorer), every[2], noise(logs, twin.joints))
    grown, vectors, shown = every
    if not kept:
        grown, vectors, shown = twin, physics.vectors, before
    elif len(kept) < len(nets):
        grown, vectors, shown = physics.predicted(Residual(tuple(kept), target=True), scorer)
    torque, owner, names = torques(data, numbers_of(nets)), owners(data), {n.joint for n in kept}
    joints = {
        name: DeltaJoint(
            name in names, j.before, j.after, float(np.sqrt((torque[owner == i] ** 2).mean()) / data.gain[i]), nets[i].bound,
            j.outside, j.words,
        )
        for i, (name, j) in enumerate(judged_joints(before, shown, nets, kept, data).items())
    }  # fmt: skip
    return DeltaAction(
        robot=twin.name,
        heldout_before=_error(before),
        heldout_after=_error(shown),
        joints=joints,
        seconds=time.perf_counter() - started,
        seconds_used=split.seconds(split.logs),
        seconds_given=sum(float(log["q"].time[-1] - log["q"].time[0]) for log in logs),
        twin=grown,
        values=vectors[0],
        nets=tuple(kept),
    )


def _error(traces: Sequence[Trace]) -> float:
    """Held out, mean over joints [rad]."""
    return float(np.sqrt(np.concatenate([t.error("heldout") ** 2 for t in traces]).mean(axis=0)).mean())
