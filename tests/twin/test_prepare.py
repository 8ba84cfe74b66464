"""Anyone's model: gears, odd limits, actuator states, several joints on a body, free objects, URDFs."""

import mujoco
import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.logs import Log
from gapless.robots import imu_of
from gapless.twin import Backlash, Contact, Gains, Latency, Motor, Sensors, Twin
from gapless.worlds import Worlds, replay
from tests.twin.models import INERTIA, one_world, run, twin_of, wheel


@pytest.mark.parametrize("gear", [3.0, -2.0])
def test_a_geared_servo_is_commanded_in_the_joints_angle(gear):
    spec = wheel(f'<position name="axle" joint="axle" kp="2" kv="0.2" gear="{gear}" ctrlrange="-9 9" forcerange="-5 5"/>')
    twin = twin_of(spec, Gains(), Motor())
    assert dict(zip(twin.space.names, twin.space.nominal, strict=True))["gains.kp/axle"] == pytest.approx(2 * gear**2)
    assert dict(zip(twin.space.names, twin.space.nominal, strict=True))["motor.limit/axle"] == pytest.approx(5 * abs(gear))
    assert run(one_world(twin), 0.6, 4.0)[-1, 0] == pytest.approx(0.6, abs=1e-4)
    assert "commanded in rad of the joint" in twin.warnings[0]


@pytest.mark.parametrize("drive", ['gear="10"', 'gear="-150" ctrlrange="-1 1"', 'gear="2" ctrlrange="-3 3"'])
def test_a_geared_torque_drive_is_commanded_in_the_joints_torque(drive):
    twin = twin_of(wheel(f'<motor name="axle" joint="axle" {drive}/>'), Gains(), Motor())
    assert run(one_world(twin), 1.0, 0.5)[-1, 1] == pytest.approx(1.0 / INERTIA * 0.5, rel=1e-6)
    t = np.arange(200) * 0.01
    log = Log.from_arrays(("axle",), t, {"q": np.zeros((200, 1)), "tau_cmd": np.ones((200, 1))})
    assert replay(twin, log).replayed["q"][0, 0, 100, 0] == pytest.approx(0.5 / INERTIA, rel=0.01)
    servo = twin_of(wheel(f'<motor name="axle" joint="axle" {drive}/>'), Gains(kp={"*": 20.0}, kd={"*": 1.0}))
    assert run(one_world(servo), 0.7, 4.0)[-1, 0] == pytest.approx(0.7, abs=1e-6)


def test_a_geared_model_moves_as_it_did():
    xml = '<position name="axle" joint="axle" kp="2" kv="0.05" gear="3" armature="0.001" damping="0.01"/>'
    model = wheel(xml).compile()
    data = mujoco.MjData(model)
    data.ctrl[0] = 0.9
    twin = twin_of(wheel(xml), Gains())
    worlds = one_world(twin)
    for _ in range(100):
        mujoco.mj_step(model, data, nstep=twin.substeps)
        worlds.step(np.array([[0.3]]))
        assert worlds.qpos[0, 0] == pytest.approx(data.qpos[0], abs=1e-12)


def test_limits_that_differ_by_direction_stay_as_they_are():
    twin = twin_of(wheel('<position name="axle" joint="axle" kp="2" forcerange="-2 10"/>'), Motor())
    assert twin.compile(twin.space.nominal).actuator_forcerange[0].tolist() == [-2.0, 10.0]
    assert twin.compile(twin.space.values({"motor.limit/axle": 20.0})).actuator_forcerange[0].tolist() == [-4.0, 20.0]
    Twin.build(wheel('<position name="axle" joint="axle" kp="2" forcerange="-10 0"/>'), [Motor()], 0.002)


def test_a_limit_on_the_joint_counts_as_the_drives(tmp_path):
    twin = twin_of(wheel('<position name="axle" joint="axle" kp="2"/>', 'actuatorfrcrange="-7 7"'), Motor())
    model = twin.compile(twin.space.values({"motor.limit/axle": 3.5}))
    assert model.jnt_actfrcrange[0].tolist() == [-3.5, 3.5]
    twin.save(tmp_path / "t.xml", twin.space.values({"motor.limit/axle": 3.5}))
    assert mujoco.MjModel.from_xml_path(str(tmp_path / "t.xml")).jnt_actfrcrange[0].tolist() == [-3.5, 3.5]


def test_stated_gains_keep_the_tighter_of_two_limits():
    twin = twin_of(wheel('<motor name="axle" joint="axle" ctrlrange="-100 100" forcerange="-20 20"/>'), Gains(kp={"*": 5.0}))
    assert twin.model.actuator_forcerange[0].tolist() == [-20.0, 20.0]


