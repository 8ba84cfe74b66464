"""Audit of a deployment log: observations rebuilt from raw signals, and what the robot's runtime made of them instead."""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from gapless.arrays import Array
from gapless.check import sequence
from gapless.check.finding import FAIL, NETWORK, PASS, SIGNALS, SKIP, WARN, Check
from gapless.check.frames import frame_columns, signals_of
from gapless.check.runtimes import Run, answered, clipped_at, mistakes, replace_run
from gapless.check.walk import walk
from gapless.errors import BadInput
from gapless.logs import Log
from gapless.policy import CLOCKS, Contract, Estimator, Gait, Network, Observer, Term, targets
from gapless.robots import RobotModel

AGREES = 0.15
"""Share of the commands' spread that may be left where a rebuilt policy gives what the log holds; clocks make a few percent."""
EXPLAINS = 0.5
"""A cause must at least halve what is left."""
FAR = 5.0
"""Spreads beyond the outermost value of training at which a column has left it."""
MOST = 1500
"""Periods that are rebuilt."""
STRETCH = 5
"""Periods in which a command is taken to be constant, where it changes in the log."""
BUDGET = 10.0
"""How long mistakes are tried; of the processor's time [s]."""


def audit(
    network: Network,
    contract: Contract,
    log: Log,
    robot: RobotModel | None = None,
    command: Sequence[float] | None = None,
    recorded: tuple[Array, Array] | None = None,
    trained: Array | None = None,
) -> list[Check]:
    """What a log says of the runtime that ran the policy.

    Args:
        network: observations to actions.
        contract: of training.
        log: with q, dq, quat, gyro and q_cmd by joint name.
        robot: its model, for joint orders and limits.
        command: that the robot was given all the time; found from the log unless given.
        recorded: times and observations that the runtime logged, shapes (n,) and (n, width), where it did.
        trained: observations of training, shape (frames, width), for what left them first.
    """
    run, checks = _run(contract, log, robot)
    if run is None:
        return checks
    asked = np.array(command, float) if command is not None else _command(network, contract, run)
    if command is None and _left_over(network, contract, run, rebuild(contract, run, asked)) >= AGREES:
        changing = _commands_by_time(network, contract, run, asked)
        # one that does not make the log agree was fitted to a mistake
        asked = changing if _left_over(network, contract, run, rebuild(contract, run, changing)) < AGREES else asked
    rebuilt = rebuild(contract, run, asked)
    checks += _with_source(sequence.motion(contract, signals_of(contract, rebuilt)), "In the log: ")
    if recorded is not None:
        checks += compare(contract, run, rebuilt, *recorded)
    if not any(c.status == FAIL for c in checks):
        checks += _commands(network, contract, run, rebuilt, asked, robot)
    if trained is None and robot is not None and not any(c.status == FAIL for c in checks):
        try:
            trained = walk(network, contract, robot, _widest(asked), 5.0)[1].observation
        except BadInput:
            trained = None
    return [*checks, *(_left(contract, rebuilt, trained, run.time) if trained is not None else ())]


def _widest(command: Array) -> list[float]:
    """Of the commands of a log the largest."""
    every = np.atleast_2d(command)
    return [float(v) for v in every[int(np.argmax(np.linalg.norm(every, axis=1)))]]


def _with_source(checks: Iterator[Check], where: str) -> Iterator[Check]:
    for c in checks:
        yield replace(c, sentence=where + c.sentence[:1].lower() + c.sentence[1:])


