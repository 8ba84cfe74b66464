"""A drive in a closed chain, alone, feels the links that the chain takes along."""

import numpy as np

from gapless.identify.per_joint.inverse_dynamics import trajectory_of
from gapless.identify.per_joint.kernel import gather, residuals
from gapless.identify.per_joint.problem import problem
from gapless.twin import Twin
from gapless.worlds import StandIn, StandInSpec, build_standin, plan_motion, record

FOUR_BARS = """<mujoco><compiler angle="radian"/><option timestep="0.002" integrator="implicitfast"/><worldbody>
  <body name="crank" pos="0 0 1"><joint name="crank" axis="0 1 0" range="-1 1" damping="0.2" armature="0.01"/>
    <geom type="capsule" fromto="0 0 0 0 0 -0.2" size="0.01" mass="0.3" contype="0" conaffinity="0"/>
    <body name="coupler" pos="0 0 -0.2"><joint name="knee" axis="0 1 0" damping="0.3"/>
      <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.01" mass="2" contype="0" conaffinity="0"/></body></body>
  <body name="rocker" pos="0.3 0 1"><joint name="rocker" axis="0 1 0" damping="0.5"/>
    <geom type="capsule" fromto="0 0 0 0 0 -0.2" size="0.01" mass="0.5" contype="0" conaffinity="0"/></body>
</worldbody><equality><connect body1="coupler" body2="rocker" anchor="0.3 0 0" solref="0.004 1"/></equality>
<actuator><position name="crank" joint="crank" kp="60" kv="3"/></actuator></mujoco>"""


def test_a_joint_alone_in_a_closed_chain_moves_as_in_the_full_model(tmp_path):
    path = tmp_path / "four_bars.xml"
    path.write_text(FOUR_BARS)
    spec = StandInSpec(str(path), tolerance=0, timestep=0.002)
    stand_in = StandIn(spec)
    log = record(stand_in, plan_motion("prbs", build_standin(spec), 6.0, np.random.default_rng(0)), "q")
    twin = Twin.load(str(path))
    felt = trajectory_of(twin, log)
    data = gather([felt], 0, 0.0, True, twin.model.opt.timestep)
    error = np.degrees(residuals(data, problem(twin, "crank", data).base[None])[0])
    moved = np.degrees(np.ptp(felt.q))
    assert np.sqrt((error**2).mean()) < 0.01 * moved
    # a parallelogram: the coupler goes round without turning, the rocker turns as the crank does
    swings = 0.3 * 0.2**2 / 3 + 2 * 0.2**2 + 0.5 * 0.2**2 / 3
    np.testing.assert_allclose(felt.inertia, swings, rtol=0.02)
