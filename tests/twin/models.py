"""Small models whose motion has a closed form, and twins of them."""

import mujoco
import numpy as np

from gapless.twin import Twin
from gapless.worlds import Worlds

INERTIA = 0.02  # kg m2


def wheel(actuator: str = '<motor name="axle" joint="axle"/>', joint: str = "", timestep: float = 0.0005) -> mujoco.MjSpec:
    """A flywheel on one hinge, no gravity: I dv/dt = torque."""
    return mujoco.MjSpec.from_string(f"""
    <mujoco>
      <option timestep="{timestep}" gravity="0 0 0" integrator="implicitfast"><flag contact="disable"/></option>
      <worldbody>
        <body name="wheel">
          <joint name="axle" axis="0 0 1" {joint}/>
          <inertial pos="0 0 0" mass="1" diaginertia="{INERTIA} {INERTIA} {INERTIA}"/>
        </body>
      </worldbody>
      <actuator>{actuator}</actuator>
    </mujoco>""")


def pendulum(actuator: str = '<motor name="pivot" joint="pivot"/>', timestep: float = 0.0005) -> mujoco.MjSpec:
    """A point mass of 1 kg on a 0.5 m arm; 0 hangs down."""
    return mujoco.MjSpec.from_string(f"""
    <mujoco>
      <option timestep="{timestep}" integrator="implicitfast"><flag contact="disable"/></option>
      <worldbody>
        <body name="arm">
          <joint name="pivot" axis="0 1 0"/>
          <inertial pos="0 0 -0.5" mass="1" diaginertia="1e-6 1e-6 1e-6"/>
        </body>
      </worldbody>
      <actuator>{actuator}</actuator>
    </mujoco>""")


def twin_of(spec: mujoco.MjSpec, *mechanisms, control_dt: float | None = None) -> Twin:
    return Twin.build(spec, mechanisms, control_dt or spec.option.timestep * 4, "test")


def one_world(twin: Twin, given: dict[str, float] | None = None, **kwargs) -> Worlds:
    """One world at given parameter values."""
    from gapless.twin import Point

    return Worlds(twin, 1, Point(twin.space, twin.space.values(given or {})), threads=1, **kwargs)


def run(worlds: Worlds, command, seconds: float) -> np.ndarray:
    """Step under a constant or time-dependent command; the first joint's position and velocity at each period."""
    periods = round(seconds / worlds.twin.control_dt)
    out = np.empty((periods, 2))
    d = worlds.twin.drives[0]
    for k in range(periods):
        u = command(k * worlds.twin.control_dt) if callable(command) else command
        worlds.step(np.full((worlds.n, worlds.engine.model.nu), u))
        assert not worlds.failures
        out[k] = worlds.qpos[0, d.qpos], worlds.qvel[0, d.dof]
    return out
