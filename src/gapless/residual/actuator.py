"""Actuator networks (Hwangbo 2019): measured torque from the history of command and velocity, beside simpler laws of the same.

The first part of each log is learned from and the rest judges, so a network that only remembers is found out.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from rich.console import RenderableType

from gapless.arrays import Array, Bools
from gapless.errors import BadInput
from gapless.logs import Log
from gapless.plain import NOT_SAVED
from gapless.report import Result, Section, Table, Verdict, in_terminal, percent
from gapless.residual.files import save_drives
from gapless.residual.told import Gains, as_told, read_from_current
from gapless.residual.training import rounded
from gapless.twin import DRIVE_HIDDEN, DRIVE_LAGS, DriveNet, Point, Twin, drive_forward, recipe_of, save_belief

DELAYS = np.arange(0.0, 0.0301, 0.001)  # s: tried for the PD law
TRAIN = 0.7  # share of each log that is learned from
LEAST = 2.0  # s of logs that can be split so
ROUNDS, BATCH, RATE = 2000, 256, 3e-3


@dataclass(frozen=True)
class Laws:
    """Root mean square error of torque on what was not learned from, by each law [N m]."""

    pd: float
    """Gain times error and damping; of a drive that is commanded in torque, a share of that and damping."""
    pd_delayed: float
    delay: float
    """Of the best such law [s]."""
    linear: float
    """Regression on what the network sees."""
    network: float
    torque: float
    """Root mean square of the torque itself."""
    outside: float
    """Share of that part in which some input was outside of what the network was trained in, and was clipped."""
    gain: float
    """Of the best delayed PD law [N m/rad, or 1 for a drive that takes torque]."""
    damping: float
    """[N m s/rad]"""

    @property
    def best(self) -> bool:
        """Whether the network is better than all the others."""
        return self.network < min(self.pd, self.pd_delayed, self.linear)


@dataclass(frozen=True)
class InModel:
    """Errors of one joint's position where the model replays what was not learned from [rad or m], by the drive's law."""

    given: float
    pd: float
    """The best delayed PD law."""
    network: float
    outside: float
    """Share of the network's own run in which some of its inputs were outside of what it was trained in, and were clipped."""


