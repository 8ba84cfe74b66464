"""Delta action between two robots, and what is learned of a robot that floats: figures of `bench.residual`.

The other robot is the model with stiffness less by 30 %, commands 15 ms late and dry friction of 4 % of the torque limit more
(`../shared/RECIPES.md`, 14); `windup` is one whose friction winds up besides, which the fit lacks.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from gapless.arrays import Array
from gapless.close import shipped
from gapless.identify import fit_admitted
from gapless.learn import Environment, plan_run, task_of, train
from gapless.logs import Log
from gapless.policy import Pilot, load_policy
from gapless.residual import learn, learn_delta
from gapless.robots import torque_limit
from gapless.twin import Friction, Hysteresis, Point, Stated, Twin
from gapless.worlds import Replayer, StandIn, StandInSpec, build_standin, record

HORIZON = 1.0  # s
SEGMENT, SEGMENTS = 3.0, 8  # s of each target, and targets
NEAR_THE_END = 1.0  # s of each episode in which a policy should be there
SCRATCH, TUNING = 150, 60  # iterations


def other(robot: str, gap: bool = True, windup: bool = False, **more: Any) -> StandInSpec:
    """The robot that a policy was not trained on."""
    twin = Twin.load(robot)
    limits = {d.name: torque_limit(twin.model, d.actuator) for d in twin.drives}
    change: dict[str, float | str] = {"gains.kp/*": "x0.7", "latency.action": "+0.015"}
    change |= {f"friction.coulomb/{j}": f"+{0.04 * limit:.6g}" for j, limit in limits.items()}
    if windup:
        change |= {f"hysteresis.torque/{j}": 0.04 * limit for j, limit in limits.items()}
    add = {"hysteresis": {"windup": 0.05}} if windup else {}
    return StandInSpec(robot, 5, tolerance=0.0, change=change if gap else {}, add=add, sensors={"noise_q": 0.0003}, **more)


def walked(spec: StandInSpec, policy: Path, commands: Sequence[Array], seconds: float) -> Log:
    """A policy on a stand-in, asked for one thing after the other."""
    robot, twin = StandIn(spec), build_standin(spec)
    each = round(seconds / twin.control_dt)
    pilots = [Pilot(load_policy(policy), twin, command) for command in commands]
    return record(robot, [p for pilot in pilots for p in [pilot] * each], source="the policy")


def at_horizon(twin: Twin, log: Log, values: Array) -> float:
    """Error of positions a second after the measured state, mean over joints [deg]."""
    result = Replayer(twin, log, HORIZON)(values[None])
    near = np.abs(result.time - HORIZON) <= 0.1 * HORIZON
    return float(np.degrees(np.sqrt(np.nanmean(result.error("q")[0][near] ** 2, axis=0))).mean())


def compared(name: str, spec: StandInSpec, train_log: Log, test: Log) -> tuple[dict[str, float], Any]:
    """Replay error of a test log at one second: model as it is, fitted, with delta action, and with one on top of the fit."""
    twin = Twin.load(spec.robot)
    with mock.patch.object(Hysteresis, "suspected", lambda model, motion: None):
        found = fit_admitted(Twin.load(spec.robot, add=[Friction(full=True)]), [train_log], lambda text: None)
    delta = learn_delta(twin, [train_log])
    print(delta)
    on_fit = learn_delta(found.twin, [train_log], found.values)
    none, fitted = at_horizon(twin, test, twin.space.nominal), at_horizon(found.twin, test, found.values)
    with_it, both = at_horizon(delta.twin, test, delta.values), at_horizon(on_fit.twin, test, on_fit.values)
    figures = {"none": none, "fit": fitted, "delta": with_it, "fit_delta": both, "of_none": with_it / none}
    figures |= {"of_fit": with_it / fitted, "fit_delta_of_fit": both / fitted, "learning_s": delta.seconds}
    return {f"{name}_{k}": v for k, v in figures.items()}, delta


def distance(policy: Path, spec: StandInSpec) -> float:
    """How far a policy's tip is from its target on a stand-in in the last second of each target [m]."""
    twin, act = build_standin(spec), load_policy(policy)
    values = np.array([StandIn(spec).reveal()[name] for name in twin.space.names])
    task = task_of("reach", Twin.load(spec.robot))
    worlds = Environment(twin, task, 128, Point(twin.space, values), np.random.default_rng(7), contract=act.contract)
    seen, every = worlds.reset()["policy"], round(SEGMENT / twin.control_dt)
    late = round(NEAR_THE_END / twin.control_dt)
    away = []
    for k in range(2 * every):
        step = worlds.step(act(seen))
        seen = step.observation["policy"]
        if k % every >= every - late and k % every < every - 1:
            away.append(np.nanmean(step.metrics["distance"]))
    return float(np.mean(away))