def _run(contract: Contract, log: Log, robot: RobotModel | None) -> tuple[Run | None, list[Check]]:
    needed = {"q", "dq", "q_cmd"} | (
        {"quat"} if any(t.kind in ("gravity", "quat") for t in contract.observation.terms) else set()
    )
    needed |= {"gyro"} if any(t.kind == "gyro" for t in contract.observation.terms) else set()
    if missing := sorted(s for s in needed if s not in log):
        sentence = f"The log has no {', '.join(missing)}, so observations cannot be rebuilt."
        return None, [Check("log", SIGNALS, SKIP, sentence, fix="Record joint states, IMU and commands.")]
    dt, names = contract.timing.control_dt, contract.joints.names
    if dt is None or contract.action.scale is None or contract.action.offset is None or contract.action.kind != "position":
        return None, [Check("log", SIGNALS, SKIP, "The contract does not say period, scale and offset of positions.")]
    for joint in (j for j in names if j not in log["q"].columns or j not in log["q_cmd"].columns):
        raise BadInput(f"{log.name} has no joint {joint!r}, which the policy drives; it has {', '.join(log.joints[:6])} ...")
    ticks = log["q_cmd"].time
    period = float(np.median(np.diff(ticks))) if len(ticks) > 2 else dt
    checks = []
    if period > 1.2 * dt:
        sentence = f"Commands come every {1e3 * period:.1f} ms, and the policy was trained with {1e3 * dt:g} ms."
        checks.append(Check("period", SIGNALS, FAIL, sentence, 1e3 * period, 1e3 * dt, "ms", "Run the policy at its period."))
    else:
        checks.append(
            Check("period", SIGNALS, PASS, f"Commands come every {1e3 * period:.1f} ms.", 1e3 * period, 1e3 * dt, "ms")
        )
    if period < 0.8 * dt:  # a faster loop repeats each target: its first moment is the policy's
        sent = log["q_cmd"].of(names)
        fresh = np.flatnonzero(np.r_[True, np.abs(np.diff(sent, axis=0)).max(axis=1) > 1e-9])
        gaps = np.diff(ticks[fresh])
        if len(gaps) and not 0.8 * dt < np.median(gaps) < 1.2 * dt:
            sentence = (
                f"Targets change every {1e3 * float(np.median(gaps)):.1f} ms, and the policy was trained with {1e3 * dt:g} ms."
            )
            checks[-1] = Check(
                "period", SIGNALS, FAIL, sentence, 1e3 * float(np.median(gaps)), 1e3 * dt, "ms", "Run it at its period."
            )
        ticks = ticks[fresh]
    ticks = ticks[:MOST]
    readings = {s: log.at(s, ticks) for s in ("quat", "gyro") if s in log}
    for s in ("q", "dq"):
        readings[s] = log.at(s, ticks)[:, [log[s].columns.index(j) for j in names]]
    if "base_vel" in log:
        readings["velocity"] = log.at("base_vel", ticks)
    readings = _estimated(contract, log, ticks, robot) | readings
    known = (*readings, "command", "last_action", "gravity", *CLOCKS)
    if hidden := [t.name for t in contract.observation.terms if t.kind not in known]:
        sentence = f"Nothing in the log tells {', '.join(hidden)}, so observations cannot be rebuilt."
        fix = "Name the robot with --robot, from whose legs the velocity is estimated, or record it."
        return None, [*checks, Check("log", SIGNALS, SKIP, sentence, fix=fix)]
    sent = log.at("q_cmd", ticks)[:, [log["q_cmd"].columns.index(j) for j in names]]
    return Run(ticks, readings, sent, answered(contract, sent)), checks


def _estimated(contract: Contract, log: Log, ticks: Array, robot: RobotModel | None) -> dict[str, Array]:
    """What the runtime estimates from the same readings, in one place with training and robot; none without the whole robot."""
    estimated = any(t.kind in ("velocity", "tip") for t in contract.observation.terms)
    if not estimated or robot is None or not set(robot.joints) <= set(log["q"].columns):
        return {}
    whole = {s: log.at(s, ticks)[:, [log[s].columns.index(j) for j in robot.joints]] for s in ("q", "dq")}
    return Estimator(robot, contract)(whole | {s: log.at(s, ticks) for s in ("quat", "gyro") if s in log})


def rebuild(contract: Contract, run: Run, command: Array) -> Array:
    """The observations that a right runtime would have shown. Shape: (periods, width).

    command: one for all periods, shape (commands,), or one each, shape (periods, commands).
    """
    observer, gait = Observer(contract, 1), Gait(contract, 1)
    asked, rows = np.broadcast_to(command, (len(run.time), len(contract.commands))), []
    action: Array = np.zeros((1, run.action.shape[1]))
    for i in range(len(run.time)):
        now = {k: v[i : i + 1] for k, v in run.readings.items()}
        if i:
            gait.advance(asked[i - 1 : i], now)
            action = run.action[i - 1 : i]
        rows.append(observer(now, asked[i : i + 1], action, gait)[0])
    return np.array(rows)


def _left_over(network: Network, contract: Contract, run: Run, observation: Array) -> float:
    """Part of the commands' spread that the policy does not give by these observations."""
    if callable(reset := getattr(network, "reset", None)):
        reset()
    if contract.recurrent is not None:
        action = np.concatenate([np.asarray(network(row[None])) for row in observation])
    else:
        action = np.asarray(network(observation))
    if callable(reset):
        reset()
    sent = targets(contract, action)
    skip = max(t.history + t.lag for t in contract.observation.terms)  # a history that began before the log
    spread = float(np.sqrt(np.mean(np.var(run.sent[skip:], axis=0)))) + 1e-9
    return float(np.sqrt(np.mean((sent - run.sent)[skip:] ** 2))) / spread