@dataclass(frozen=True, repr=False)
class Actuator(Result):
    """What predicts the measured torque of each drive, and whether a network is worth it."""

    NAME = "actuator"

    command: str
    """What drives were told: "q_cmd" or "tau_cmd"."""
    joints: dict[str, Laws]
    seconds_used: float
    seconds_given: float
    model: dict[str, InModel]
    """By joint of the robot's model, where one was given."""
    notes: list[str]
    """What was left out, and what the torque really is."""
    nets: dict[str, DriveNet] = field(default_factory=dict, metadata=NOT_SAVED)
    twin: Twin | None = field(default=None, metadata=NOT_SAVED)
    """With the networks in place of its drives' laws."""

    @property
    def title(self) -> str:
        return "Actuator networks"

    def verdict(self) -> Verdict:
        good = [name for name, laws in self.joints.items() if laws.best]
        each = "; ".join(
            f"{n}: {j.network:.3g} N m, linear {j.linear:.3g}, best PD {min(j.pd, j.pd_delayed):.3g}"
            for n, j in self.joints.items()
        )
        worse = ", ".join(n for n in self.joints if n not in good)
        said = f"The network is no better than a simpler law at {worse}: use that law there ({each})."
        if not worse:
            said = f"The network predicts unseen torque better than simpler laws do at every joint ({each})."
        if not self.model:
            return Verdict(said, not worse)
        given, pd, network = np.mean([(m.given, m.pd, m.network) for m in self.model.values()], axis=0)
        best = network < min(given, pd)
        said += f" In the model unseen motion is {'' if best else 'not '}predicted better: an error of {network:.3g} rad"
        return Verdict(f"{said} with networks, {pd:.3g} with the best PD law, {given:.3g} as given.", bool(best) and not worse)

    def sections(self) -> Iterator[Section]:
        yield self._laws()
        if self.model:
            yield self._in_model()
        share = round(100 * TRAIN)
        yield Section(
            "What it is from",
            [f"Learned from the first {share} % of each log and judged by the rest: {self.used}.", *self.notes],
        )

    def glance(self) -> Iterable[RenderableType]:
        return [in_terminal(s) for s in (self._laws(), *([self._in_model()] if self.model else []))]

    def _laws(self) -> Section:
        head = ["joint", "PD", "PD, delayed", "delay [ms]", "linear", "network", "torque itself", "outside support"]
        rows = [
            [name, *(f"{v:.4g}" for v in (j.pd, j.pd_delayed, 1000 * j.delay, j.linear, j.network, j.torque))]
            + [percent(j.outside)]
            for name, j in self.joints.items()
        ]
        return Section("Error of torque on what was not learned from [N m]", table=Table(head, rows))

    def _in_model(self) -> Section:
        head = ["joint", "as given", "best PD", "network", "outside support"]
        rows = [[n, *(f"{e:.4g}" for e in (m.given, m.pd, m.network)), percent(m.outside)] for n, m in self.model.items()]
        return Section("Error of position in the model on what was not learned from [rad or m]", table=Table(head, rows))

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write actuator.json, report.html, actuator.npz and an ONNX file a joint; twin.xml and belief.json if in a model."""
        super().save(folder)
        save_drives(list(self.nets.values()), Path(folder))
        if self.twin is not None:
            self.twin.save(Path(folder) / "twin.xml")
            save_belief(Point(self.twin.space, self.twin.space.nominal), Path(folder) / "belief.json", recipe_of(self.twin))


def learn_actuator(logs: Sequence[Log], seed: int = 0, gains: Gains | None = None) -> Actuator:
    """Learn the torque of each drive from logs that measured it.

    gains: kp and kd by joint [N m/rad, N m s/rad], of drives whose gains the logs do not say.
    """
    command = _command(logs)
    why_not = {joint: _lacks(logs, joint, command) for joint in logs[0]["tau"].columns}
    notes = [f"{joint} is left out: {why}." for joint, why in why_not.items() if why]
    names = [joint for joint, why in why_not.items() if not why]
    if not names:
        raise BadInput(f"no drive can be learned; {notes[0] if notes else 'tau has no columns'}")
    length = sum(float(log["tau"].time[-1] - log["tau"].time[0]) for log in logs)
    logs, left_out = as_told(logs, command, names, gains or {})
    if left_out:
        notes += [f"{percent(left_out)} of the torque is left out: it was given under other gains, or the drive was off."]
    for joint, constant in read_from_current(logs, names).items():
        notes += [f"Torque of {joint} is its current times {constant:.4g} N m/A, so it lacks what its gears rub."]
    joints, nets, rng = {}, {}, np.random.default_rng(seed)
    for joint in names:
        parts = [_samples(log, joint, command) for log in logs]
        inputs, torque, late = (np.concatenate([p[k] for p in parts]) for k in (0, 1, 3))
        first = np.concatenate([p[2] for p in parts])
        seconds = [
            sum((p[2] == which).sum() / log.rate("tau") for p, log in zip(parts, logs, strict=True)) for which in (True, False)
        ]
        if seconds[0] < TRAIN * LEAST or seconds[1] < (1 - TRAIN) * LEAST:
            raise BadInput(
                f"the logs have {seconds[0]:.2g} s of torque of {joint} in the part to learn from and {seconds[1]:.2g} s in "
                f"that to judge by: {LEAST:g} s are needed, {TRAIN * LEAST:g} s of them in the first part"
            )
        if torque.min() >= 0 and _turns(logs, joint):
            raise BadInput(
                f"tau of {joint} never changes its sign though the joint moves both ways: it is a reading of current, not of "
                "torque; give it a sign and scale it by the torque constant, or use `gapless fit --residual auto` without it"
            )
        nets[joint] = _trained(joint, command.removesuffix("_cmd"), inputs[first], torque[first], rng)
        joints[joint] = _laws(inputs, torque, first, late, nets[joint])
    return Actuator(command, joints, (1 - left_out) * length, length, {}, notes, nets)


def _lacks(logs: Sequence[Log], joint: str, command: str) -> str:
    """Why nothing can be learned of a joint's drive; empty where something can."""
    for signal in ("q", "dq", "tau", command):
        if any(joint not in log[signal].columns for log in logs):
            return f"not all logs have its {signal}"
    torque = np.concatenate([log["tau"].column(joint) for log in logs])
    return "" if np.nanmin(torque, initial=np.inf) < np.nanmax(torque, initial=-np.inf) else "its torque never changes"


def history(log: Log, joint: str, command: str, times: Array, lags: Sequence[float] = DRIVE_LAGS) -> Array:
    """What a drive was told (error of position, or torque) and its velocity, now and before. Shape: (times, 2 * lags)."""
    columns = []
    for lag in lags:
        at = times - lag
        told = log.at(command, at)[:, log[command].columns.index(joint)]
        if command == "q_cmd":
            told = told - log.at("q", at)[:, log["q"].columns.index(joint)]
        columns += [told, log.at("dq", at)[:, log["dq"].columns.index(joint)]]
    return np.column_stack(columns)


def _samples(log: Log, joint: str, command: str) -> tuple[Array, Array, Bools, Array]:
    """History, torque, whether each sample is learned from, and the PD law's two inputs at each delay."""
    clock, torque = log["tau"].time, log["tau"].column(joint)
    inputs, late = (history(log, joint, command, clock, lags) for lags in (DRIVE_LAGS, DELAYS.tolist()))
    seen = np.isfinite(np.column_stack([torque, inputs, late])).all(axis=1)
    since = clock[seen] - clock[0]
    first = since < TRAIN * (clock[-1] - clock[0])  # as `in_model` has it
    return inputs[seen], torque[seen], first, late[seen].reshape(-1, len(DELAYS), 2)