@pytest.mark.parametrize("drive", ['position kp="20" kv="1" timeconst="0.1"', 'intvelocity kp="20" actrange="-3 3"'])
def test_a_drive_with_a_state_holds_its_pose_after_a_reset(drive):
    spec = wheel(f'<{drive} name="axle" joint="axle"/>')
    spec.add_key(name="home", qpos=[0.5], act=[0.5], ctrl=[0.5 if "position" in drive else 0.0])
    twin = twin_of(spec, Gains())
    worlds = one_world(twin)
    for _ in range(50):
        worlds.step(worlds.home_command)
        assert worlds.qpos[0, 0] == pytest.approx(0.5, abs=1e-6)
    worlds.reset(qpos=np.array([0.2]), command=np.array([0.2 if "position" in drive else 0.0]), redraw=False)
    worlds.step(np.array([[0.2 if "position" in drive else 0.0]]))
    assert worlds.qpos[0, 0] == pytest.approx(0.2, abs=1e-6)


def test_a_delay_in_the_model_becomes_a_parameter_and_acts_once():
    spec = wheel('<position name="axle" joint="axle" kp="20" kv="1" delay="0.01" nsample="30" interp="linear"/>')
    late = twin_of(spec, Latency())
    assert late.space.nominal[late.space.names.index("latency.action")] == 0.01
    model = spec.compile()
    data = mujoco.MjData(model)
    worlds = one_world(late)
    for k in range(60):
        data.ctrl[0] = 0.3 * np.sin(k)
        mujoco.mj_step(model, data, nstep=late.substeps)
        worlds.step(np.array([[0.3 * np.sin(k)]]))
    assert worlds.qpos[0, 0] == pytest.approx(data.qpos[0], abs=1e-12)


def test_play_behind_a_joint_that_is_not_the_last_of_its_body_is_refused():
    spec = mujoco.MjSpec.from_string("""<mujoco><worldbody><body name="hip"><joint name="yaw" axis="0 0 1"/>
      <joint name="pitch" axis="0 1 0"/><geom size="0.1"/></body></worldbody>
      <actuator><position name="yaw" joint="yaw" kp="5"/><position name="pitch" joint="pitch" kp="5"/></actuator></mujoco>""")
    with pytest.raises(BadInput, match="yaw is not the last joint of its body hip"):
        twin_of(spec, Backlash("yaw"))
    assert twin_of(spec, Backlash("pitch")).model.njnt == 3


def test_a_free_object_is_not_the_robot():
    spec = mujoco.MjSpec.from_string("""<mujoco><worldbody><body name="cube"><freejoint name="cube"/><geom size="0.1"/></body>
      <body name="arm" pos="1 0 0"><joint name="j" axis="0 1 0"/><geom size="0.1"/></body></worldbody>
      <actuator><position name="j" joint="j" kp="5"/></actuator></mujoco>""")
    twin = twin_of(spec, Contact(), Sensors())
    assert imu_of(twin.model) is None
    worlds = Worlds(twin, 1)
    assert set(worlds.readings) == {"q", "dq"}
    with pytest.raises(BadInput, match="fixed base"):
        worlds.push([1, 0, 0])


def test_contacts_by_pairs_have_friction_too(tmp_path):
    spec = mujoco.MjSpec.from_string("""<mujoco><worldbody>
      <geom name="floor" type="plane" size="0 0 1" contype="0" conaffinity="0"/>
      <body name="sled"><freejoint name="root"/><geom name="box" type="box" size="1 1 1" contype="0" conaffinity="0"/></body>
      </worldbody><contact><pair geom1="floor" geom2="box" friction="0.5 0.5 0.01 0.001 0.001"/></contact></mujoco>""")
    twin = twin_of(spec, Contact())
    values = twin.space.values({"contact.friction": 0.25})
    assert twin.compile(values).pair_friction[0, :2].tolist() == [0.25, 0.25]
    twin.save(tmp_path / "t.xml", values)
    assert mujoco.MjModel.from_xml_path(str(tmp_path / "t.xml")).pair_friction[0, 0] == 0.25


URDF = """<robot name="two"><link name="base"/><link name="arm"><inertial><mass value="1"/><origin xyz="0 0 -0.2"/>
<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="shoulder" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>
<limit lower="-2" upper="2" effort="5" velocity="9"/></joint></robot>"""


def test_a_urdf_is_driven_once_gains_are_stated(tmp_path):
    (tmp_path / "two.urdf").write_text(URDF)
    with pytest.raises(BadInput, match="unknown joint 'elbow'"):
        Twin.load(tmp_path / "two.urdf", add=[Gains(kp={"shoulder": 30.0, "elbow": 3.0})])
    twin = Twin.load(tmp_path / "two.urdf", add=[Gains(kp={"*": 30.0}, kd={"*": 2.0})])
    assert twin.joints == ("shoulder",)
    q = run(one_world(twin), 0.5, 5.0)[-1, 0]
    assert 30.0 * (0.5 - q) == pytest.approx(9.81 * 0.2 * np.sin(q), rel=1e-3)
    limit = dict(zip(twin.space.names, twin.space.nominal, strict=True))["motor.limit/shoulder"]
    assert limit == 5.0
