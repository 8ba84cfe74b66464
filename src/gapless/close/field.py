"""The robot in the field, as a stand-in: recorded, tried for seconds that count, and scored at length where nobody counts."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from gapless.arrays import Array
from gapless.check import losses, spread, trials_of
from gapless.close.case import WALK, Case
from gapless.close.stages import Stages
from gapless.errors import BadInput
from gapless.files import sha256
from gapless.learn import CourseResult, Environment, run_course, task_of
from gapless.logs import Log, read, write
from gapless.plain import read_json, write_json
from gapless.policy import Pilot, load_policy
from gapless.report import Film
from gapless.robots import base_joint, imu_of
from gapless.twin import Point, Twin, quantities
from gapless.worlds import StandIn, StandInSpec, build_standin, film, motion_periods, plan_motion, record

LOG_SECONDS = 20.0
"""Of rich motion, after which a fit of single joints gains little; of walking, as much as is left."""
TRIAL_SECONDS = 4.0
"""Of one trial: a second to settle, and a kick after two and a half."""
TRIALS = 4
"""Of each policy that is compared."""
BESIDE = 0.8
"""Between robots that are shown side by side [m]."""


def lifted(case: Case) -> bool:
    """Whether the robot hangs while it is recorded."""
    return case.hoist and imu_of(case.twin().model) is not None


def field_twin(spec: StandInSpec) -> tuple[Twin, Array]:
    """What a stand-in really is on its feet, and its parameters. Shape: (parameters,)."""
    standing = dataclasses.replace(spec, in_air=False)
    twin, secrets = build_standin(standing), StandIn(standing).reveal()
    return twin, np.array([secrets[name] for name in twin.space.names])


def recorded(case: Case, stages: Stages, policy: Path | None = None, seconds: float = LOG_SECONDS) -> Log:
    """A log of the robot: rich motion in the air or of an arm; without a hoist, of a policy that walks."""
    spec, in_air = dataclasses.replace(case.secret, in_air=lifted(case)), lifted(case)
    walks = not in_air and imu_of(case.twin().model) is not None
    if walks and policy is None:
        raise BadInput("a robot that is not lifted is recorded while it walks: name its policy")

    def make(folder: Path) -> None:
        robot, twin = StandIn(spec), build_standin(spec)
        if walks:
            assert policy is not None
            walker = load_policy(policy)
            pilot = Pilot(walker, twin, case.command[: len(walker.contract.commands)])
            commands: object = [pilot] * motion_periods(seconds, twin.control_dt)
        else:
            commands = plan_motion("rich", case.twin(in_air), seconds, np.random.default_rng([case.seed, 0x106]))
        write(record(robot, commands, robot.signal, "the robot"), folder / "log.npz")  # type: ignore[arg-type]

    how = f"recording {seconds:g} s of the robot " + ("walking" if walks else "in the air" if in_air else "moving")
    inputs = {"standin": spec, "seconds": seconds, "seed": case.seed, "policy": contents(policy) if walks else ""}
    inputs |= {"command": case.command} if walks else {}
    return stages.run("log", inputs, make, lambda folder: read(folder / "log.npz"), seconds, how)


def tried(case: Case, stages: Stages, name: str, policy: Path, trials: int = TRIALS) -> Array:
    """What trials of a policy on the robot cost its task, 0 to 1 each; all policies get the same commands and kicks.

    Shape: (trials,).
    """

    def make(folder: Path) -> None:
        twin, values = field_twin(case.secret)
        each = trials_of(load_policy(policy), twin, task_of(case.task, twin), seed=case.secret.seed, seconds=TRIAL_SECONDS)
        result = each.run(spread([values], trials), each.commands(trials), each.usual_push)
        write_json(folder / "trials.json", {"losses": losses(result), "fell": result.fell})

    def load(folder: Path) -> Array:
        return np.array(read_json(folder / "trials.json")["losses"], float)

    inputs = {"standin": case.secret, "policy": contents(policy), "trials": trials, "task": case.task}
    return stages.run(name, inputs, make, load, trials * TRIAL_SECONDS, f"trying {name} on the robot, {trials} times")


def scored(
    case: Case,
    policy: Path,
    draws: int = 2,
    seed: int = 1,
    threads: int = 0,
    later: StandInSpec | None = None,
    since: float = 0.0,
) -> CourseResult:
    """A policy at length on the robot, kicked: for judging remedies, not for remedies to look at.

    later: what the robot has become after `since` seconds, with the mechanisms that it had.
    """
    twin, values = field_twin(case.secret)
    rng, changed = np.random.default_rng([seed, 0x5C0]), None if later is None else field_twin(later)[1]
    periods = itertools.count(1)

    def watch(environment: Environment) -> None:
        if next(periods) == round(since / twin.control_dt) and changed is not None:
            environment.worlds.write(changed)

    robots, task = Point(twin.space, values), task_of(case.task, twin)
    return run_course(twin, task, load_policy(policy), robots, rng, draws, threads=threads, watch=watch)


def named(spec: StandInSpec, everything: bool = False) -> dict[str, float]:
    """The secrets of a stand-in that its file names, or all of them, as a fit sees them: a delay is that of the whole loop, and
    strength is part of gains, as no position tells them apart."""
    truth = StandIn(dataclasses.replace(spec, in_air=False))
    every = truth.reveal()
    seen = dict(every) if everything else truth.named()
    for name in dict.fromkeys(n for n in every if quantities.of(n).stands_for):
        others = [other for other in quantities.stood_for(name) if other in every]
        if name.startswith("latency."):  # jitter delays by half of it on average
            late = sum(every[other] for other in others) + every.get("latency.jitter", 0.0) / 2
            if name in seen or any(other in seen for other in others):
                seen[name] = every[name] + late
        elif any(other in seen for other in others) or name in seen:
            seen[name] = every[name] * float(np.prod([every[other] for other in others]))
        for other in others:
            seen.pop(other, None)
    return seen


def changed_causes(spec: StandInSpec) -> set[str]:
    """Causes that a stand-in's file hides: what it changes and adds, and what stands for these in a fit."""
    truth = StandIn(dataclasses.replace(spec, in_air=False))
    names = {*truth.named(), *(n for n in truth.reveal() if n.partition(".")[0] in spec.add and n.partition(".")[0] != "gains")}
    return {quantities.cause(name) or name.partition("/")[0] for name in names | set(named(spec))}


