"""The contract of a policy for a task and a robot."""

from importlib import metadata

import numpy as np

from gapless.errors import BadInput
from gapless.learn.task import Task
from gapless.policy import ACTION_KINDS, Action, Contract, Conventions, Joints, Observation, RobotIdentity, Source, Timing
from gapless.robots import Drive, imu_of
from gapless.twin import Motor, Twin


def _most(twin: Twin, d: Drive, torque: float) -> float:
    """The largest command of a velocity or torque drive."""
    if twin.model.actuator_ctrllimited[d.actuator]:
        return float(np.abs(twin.model.actuator_ctrlrange[d.actuator]).max())
    if d.signal == "tau" and np.isfinite(torque):
        return torque
    raise BadInput(
        f"the command of {d.name} has no limit, so actions have no scale: give it a ctrlrange, or gains (--kp, --kd)"
    )


def build_contract(twin: Twin, task: Task) -> Contract:
    """What a runtime must know to run a policy for this task and robot."""
    table = twin.joint_table
    if not table:
        raise BadInput(f"{twin.name} has no driven joints, so there is nothing to learn; state gains with --kp and --kd")
    signals = {d.signal for d in twin.drives}
    if len(signals) > 1:
        raise BadInput(f"{twin.name} mixes drives of {' and '.join(sorted(signals))}; a policy commands one kind")
    signal = signals.pop()
    default = tuple(float(twin.home[d.qpos]) for d in twin.drives)
    if signal == "q":
        scale, offset = (task.episode.action_scale,) * len(table), default
    else:
        limits = [_most(twin, d, j.torque_limit) for d, j in zip(twin.drives, table, strict=True)]
        scale, offset = tuple(limits), (0.0,) * len(table)
    nominal = {p.name: float(p.nominal) for p in twin.space.parameters}
    has_line = any(p.quantity == "motor.no_load_speed" for p in twin.space.parameters)
    in_duty = any(isinstance(m, Motor) and m.dc is not None and m.dc.voltage_control for m in twin.mechanisms)
    imu = imu_of(twin.model)
    return Contract(
        joints=Joints(
            twin.joints,
            default,
            tuple(nominal.get(f"gains.kp/{j.name}", j.kp) for j in table),
            tuple(nominal.get(f"gains.kd/{j.name}", j.kd) for j in table),
            tuple(j.torque_limit if np.isfinite(j.torque_limit) else None for j in table),
            tuple(nominal.get(f"motor.no_load_speed/{j.name}") for j in table) if has_line else None,
            tuple(j.armature for j in table),
            tuple((j.low, j.high) if np.isfinite(j.low + j.high) else None for j in table),
            "duty" if in_duty else "Nm",
        ),
        action=Action(ACTION_KINDS[signal], twin.joints, scale, offset, reference=task.episode.reference),
        observation=Observation(tuple(task.terms(twin))),
        timing=Timing(twin.control_dt, twin.model.opt.timestep, twin.substeps),
        source=Source("gapless", metadata.version("gapless")),
        robot=RobotIdentity(twin.name, mass=twin.mass),
        conventions=Conventions(imu_frame=imu.frame if imu else None),
        normalizer="baked",
        commands=dict(task.commands),
    )
