"""A quadruped's contract and readings to test with."""

from typing import Any

import numpy as np

from gapless.policy.contract import Contract
from gapless.policy.parts import Action, Conventions, Joints, Observation, Reference, RobotIdentity, Source, Term, Timing

JOINTS = tuple(f"{leg}_{joint}" for leg in ("FL", "FR", "RL", "RR") for joint in ("hip", "thigh", "calf"))
DEFAULT = (0.1, 0.8, -1.5) * 4
COMMANDS = {"vx": (-0.5, 1.0), "vy": (-0.3, 0.3), "yaw_rate": (-0.8, 0.8)}


def terms(history: int = 1) -> tuple[Term, ...]:
    return (
        Term("gyro", "gyro", 3, 0.25, history=history, unit="rad/s", frame="imu"),
        Term("gravity", "gravity", 3, history=history, frame="imu"),
        Term("command", "command", 3, (2.0, 2.0, 0.25), history=history),
        Term("q", "q", 12, history=history, unit="rad"),
        Term("dq", "dq", 12, 0.05, (-20.0, 20.0), history=history, unit="rad/s"),
        Term("last_action", "last_action", 12, history=history),
    )


def contract(observed: tuple[Term, ...] | None = None, action: Action | None = None, **layout: Any) -> Contract:
    return Contract(
        joints=Joints(
            JOINTS, DEFAULT, (60.0,) * 12, (2.0,) * 12, (23.5,) * 12, (30.0,) * 12, (0.01,) * 12, ((-2.5, 2.5),) * 12
        ),
        action=Action("position", JOINTS, (0.125, 0.25, 0.25) * 4, DEFAULT) if action is None else action,
        observation=Observation(terms() if observed is None else observed, **layout),
        timing=Timing(0.02, 0.004, 5, (0.0, 0.02)),
        source=Source("gapless", "0.1.0", "runs/walk"),
        robot=RobotIdentity("quadruped", "ab" * 32, 15.0),
        conventions=Conventions(imu_frame="imu"),
        commands=COMMANDS,
    )


def residual(observed: tuple[Term, ...] | None = None, **changes: Any) -> Contract:
    """A contract whose action is added to a gait of eight rows, while vx or vy is asked for."""
    table = np.random.default_rng(8).uniform(-0.5, 0.5, (8, 12))
    given = {"frequency": 2.5, "table": tuple(map(tuple, table.tolist())), "commands": ("vx", "vy")} | changes
    return contract(observed, Action("position", JOINTS, 0.25, DEFAULT, reference=Reference(**given)))


def frame(n: int, rng: np.random.Generator) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """Readings, command and last action."""
    quat = rng.normal(size=(n, 4))
    readings = {
        "q": rng.normal(size=(n, 12)),
        "dq": 10 * rng.normal(size=(n, 12)),
        "quat": quat / np.linalg.norm(quat, axis=1, keepdims=True),
        "gyro": rng.normal(size=(n, 3)),
    }
    return readings, rng.normal(size=(n, 3)), rng.normal(size=(n, 12)).astype(np.float32)
