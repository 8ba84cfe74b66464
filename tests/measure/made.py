"""Logs whose truth is known: a smooth command, what a lagging joint makes of it, and stand-ins."""

import numpy as np

from gapless.logs import Log
from gapless.worlds import StandIn, StandInSpec as Spec, plan_motion as plan, record


def smooth(seconds: float, rng: np.random.Generator, period: float = 0.01, joints: int = 2) -> np.ndarray:
    """A command that never repeats itself. Shape: (samples, joints)."""
    t = np.arange(round(seconds / period)) * period
    tones, phase = rng.uniform(0.3, 2.0, (joints, 8)), rng.uniform(0, 2 * np.pi, (joints, 8))
    return np.stack([np.sin(2 * np.pi * np.outer(t, f) + p).sum(axis=1) / 8 for f, p in zip(tones, phase, strict=True)], axis=1)


def lagging(command: np.ndarray, period: float = 0.01, after: float = 0.05) -> np.ndarray:
    """What a first-order joint does with a command."""
    q = np.empty_like(command)
    q[0] = command[0]
    for k in range(1, len(command)):
        q[k] = q[k - 1] + period / after * (command[k - 1] - q[k - 1])
    return q


def log_of(command: np.ndarray, q: np.ndarray, period: float = 0.01, start: float = 0.0, signal: str = "q_cmd", **more) -> Log:
    joints = tuple(f"j{i}" for i in range(command.shape[1]))
    meta = more.pop("meta", None)
    return Log.from_arrays(joints, start + np.arange(len(command)) * period, {"q": q, signal: command} | more, meta=meta)


def recorded(spec: Spec, seconds: float, motion: str = "rich", seed: int = 1) -> tuple[StandIn, Log]:
    robot = StandIn(spec)
    return robot, record(robot, plan(motion, robot._twin, seconds, np.random.default_rng(seed)), robot.signal)
