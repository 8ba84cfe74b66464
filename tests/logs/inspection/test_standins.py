"""Inspection of stand-ins, whose faults and delays are known: quiet where nothing is wrong, and the delay within 2 ms."""

from dataclasses import replace

import numpy as np
import pytest

from gapless.logs import Log
from gapless.logs.inspection import inspect
from gapless.logs.inspection.delay_estimate import delays, together
from gapless.twin import Twin
from gapless.worlds import StandIn, StandInSpec as Spec, build_standin as build, plan_motion as plan, record


def recorded(robot: str, latency: float, seed: int = 2) -> Log:
    still = {"latency.action": latency, "latency.observation": 0.0, "latency.jitter": 0.0, "sensors.skew": 0.0}
    in_air = robot in ("quadruped", "biped")
    spec = Spec(robot, seed=seed, in_air=in_air, change=still, sensors={"noise_q": 0.0003, "noise_dq": 0.01})
    stand_in = StandIn(spec)
    return record(stand_in, plan("rich", build(spec), 20.0, np.random.default_rng(1)), stand_in.signal)


def only(log: Log, joints: list[str]) -> Log:
    """The log of some joints."""
    signals = {
        name: replace(s, columns=tuple(joints), values=s.values[:, [s.columns.index(j) for j in joints]])
        for name, s in log.signals.items()
        if set(joints) <= set(s.columns)
    }
    return replace(log, signals=signals, joints=tuple(joints))


@pytest.mark.parametrize("robot", ["bench", "arm", "quadruped"])
def test_a_healthy_robot_is_found_healthy(robot):
    twin = Twin.load(robot, in_air=robot == "quadruped")
    report = inspect(recorded(robot, 0.005), twin.ranges)
    assert not [f for f in report.findings if f.severity != "info"]


@pytest.mark.parametrize(
    ("robot", "latency"),
    [
        ("bench", 0.0),
        ("bench", 0.007),
        ("bench", 0.031),
        ("arm", 0.007),
        ("arm", 0.031),
        ("quadruped", 0.015),
        ("biped", 0.015),
    ],
)
def test_the_delay_of_a_stand_in_is_found_within_2_ms(robot, latency):
    """Of every joint that is called determined, and of all together; the arm's gripper even meets the floor on its way."""
    log = recorded(robot, latency)
    if robot in ("quadruped", "biped"):  # hung up, one side is enough
        log = only(log, [j for j in log.joints if j.startswith(("FL_", "RL_", "left_"))])
    found = delays(log)
    sure = [d.seconds for d in found.values() if d.determined]
    assert sure
    assert max(abs(s - latency) for s in sure) < 0.002
    pooled = together(found)
    assert pooled is not None
    assert pooled.seconds == pytest.approx(latency, abs=0.002)