def _command(network: Network, contract: Contract, run: Run) -> Array:
    """The constant command that explains a log best, of a grid over what the policy was trained with."""
    if not contract.commands:
        return np.zeros(0)
    part = replace_run(run, slice(0, 300))
    best, least = np.zeros(len(contract.commands)), math.inf
    for _ in range(2):  # one command after the other, twice
        for i, bounds in enumerate(contract.commands.values()):
            low, high = (float(np.min(b)) for b in bounds) if bounds else (-1.0, 1.0)
            for value in np.linspace(low, high, 9).tolist() + [0.0, best[i]]:
                trial = best.copy()
                trial[i] = value
                left = _left_over(network, contract, part, rebuild(contract, part, trial))
                if left < least - 1e-6:
                    best, least = trial, left
    return best


def _commands_by_time(network: Network, contract: Contract, run: Run, start: Array) -> Array:
    """The command of each stretch of a log that explains it best, where it changes. Shape: (periods, commands)."""
    terms = [t for t in contract.observation.terms if t.kind == "command"]
    out = np.tile(start, (len(run.time), 1))
    if contract.recurrent is not None or not terms:
        return out
    rebuilt, stretches = rebuild(contract, run, start), np.arange(len(run.time)) // STRETCH
    for span in (1.0, 0.25, 0.06, 0.06):  # one command after the other, nearer and nearer
        for i, (name, bounds) in enumerate(contract.commands.items()):
            low, high = (float(np.min(b)) for b in bounds) if bounds else (-1.0, 1.0)
            centre = np.full(len(out), (low + high) / 2) if span == 1.0 else out[:, i]
            tried = [np.clip(centre + k * span * (high - low) / 2, low, high) for k in np.linspace(-1, 1, 9)]
            tried.append(np.zeros(len(out)))
            wrong = []
            for values in tried:
                shown = _with_command(contract, rebuilt, terms, name, values)
                sent = targets(contract, np.asarray(network(shown.astype(np.float32))))
                wrong.append(np.bincount(stretches, ((sent - run.sent) ** 2).sum(axis=1)))
            out[:, i] = np.array(tried)[np.argmin(wrong, axis=0)[stretches], np.arange(len(out))]
            rebuilt = _with_command(contract, rebuilt, terms, name, out[:, i])
    return out


def _with_command(contract: Contract, rebuilt: Array, terms: Sequence[Term], name: str, values: Array) -> Array:
    """Observations with another command, in all of their history."""
    shown = rebuilt.copy()
    for term in terms:
        names = term.commands or tuple(contract.commands)
        if name in names:
            scale = np.broadcast_to(np.asarray(term.scale, float), term.dim)[names.index(name)]
            for age in range(term.history):
                shown[:, frame_columns(contract, age)[term.name][names.index(name)]] = scale * values
    return shown


def _commands(
    network: Network, contract: Contract, run: Run, rebuilt: Array, command: Array, robot: RobotModel | None
) -> Iterator[Check]:
    """Whether the policy, shown rebuilt observations, gives the commands of the log; else what the runtime did differently."""
    left = _left_over(network, contract, run, rebuilt)
    if left < AGREES:
        sentence = f"The policy gives the log's commands from its raw signals; {100 * left:.0f} % of their spread is left."
        yield Check("runtime", SIGNALS, PASS, sentence, left, AGREES)
        return
    if (stops := clipped_at(contract, run)) is not None:
        yield stops
        return
    tried: list[tuple[float, str, str]] = []
    part, asked = replace_run(run, slice(0, 400)), command[:400] if command.ndim == 2 else command
    stated, end = _left_over(network, contract, part, rebuild(contract, part, asked)), time.process_time() + BUDGET
    for name, what, other, otherwise in mistakes(contract, part, robot):
        if time.process_time() > end:
            break
        try:
            tried.append((_left_over(network, other, otherwise, rebuild(other, otherwise, asked)), name, what))
        except (BadInput, ValueError):
            continue
    if tried and (best := min(tried))[0] < EXPLAINS * stated:
        sentence = (
            f"The log's commands come out if {best[2]}: {100 * best[0]:.0f} % of their spread is left instead of "
            f"{100 * stated:.0f} %."
        )
        yield Check(best[1], SIGNALS, FAIL, sentence, best[0], AGREES, fix="Correct the runtime, not the policy.")
    else:
        sentence = (
            f"The policy does not give the log's commands from its raw signals; {100 * left:.0f} % of their spread is left."
        )
        fix = "Is it another network, another command (--command), or did the log begin in the middle of a run?"
        yield Check("runtime", NETWORK, FAIL if left > 0.5 else WARN, sentence, left, AGREES, fix=fix)


