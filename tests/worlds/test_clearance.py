"""Clearance: motions keep a robot off itself, as plain MuJoCo sees it, and leave others as they were."""

import mujoco
import numpy as np

from gapless.robots import load_robot
from gapless.twin import Twin
from gapless.worlds.clearance import cleared

TWO_ARMS = """<mujoco><compiler angle="radian"/><option timestep="0.002" integrator="implicitfast"/><worldbody>
  <body name="left" pos="0 {gap} 1"><joint name="left" axis="1 0 0" range="-1.5 1.5" damping="0.5"/>
    <geom type="capsule" fromto="0 0 0 0 0 -0.4" size="0.03" mass="1"/></body>
  <body name="right" pos="0 -{gap} 1"><joint name="right" axis="1 0 0" range="-1.5 1.5" damping="0.5"/>
    <geom type="capsule" fromto="0 0 0 0 0 -0.4" size="0.03" mass="1"/></body>
</worldbody><actuator><position joint="left" kp="100" kv="5"/><position joint="right" kp="100" kv="5"/></actuator></mujoco>"""


def arms(folder, gap: float) -> Twin:
    """Two pendulums beside each other, so far apart [m] from the middle."""
    path = folder / "arms.xml"
    path.write_text(TWO_ARMS.format(gap=gap))
    return Twin.load(load_robot(str(path)))


def deepest(model: mujoco.MjModel, commands: np.ndarray, control_dt: float) -> float:
    """How deep links are in each other along commands, in plain MuJoCo [m]."""
    data, depth = mujoco.MjData(model), 0.0
    for command in commands:
        data.ctrl[:] = command
        for _ in range(round(control_dt / model.opt.timestep)):
            mujoco.mj_step(model, data)
            depth = max([depth, *(-c.dist for c in data.contact)])
    return depth


def test_limbs_that_would_hit_each_other_keep_clear_and_still_move(tmp_path):
    twin, t = arms(tmp_path, 0.06), np.arange(500) * 0.02
    swing = 0.35 * np.stack([-np.sin(3 * t), np.sin(3 * t)], axis=1)
    moved = cleared(twin, np.zeros(2), swing)
    assert deepest(twin.model, swing, twin.control_dt) > 0.003
    assert deepest(twin.model, moved, twin.control_dt) < 0.004
    assert (np.ptp(moved, axis=0) > 0.15).all()
    assert not moved[0].any()  # from home, without a jump


def test_limbs_with_room_swing_as_they_were_told(tmp_path):
    twin = arms(tmp_path, 0.5)
    swing = 0.35 * np.stack([np.sin(np.linspace(0, 9, 200))] * 2, axis=1)
    assert (cleared(twin, np.zeros(2), swing) == swing).all()
