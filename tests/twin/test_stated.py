"""What a user says besides the file: gains by pattern, numbers, joints and periods, alike for every use of a twin."""

import mujoco
import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.logs import Log
from gapless.twin import Stated, as_given, known_values

VALUES = {
    "latency.action": 0.01,
    "friction.coulomb/*": 0.3,
    "inertia.payload": 1.0,
    "motor.strength/*": 0.8,
    "offset.encoder/*": 0.05,
}


def test_the_first_pattern_that_matches_gives_a_joint_its_gain():
    twin = Stated(kp={"*_hip": 40.0, "*": 20.0}, kd=1.5).twin("quadruped")
    gains = {j.name: (j.kp, j.kd) for j in twin.joint_table}
    assert gains["FL_hip"] == (40.0, 1.5) and gains["FL_calf"] == (20.0, 1.5)


def test_a_pattern_without_a_joint_is_refused():
    with pytest.raises(BadInput, match="unknown joint '.*_wing'"):
        Stated(kp={"*_wing": 40.0}).twin("quadruped")


def test_stated_numbers_are_the_models_from_then_on():
    """The same physics as writing the values into the twin that lacks them."""
    plain, stated = Stated().twin("quadruped"), Stated(values=VALUES).twin("quadruped")
    values = plain.space.nominal.copy()
    for name, value in known_values(plain, list(VALUES.items())).items():
        values[plain.space.names.index(name)] = value
    one, other = plain.compile(values), stated.compile(stated.space.nominal)
    for field in (
        "body_mass",
        "body_inertia",
        "actuator_gainprm",
        "actuator_biasprm",
        "actuator_forcerange",
        "dof_frictionloss",
    ):
        np.testing.assert_allclose(getattr(one, field), getattr(other, field), rtol=1e-6, atol=1e-9, err_msg=field)
    for name, array in plain.fields(values).items():
        if name.startswith("path."):
            np.testing.assert_allclose(stated.fields(stated.space.nominal)[name], array, err_msg=name)


def test_only_the_joints_that_are_chosen_are_worked_on():
    twin = Stated(joints=("FL_*",)).twin("quadruped")
    assert twin.joints == ("FL_hip", "FL_thigh", "FL_calf") and twin.model.nu == 12
    assert not [n for n in twin.space.names if n.endswith("/RR_calf") and n.startswith("gains")]
    assert np.count_nonzero(twin.home_command) > 3  # the others hold their pose
    assert any("held in the home pose" in w for w in twin.warnings)
    with pytest.raises(BadInput, match="unknown joint"):
        Stated(joints=("XX_*",)).twin("quadruped")


def test_a_joint_that_the_log_does_not_know_is_held_but_a_wrong_name_is_not():
    time = np.arange(10) * 0.02
    names = ("FL_hip", "FL_thigh")
    log = Log.from_arrays(names, time, {"q": np.zeros((10, 2)), "q_cmd": np.zeros((10, 2))})
    assert as_given("quadruped", log).joints == names
    wrong = Log.from_arrays(("FL_hip", "knee"), time, {"q": np.zeros((10, 2)), "q_cmd": np.zeros((10, 2))})
    assert len(as_given("quadruped", wrong).joints) == 12  # and what compares them says which name is missing


def test_a_log_of_torques_drives_a_model_of_servos_by_torque():
    zeros = np.zeros((10, 1))
    log = Log.from_arrays(("servo",), np.arange(10) * 0.02, {"q": zeros, "tau_cmd": zeros})
    assert [d.signal for d in as_given("bench", log).drives] == ["tau"]


def test_the_control_period_is_as_stated_or_the_nearest_is_named():
    assert Stated(control_dt=0.01).robot("quadruped").control_dt == pytest.approx(0.01)
    with pytest.raises(BadInput, match="the nearest is"):
        Stated(control_dt=0.0113).robot("quadruped")


def test_a_control_period_that_was_stated_is_not_assumed(tmp_path):
    path = tmp_path / "gripper.xml"
    path.write_text(GRIPPER.format(equality=""))
    said = [Stated(control_dt=period).robot(path).warnings for period in (None, 0.01)]
    assert [any("how often commands come" in sentence for sentence in each) for each in said] == [True, False]


GRIPPER = """<mujoco><compiler angle="radian"/><option gravity="0 0 0"/><worldbody><body name="palm"><geom size="0.02"/>
<body name="left" pos="0.1 0 0"><joint name="left" type="slide" range="0 0.05"/><geom size="0.02" mass="0.1"/></body>
<body name="right" pos="-0.1 0 0"><joint name="right" type="slide" range="0 0.05"/><geom size="0.02" mass="0.1"/></body>
</body></worldbody>
<tendon><fixed name="split"><joint joint="left" coef="0.5"/><joint joint="right" coef="0.5"/></fixed></tendon>
<equality>{equality}</equality>
<actuator><general name="grip" tendon="split" ctrlrange="0 255" gainprm="0.02" biastype="affine" biasprm="0 -100 -10"/>
</actuator>
</mujoco>"""


def test_a_tendon_whose_joints_move_as_one_is_a_drive_in_metres(tmp_path):
    path = tmp_path / "gripper.xml"
    path.write_text(GRIPPER.format(equality='<joint joint1="left" joint2="right"/>'))
    twin = Stated().twin(path)
    assert twin.joints == ("left",)
    assert any("counts of 0.0002 m" in w for w in twin.warnings)
    assert twin.space.nominal[twin.space.names.index("gains.kp/left")] == pytest.approx(100.0)
    data = mujoco.MjData(twin.model)
    data.ctrl[:] = 0.02
    mujoco.mj_step(twin.model, data, 2000)
    assert data.qpos == pytest.approx([0.02, 0.02], abs=1e-3)


def test_a_tendon_whose_joints_move_by_themselves_is_named_as_left_out(tmp_path):
    path = tmp_path / "gripper.xml"
    path.write_text(GRIPPER.format(equality=""))
    twin = Stated().twin(path)
    assert twin.joints == () and any("'grip' drives a tendon" in w for w in twin.warnings)


def test_a_saved_twin_can_be_moved_with_its_meshes(tmp_path):
    (tmp_path / "model/meshes").mkdir(parents=True)
    corners = "v 0 0 0\nv 0.1 0 0\nv 0 0.1 0\nv 0 0 0.1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
    (tmp_path / "model/meshes/part.obj").write_text(corners)
    path = tmp_path / "model/arm.xml"
    path.write_text(
        '<mujoco><compiler meshdir="meshes"/><asset><mesh name="part" file="part.obj"/></asset><worldbody><body name="arm">'
        '<joint name="j"/><geom type="mesh" mesh="part"/></body></worldbody><actuator><position joint="j"/></actuator></mujoco>'
    )
    (tmp_path / "fit").mkdir()
    Stated().twin(path).save(tmp_path / "fit/twin.xml")
    (tmp_path / "fit").rename(tmp_path / "moved")
    (tmp_path / "model").rename(tmp_path / "gone")
    assert mujoco.MjModel.from_xml_path(str(tmp_path / "moved/twin.xml")).nmesh == 1
    assert Stated().twin(tmp_path / "moved/twin.xml").joints == ("j",)