def compare(contract: Contract, run: Run, rebuilt: Array, times: Array, observation: Array) -> Iterator[Check]:
    """Recorded observations against rebuilt ones, term by term."""
    if observation.ndim != 2 or observation.shape[1] != contract.width:
        sentence = f"The recorded observations have {observation.shape[-1]} columns, and the policy takes {contract.width}."
        yield Check("recorded observation", SIGNALS, FAIL, sentence)
        return
    nearest = np.clip(np.searchsorted(times, run.time - 1e-9), 0, len(times) - 1)
    seen = np.asarray(observation, float)[nearest]
    for term in contract.observation.terms:
        columns = frame_columns(contract)[term.name]
        yield _term(term.name, term.kind, seen[:, columns], rebuilt[:, columns])


def _term(name: str, kind: str, seen: Array, right: Array) -> Check:
    """One term: as it was, late, in another order, negated, in degrees or otherwise scaled."""
    spread = float(right.std(axis=0).mean()) + 1e-6

    def away(a: Array, b: Array) -> float:
        return float(np.sqrt(np.mean((a - b) ** 2))) / spread

    stated = away(seen, right)
    if stated < AGREES:
        return Check(f"term {name}", SIGNALS, PASS, f"{name} is as rebuilt from raw signals.", stated, AGREES)
    for lag in (1, 2, 3, 4, 5):
        if away(seen[lag:], right[:-lag]) < AGREES:
            sentence = f"{name} was shown {lag} periods late."
            return Check(
                "lagged observation", SIGNALS, FAIL, sentence, lag, 0, "periods", "Read sensors right before the policy."
            )
    ratio = float((seen * right).sum() / max((right * right).sum(), 1e-12))
    if abs(ratio) > 1e-6 and away(seen / ratio, right) < AGREES:
        degrees = abs(math.log(abs(ratio) / math.degrees(1.0))) < 0.1 or abs(math.log(abs(ratio) * math.degrees(1.0))) < 0.1
        wrong = "sign" if ratio < 0 else "degrees" if degrees else "observation scale"
        sentence = f"{name} was shown {ratio:.3g} times as large as it should be."
        return Check(wrong, SIGNALS, FAIL, sentence, ratio, 1.0, fix="Correct the runtime's scale, sign or unit.")
    far = np.sqrt(np.mean((seen[:, :, None] - right[:, None]) ** 2, axis=0)) / spread
    index = far.argmin(axis=0)
    if far.min(axis=0).max() < AGREES and len(set(index.tolist())) == len(index):
        sentence = f"The columns of {name} were shown in the order {index.tolist()}."
        wrong = "joint order" if kind in ("q", "dq", "last_action") else "IMU frame"
        return Check(wrong, SIGNALS, FAIL, sentence, stated, AGREES, fix="Map columns by name.")
    signs = np.sign((seen * right).sum(axis=0))
    if away(seen * np.where(signs == 0, 1, signs), right) < AGREES:
        sentence = f"Some columns of {name} were shown negated: {np.flatnonzero(signs < 0).tolist()}."
        return Check("IMU frame" if kind in ("gyro", "gravity") else "sign", SIGNALS, FAIL, sentence, stated, AGREES)
    sentence = f"{name} differs from what raw signals make of it by {100 * stated:.0f} % of its spread."
    return Check(f"term {name}", SIGNALS, FAIL, sentence, stated, AGREES, fix="Compare how the runtime makes this term.")


def _left(contract: Contract, rebuilt: Array, trained: Array, times: Array) -> Iterator[Check]:
    """Which term first left what the policy was trained on, or walked with in its own model."""
    spread = trained.std(axis=0) + 1e-3
    beyond = np.maximum(trained.min(axis=0) - rebuilt, rebuilt - trained.max(axis=0)) / spread
    first: tuple[int, str, int] | None = None
    commands = {t.name for t in contract.observation.terms if t.kind == "command"}  # their ranges are in the contract
    for name, columns in frame_columns(contract).items():
        if name in commands:
            continue
        rows = np.flatnonzero((beyond[:, columns] > FAR).any(axis=1))
        if len(rows) and (first is None or rows[0] < first[0]):
            first = int(rows[0]), name, columns[int(np.argmax(beyond[rows[0], columns]))]
    if first is None:
        yield Check("training range", SIGNALS, PASS, "No term left what the policy knows.", float(beyond.max()), FAR, "spreads")
        return
    row, name, column = first
    sentence = f"{name} was the first to leave what the policy knows, after {times[row] - times[0]:.2f} s."
    fix = "Look at what happened then: a push, a sensor's fault, or a command outside its range."
    yield Check("training range", SIGNALS, WARN, sentence, float(beyond[row, column]), FAR, "spreads", fix)
