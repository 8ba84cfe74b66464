"""A robot of two joints whose drives are plain Python: an independent truth about what a drive does with what it is told."""

from collections.abc import Mapping
from typing import Any

import mujoco
import numpy as np

from gapless.logs import Log
from gapless.twin import Armature, Friction, Gains, Latency, Twin

TIMESTEP, PERIOD, SECONDS = 0.0025, 0.005, 12.0
JOINTS = ("left_arm", "right_arm")
KP, KD = np.array([20.0, 35.0]), np.array([1.2, 2.0])
MODEL = """
<mujoco><option timestep="0.0025" integrator="implicitfast"><flag contact="disable"/></option>
  <worldbody>
    <body pos="0 -1 0"><joint name="left_arm" axis="0 1 0" damping="0.05" armature="0.01"/>
      <inertial pos="0 0 -0.3" mass="1" diaginertia="0.01 0.01 0.01"/></body>
    <body pos="0 1 0"><joint name="right_arm" axis="0 1 0" damping="0.05" armature="0.01"/>
      <inertial pos="0 0 -0.3" mass="1" diaginertia="0.01 0.01 0.01"/></body>
  </worldbody>
  <actuator>ACTUATORS</actuator></mujoco>"""
MOTORS = "".join(f'<motor name="{j}" joint="{j}"/>' for j in JOINTS)
SERVOS = "".join(f'<position name="{j}" joint="{j}" kp="{kp}" kv="{kd}"/>' for j, kp, kd in zip(JOINTS, KP, KD, strict=True))


def spec(actuators: str = SERVOS) -> mujoco.MjSpec:
    return mujoco.MjSpec.from_string(MODEL.replace("ACTUATORS", actuators))


def twin(latency: Latency | None = None) -> Twin:
    """The model with servos of the gains above."""
    return Twin.build(spec(), [latency or Latency(), Gains(), Friction(full=True), Armature()], PERIOD, "two arms")


def recorded(
    told: Mapping[str, np.ndarray],
    kp: np.ndarray = KP,
    kd: np.ndarray = KD,
    delay: tuple[float, float] = (0.0, 0.0),
    logged: tuple[str, ...] = (),
    meta: Mapping[str, Any] | None = None,
) -> Log:
    """What the robot does under `q_cmd`, `dq_cmd`, `tau_ff` and factors `kp`, `kd` on its gains, (periods, 2) each.

    The log has the positions and the commands; the factors as gains where `logged` names them.
    """
    model = spec(MOTORS).compile()
    data = mujoco.MjData(model)
    data.qpos[:] = told["q_cmd"][0]
    periods, substeps = len(told["q_cmd"]), round(PERIOD / TIMESTEP)
    late = [round(d / TIMESTEP) for d in delay]
    zero, one = np.zeros((periods, 2)), np.ones((periods, 2))
    q = np.empty((periods, 2))
    for k in range(periods * substeps):
        if k % substeps == 0:
            q[k // substeps] = data.qpos
        rows = [max(k - lag, 0) // substeps for lag in late]
        target, velocity, torque = (told.get(s, zero)[rows, [0, 1]] for s in ("q_cmd", "dq_cmd", "tau_ff"))
        now = k // substeps
        stiff, damp = kp * told.get("kp", one)[now], kd * told.get("kd", one)[now]
        data.ctrl[:] = stiff * (target - data.qpos) + damp * velocity + torque
        model.dof_damping[:] = 0.05 + damp  # as torque it would be a step older than the engine's own
        mujoco.mj_step(model, data)
    signals = {s: told[s] for s in ("q_cmd", "dq_cmd", "tau_ff") if s in told}
    signals |= {s: gain * told[s] for s, gain in (("kp", KP), ("kd", KD)) if s in logged}
    return Log.from_arrays(JOINTS, np.arange(periods) * PERIOD, {"q": q} | signals, meta=meta)


def motion(seed: int = 0) -> np.ndarray:
    """Position targets of both joints, from rest: five sines each. Shape: (periods, 2)."""
    rng, t = np.random.default_rng(seed), np.arange(round(SECONDS / PERIOD)) * PERIOD
    tones = rng.uniform(0.3, 3.0, (2, 5))
    phases = rng.uniform(0, 2 * np.pi, (2, 5))
    waves = np.sin(2 * np.pi * tones[:, :, None] * t + phases[:, :, None])
    ease = np.minimum(t, 1.0) ** 2 * (3 - 2 * np.minimum(t, 1.0))
    return ease[:, None] * (0.25 * waves / np.sqrt(tones[:, :, None])).sum(axis=1).T