def delta() -> dict[str, float]:
    """An arm's policy on another arm, tuned with the correction; a quadruped's on another quadruped; and no gap at all."""
    out: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as made:
        start = Path(made) / "reach"
        train(plan_run("reach", "arm", preset="none", settings={"iterations": SCRATCH}), start)
        targets = task_of("reach", Twin.load("arm")).command(None, np.arange(2 * SEGMENTS), np.random.default_rng(3))  # type: ignore[arg-type]
        for name, spec in (("delta_arm", other("arm")), ("delta_arm_windup", other("arm", windup=True))):
            logs = [walked(spec, start, some, SEGMENT) for some in np.split(targets, 2)]
            figures, learnt = compared(name, spec, *logs)
            out |= figures
            print(out)
            folder, tuned = Path(made) / f"{name}_delta", Path(made) / f"{name}_tuned"
            learnt.save(folder)
            more = {"iterations": TUNING, "every": TUNING // 4}
            train(plan_run("reach", "arm", folder / "belief.json", "none", more), tuned, start=start)
            before, after = distance(start, spec), distance(tuned, spec)
            out |= {f"{name}_distance_before_m": before, f"{name}_distance_after_m": after, f"{name}_tuned": after / before}
            print(out)
        nothing = other("arm", gap=False)
        same = walked(nothing, start, targets[:SEGMENTS], SEGMENT)
        for mode in (False, True):
            learnt = learn_delta(Twin.load("arm"), [same], force=mode)
            size = max((j.size for j in learnt.joints.values() if j.kept), default=0.0)
            out[f"delta_zero_{'force' if mode else 'auto'}_rad"] = size
    return out | walking()


def walking() -> dict[str, float]:
    """The same of a quadruped that walks, whose base floats."""
    policy = Path(shipped("quadruped", "velocity", Stated())["base"])
    spec = other("quadruped", motion_capture=True)
    commands = np.array([[0.5, 0.0, 0.0], [0.3, 0.2, 0.0], [0.0, 0.0, 0.6], [0.6, 0.0, -0.4]])
    logs = [walked(spec, policy, some, 5.0) for some in (commands, commands[::-1] * 0.8)]
    figures, _ = compared("delta_quadruped", spec, *logs)
    return figures


def floating() -> dict[str, float]:
    """A walking quadruped with wind and friction that winds up, which its twin lacks: errors of another walk within 0.5 s."""
    policy = Path(shipped("quadruped", "velocity", Stated())["base"])
    twin = Twin.load("quadruped")
    limits = {d.name: torque_limit(twin.model, d.actuator) for d in twin.drives}
    change: dict[str, float | str] = {f"hysteresis.torque/{j}": 0.04 * limit for j, limit in limits.items()}
    add: dict[str, dict[str, Any]] = {"hysteresis": {"windup": 0.05}, "disturbance": {"wind": True}}
    change["disturbance.wind_x"] = 12.0
    spec = StandInSpec("quadruped", 5, change=change, add=add, sensors={"noise_q": 0.0003}, motion_capture=True)
    commands = np.array([[0.5, 0.0, 0.0], [0.3, 0.2, 0.0], [0.0, 0.0, 0.6], [0.6, 0.0, -0.4]])
    log, test = (walked(spec, policy, some, 5.0) for some in (commands, commands[::-1] * 0.8))
    with mock.patch.object(Hysteresis, "suspected", lambda model, motion: None):
        found = fit_admitted(twin, [log], print)
    more, learnt = learn(found, [log], "auto", print)
    print(learnt, more.warnings)
    out: dict[str, float] = {}
    for name, f in (("physics", found), ("learned", more)):
        result = Replayer(f.twin, test, 0.5)(f.values[None])
        for signal in ("q", "gyro", "base_vel"):
            error = result.error(signal)[0][np.isfinite(result.time)]
            out[f"floating_{signal}_{name}"] = float(np.sqrt(np.nanmean(error**2, axis=0)).mean())
    if learnt is not None and learnt.base is not None:
        out |= {"floating_base_kept": float(learnt.base.kept), "floating_base_gain": learnt.base.gain}
        out |= {"floating_outside": learnt.base.outside, "floating_learning_s": learnt.seconds}
    return out