def filmed(case: Case, policies: Mapping[str, Path], seconds: float = 8.0) -> Film | None:
    """The robot under several policies that are asked for the same thing and kicked alike, where it has legs.

    Side by side, by a camera that moves as they are asked to.
    """
    twin, values = field_twin(case.secret)
    seen: dict[str, list[Array]] = {name: [] for name in policies}
    for name, folder in policies.items():

        def watch(environment: Environment, rows: list[Array] = seen[name]) -> None:
            over = len(rows) > 0 and environment.scene.time[0] < len(rows) * environment.twin.control_dt - 1e-6
            rows.append(rows[-1] if over else environment.worlds.qpos[0].copy())  # one that fell stays down

        each = trials_of(load_policy(folder), twin, task_of(case.task, twin), seed=case.seed + 1, seconds=seconds)
        asked = np.array([WALK]) if len(each.task.commands) == len(WALK) else each.commands(1)
        each.run(values[None], asked, each.usual_push, watch)
    moved = {name: np.array(rows) for name, rows in seen.items()}
    q = {name: rows[:, [d.qpos for d in twin.drives]] for name, rows in moved.items()}
    free = base_joint(twin.model)
    first = 0 if free is None else int(twin.model.jnt_qposadr[free])
    time = np.arange(len(next(iter(q.values()))), dtype=np.float64) * twin.control_dt
    asks = WALK[0] if len(task_of(case.task, twin).commands) == len(WALK) else 0.0
    base = {}
    for i, (name, rows) in enumerate(moved.items() if free is not None else ()):
        base[name] = rows[:, first : first + 7].copy()
        base[name][:, :2] += np.stack([-asks * time, np.full(len(time), BESIDE * i)], axis=1)
    return film(twin, time, q, base or None)


def contents(policy: Path | None) -> str:
    """A hash of what a policy does."""
    return "" if policy is None else sha256(policy / "policy.onnx")