def _command(logs: Sequence[Log]) -> str:
    for log in logs:
        missing = [s for s in ("q", "dq", "tau") if s not in log.signals]
        if missing == ["tau"] and "current" in log:
            raise BadInput(
                f"{log.name}: has the current of motors and no torque: map it to tau with the torque constant as its `scale`, "
                "or use `gapless fit --residual auto`, which needs no torque"
            )
        if missing:
            raise BadInput(
                f"{log.name}: has no {' and no '.join(missing)}, and an actuator network learns measured torque (tau)"
            )
    told = {s for s in ("tau_cmd", "q_cmd") if all(s in log.signals for log in logs)}
    if not told:
        raise BadInput("the logs have neither q_cmd nor tau_cmd in common: a network needs what the drives were told")
    return "tau_cmd" if "tau_cmd" in told else "q_cmd"


def _turns(logs: Sequence[Log], joint: str) -> bool:
    v = np.concatenate([log["dq"].of([joint])[:, 0] for log in logs])
    return bool(np.nanmin(v) < 0 < np.nanmax(v))


def _laws(inputs: Array, torque: Array, first: Bools, late: Array, net: DriveNet) -> Laws:
    def judged(columns: Array) -> tuple[float, float, Array]:
        """Error of regression where it is learned from, and where not; its numbers."""
        wide = np.column_stack([columns, np.ones(len(columns))])
        numbers = np.asarray(np.linalg.lstsq(wide[first], torque[first], rcond=None)[0], float)
        error = torque - wide @ numbers
        return float(np.sqrt((error[first] ** 2).mean())), float(np.sqrt((error[~first] ** 2).mean())), numbers

    by_delay = [judged(late[:, k]) for k in range(len(DELAYS))]
    best = int(np.argmin([seen for seen, *_ in by_delay]))
    gain, damping = by_delay[best][2][:2]
    return Laws(
        pd=by_delay[0][1],
        pd_delayed=by_delay[best][1],
        delay=float(DELAYS[best]),
        linear=judged(inputs)[1],
        network=float(np.sqrt(((net(inputs) - torque)[~first] ** 2).mean())),
        torque=float(np.sqrt((torque[~first] ** 2).mean())),
        outside=net.outside(inputs[~first]),
        gain=float(gain),
        damping=float(-damping),
    )


def _trained(joint: str, drive: str, inputs: Array, torque: Array, rng: np.random.Generator) -> DriveNet:
    """A network after Adam (Kingma and Ba 2015) over random batches."""
    centre, spread = inputs.mean(axis=0), np.maximum(inputs.std(axis=0), 1e-9)
    scale = np.array([torque.mean(), max(float(torque.std()), 1e-9)])
    u, y = (inputs - centre) / spread, (torque - scale[0]) / scale[1]
    sizes = (inputs.shape[1], DRIVE_HIDDEN, DRIVE_HIDDEN, 1)
    layers: list[Array] = []
    for below, above in itertools.pairwise(sizes):
        layers += [rng.normal(0, 1 / math.sqrt(below), (below, above)), np.zeros(above)]
    mean, square = [np.zeros_like(w) for w in layers], [np.zeros_like(w) for w in layers]
    for k in range(ROUNDS):
        rows = rng.integers(0, len(u), min(BATCH, len(u)))
        rate = RATE * 0.5 * (1 + math.cos(math.pi * k / ROUNDS))
        for i, slope in enumerate(_slopes(layers, u[rows], y[rows])):
            mean[i], square[i] = 0.9 * mean[i] + 0.1 * slope, 0.999 * square[i] + 0.001 * slope**2
            layers[i] = layers[i] - rate * (mean[i] / (1 - 0.9 ** (k + 1))) / (
                np.sqrt(square[i] / (1 - 0.999 ** (k + 1))) + 1e-8
            )
    units = [np.vstack([layers[i], layers[i + 1]]).T for i in (0, 2, 4)]
    inward, across, (outward,) = (tuple(rounded(unit) for unit in m) for m in units)
    return DriveNet(
        joint=joint,
        drive=drive,
        centre=rounded(centre),
        spread=rounded(spread),
        low=rounded(u.min(axis=0)),
        high=rounded(u.max(axis=0)),
        scale=rounded(scale),
        most=float(np.abs(torque).max()),
        inward=inward,
        across=across,
        outward=outward,
    )


def _slopes(layers: list[Array], u: Array, y: Array) -> list[Array]:
    """Of half the mean squared error by each layer's weights."""
    first, second, out = drive_forward(layers, u)
    a_out = (out - y[:, None]) / len(u)
    a_second = a_out @ layers[4].T / (1 + np.abs(second)) ** 2
    a_first = a_second @ layers[2].T / (1 + np.abs(first)) ** 2
    units = first / (1 + np.abs(first)), second / (1 + np.abs(second))
    return [u.T @ a_first, a_first.sum(0), units[0].T @ a_second, a_second.sum(0), units[1].T @ a_out, a_out.sum(0)]
