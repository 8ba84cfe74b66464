"""What a log told about the robot, as a belief that a policy may be trained in; or why it may not."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gapless.arrays import Array
from gapless.close.case import Case
from gapless.close.field import contents, lifted, recorded
from gapless.close.stages import Stages
from gapless.close.training import to_tune, trained
from gapless.files import sha256
from gapless.identify import Fit, WalkingFit, fit, fit_key, fit_walking
from gapless.learn import box_belief, joint_mirror
from gapless.logs import Log, load_mapping, read
from gapless.policy import Pilot, load_policy
from gapless.robots import files_of, imu_of
from gapless.twin import Box, Gaussian, Twin, belief_table, quantities, save_belief

LOOSE = 0.6
"""Scaled units: how far off a number may be of which the field states no range; see `identify`."""
NINETY = 1.645
LOPSIDED = 0.5
"""Scaled units that left and right may differ by: half a real mismatch, as `trust` has it for joints alike."""
FITTED, BELIEF = "fit", "belief.json"


@dataclass(frozen=True)
class Identified:
    """What a log told."""

    fit: Fit | WalkingFit
    belief: Path | None
    """The file to train in; None where the fit must not be used."""
    lopsided: bool
    """Whether left and right differ, so that a mirrored robot is another one."""
    said: str
    """What may be done with it, and why."""


def walking(case: Case) -> bool:
    """Whether the robot is seen only while it walks: it has a free base and no hoist."""
    return not lifted(case) and imu_of(case.twin().model) is not None


def log_of(case: Case, stages: Stages) -> list[Log]:
    """Logs of the robot: those given, and of a stand-in one that is recorded within the robot time."""
    mapping = load_mapping(case.mapping) if case.mapping else None
    given = [read(path, mapping) for path in case.logs]
    return given if case.standin is None else [*given, recorded(case, stages, _walker(case, stages) if walking(case) else None)]


def logs_key(case: Case, stages: Stages) -> str:
    """A hash that stands for the logs."""
    if case.standin is None:
        logs = log_of(case, stages)
        return fit_key(record_twin(case, logs[0]), logs, [])
    return (sha256(*map(Path, case.logs)) if case.logs else "") + stages.key("log")


def record_twin(case: Case, log: Log) -> Twin:
    """The model as given, lifted as the robot was while it was recorded."""
    return case.stated.twin(case.robot, log, in_air=lifted(case))


def identified(case: Case, stages: Stages) -> Identified:
    """Record the robot, fit the model to it, and say whether a policy may be trained in what is believed then."""
    logs, walks = log_of(case, stages), walking(case)

    def make(folder: Path) -> None:
        def tick(text: str) -> None:
            stages.tell(f"fitting: {text}", None)

        if walks:
            found: Fit | WalkingFit = _walked(case, stages, logs)
        else:
            kept = folder / "progress.json"
            found = fit(record_twin(case, logs[0]), logs, progress=kept, resume=kept.is_file(), tick=tick)
        found.save(folder)

    inputs = {
        "robot": sha256(*files_of(case.robot)),
        "stated": case.stated,
        "log": logs_key(case, stages),
        "hoist": case.hoist,
        "policy": contents(_walker(case, stages)) if walks else "",
    }
    load: Callable[[Path], Fit | WalkingFit] = WalkingFit.load if walks else Fit.load
    return _judged(case, stages, stages.run(FITTED, inputs, make, load, says="fitting the model to the log"))


def _walker(case: Case, stages: Stages) -> Path:
    """The policy that walks while the robot is recorded: of a stand-in the one that falls less."""
    return to_tune(case, stages) if case.standin else Path(case.policy)


def _walked(case: Case, stages: Stages, logs: list[Log]) -> WalkingFit:
    policy = load_policy(_walker(case, stages))
    twin, asked = case.stated.twin(case.robot, logs[0]), case.command[: len(policy.contract.commands)]

    def crew(n: int) -> Callable[[Mapping[str, Array]], Array]:
        return Pilot(policy, twin, asked, n).answer

    return fit_walking(twin, logs, crew, tick=lambda text: stages.tell(f"fitting: {text}", None))


def _judged(case: Case, stages: Stages, found: Fit | WalkingFit) -> Identified:
    """Whether a policy may be trained in what a fit believes, and in how wide a part of it."""
    lopsided = isinstance(found.belief, Gaussian) and is_lopsided(case.twin(), found.belief)
    if not found.predicts:
        return Identified(found, None, lopsided, f"The fit is not used: {_first(found)}")
    folder = stages.place(FITTED)
    if not isinstance(found.belief, Gaussian):
        return Identified(found, folder / BELIEF, lopsided, "Worlds are drawn from the fit's belief.")
    path, recipe = folder / f"trained_{BELIEF}", belief_table(folder / BELIEF).get("twin")
    twin = case.stated.twin(case.robot, belief=folder / BELIEF)
    save_belief(no_wider(found.belief, box_belief(twin, quantities.ranges("wide"))), path, recipe)
    doubt = found.suspicion if isinstance(found, WalkingFit) else next(iter(found.suspicions), "")
    said = "Worlds are drawn about the numbers of the fit, as far off as it believes, but no farther than the field draws them."
    if doubt:
        said = f"The fit predicts, but its numbers may be wrong ({doubt}): the trial on the robot decides. {said}"
    return Identified(found, path, lopsided, said)


def no_wider(belief: Gaussian, field: Box) -> Gaussian:
    """A belief that is about as sure of each number as the ranges of the field, or surer.

    A log cannot make anybody less sure than they were without it. Fits that only see positions leave a factor open that gains,
    friction and inertia share, which masses settle; robots of half or twice the strength are not worth learning on.
    """
    half = (field.space.to_scaled(field.high) - field.space.to_scaled(field.low)) / 2
    drawn = dict(zip(field.space.names, half.tolist(), strict=True))
    widest = [max((drawn[n] for n in p.members or (p.name,) if n in drawn), default=0.0) for p in belief.space.parameters]
    most = np.where(np.array(widest) > 0, np.array(widest) / NINETY, LOOSE)
    by = np.minimum(1.0, most / np.sqrt(np.maximum(np.diag(belief.covariance), 1e-18)))
    return dataclasses.replace(belief, covariance=belief.covariance * np.outer(by, by))


def _first(found: Fit | WalkingFit) -> str:
    return found.verdict().text if isinstance(found, WalkingFit) else found.against[0]


def is_lopsided(twin: Twin, belief: Gaussian) -> bool:
    """Whether a belief makes left and right differ by more than chance and half a real mismatch."""
    mirror, space = joint_mirror(twin), belief.space
    if mirror is None:
        return False
    partner = {joint: twin.joints[int(i)] for joint, i in zip(twin.joints, mirror.index, strict=True)}
    places = {name: i for i, p in enumerate(space.parameters) for name in p.members or (p.name,)}
    rows = []
    for name, i in places.items():
        quantity, _, of = name.partition("/")
        row = np.zeros(len(space))
        if quantities.of(name).mirrored:
            row[i] = 1.0
        elif (other := places.get(f"{quantity}/{partner.get(of)}", i)) != i:
            row[i], row[other] = 1.0, -1.0
        rows.append(row)
    across = np.array(rows).reshape(-1, len(space))
    nominal = space.to_scaled(space.nominal)
    apart, chance = across @ (belief.centre - nominal), np.sqrt(np.einsum("ij,jk,ik->i", across, belief.covariance, across))
    return bool((np.abs(apart) > np.maximum(LOPSIDED, 1.645 * chance)).any())


def tuned_in(name: str, preset: str) -> Callable[[Case, Stages], Path]:
    """The remedy that tunes in worlds of a preset about what a log told; where that must not be used, nothing is tuned."""

    def remedy(case: Case, stages: Stages) -> Path:
        known, start = identified(case, stages), to_tune(case, stages)
        if known.belief is None:
            return start
        return trained(case, stages, name, preset, known.belief, start, mirror=not known.lopsided)

    return remedy
