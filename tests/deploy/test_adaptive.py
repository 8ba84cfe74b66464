"""The adaptive loop: twice the load at 5 s, against the drive alone; and what it learned stays bounded under noise."""

import mujoco
import numpy as np

from gapless.deploy.adaptive import SHARE, Adaptive
from gapless.deploy.emulated import Emulated
from gapless.deploy.limits import limits_of
from gapless.deploy.safety import Safety
from gapless.robots import load_robot
from gapless.worlds import StandInSpec


def trial(adaptive: bool, noise: float = 0.0) -> tuple[float, float]:
    """RMS error from 3 s after the load on [rad], and the largest share of its box that theta reached."""
    model, sensors = load_robot("arm"), {"noise_q": noise, "noise_dq": 10 * noise} if noise else {}
    limits, robot = limits_of(model), Emulated(StandInSpec("arm", seed=2, sensors=sensors))
    kp, kd = (np.array([getattr(j, g) for j in model.joint_table]) for g in ("kp", "kd"))
    safety, loop = Safety(limits, model, 0.001), Adaptive(limits, kp, kd, 0.001)
    home = robot.twin.home[robot._qpos]
    swing = 0.25 * np.minimum(1.0, np.minimum(limits.high - home, home - limits.low))
    wanted, errors, largest = np.stack([home, 0 * home, kp, kd, 0 * home]), [], 0.0
    for i in range(10_000):
        if i == 5000:
            robot.model.body_mass[:] *= 2
            robot.model.body_inertia[:] *= 2
            mujoco.mj_setConst(robot.model, mujoco.MjData(robot.model))
        reading = robot.readings()
        safety.see(reading["q"], reading["dq"], np.zeros(0), float(reading["time"]), robot.time)
        wanted[0] = home + swing * np.sin(np.pi * i * 0.001 + np.arange(len(home)))
        torque = loop(reading["q"], reading["dq"], wanted[0])
        wanted[4] = torque if adaptive else 0.0
        robot.take(safety.answer(wanted, True, robot.time))
        robot.step()
        errors.append(robot.data.qpos[robot._qpos] - loop.reference)
        largest = max(largest, float((np.abs(loop.theta) / (SHARE * limits.torque[:, None])).max()))
    assert not robot.counts[:6].any()
    return float(np.sqrt(np.mean(np.square(errors[8000:])))), largest


def test_a_load_of_100_percent_leaves_a_third_of_the_fixed_controllers_error_and_noise_nothing_unbounded():
    fixed, _ = trial(adaptive=False)
    error, largest = trial(adaptive=True, noise=0.002)
    assert error < 0.3 * fixed
    assert largest <= 1.0
