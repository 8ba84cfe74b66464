"""Loading robots from anywhere, and what is said where a file leaves something open or is broken."""

import os
import sys
import types
from pathlib import Path

import mujoco
import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.robots import load_robot

DATA = Path(os.environ.get("GAPLESS_DATA", Path(__file__).parents[3] / "shared" / "data"))

URDF = """
<robot name="two">
  <link name="base"/>
  <link name="arm">
    <collision><origin xyz="0 0 -0.2"/><geometry><box size="0.1 0.1 0.4"/></geometry></collision>
  </link>
  <link name="tool"/>
  <joint name="shoulder" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/></joint>
  <joint name="flange" type="fixed"><parent link="arm"/><child link="tool"/></joint>
</robot>
"""

MJCF = """
<mujoco>
  <worldbody>
    <body name="cart">
      <joint type="slide" axis="1 0 0"/>
      <geom size="0.1" mass="1"/>
      <body name="pole">
        <joint name="hinge" range="-1 1" axis="0 1 0"/>
        <geom size="0.1" mass="1"/>
        <site name="tip"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="hinge" gear="3" ctrlrange="-2 2"/><motor name="jet" site="tip"/></actuator>
</mujoco>
"""


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def complaint(source) -> str:
    with pytest.raises(BadInput) as caught:
        load_robot(source)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_an_unknown_name_offers_the_nearest_and_a_path():
    message = complaint("quadrupd")
    assert "'quadruped'" in message and "path" in message


def test_a_missing_file_is_named():
    assert "no/such.xml" in complaint("no/such.xml")


def test_broken_xml_names_file_and_line(tmp_path):
    message = complaint(write(tmp_path, "broken.xml", "<mujoco>\n<worldbody>\n<geom sise='1'/>\n</worldbody></mujoco>"))
    assert "broken.xml" in message and "line 3" in message and "sise" in message


def test_a_file_that_is_not_a_model_is_refused(tmp_path):
    assert "notes.txt" in complaint(write(tmp_path, "notes.txt", "hello"))
    assert "empty.urdf" in complaint(write(tmp_path, "empty.urdf", ""))


def test_a_missing_mesh_is_named(tmp_path):
    text = '<mujoco><asset><mesh name="m" file="gone.stl"/></asset></mujoco>'
    assert "gone.stl" in complaint(write(tmp_path, "mesh.xml", text))


def test_an_oversized_file_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "huge.xml"
    with path.open("wb") as file:
        file.truncate(65 * 2**20)  # sparse: no disk is used
    assert "65 MB" in complaint(path)


def test_a_model_that_wants_a_petabyte_is_refused(tmp_path):
    assert "memory" in complaint(write(tmp_path, "greedy.xml", '<mujoco><size memory="1P"/></mujoco>'))


def test_a_urdf_says_what_it_left_open(tmp_path):
    robot = load_robot(write(tmp_path, "two.urdf", URDF))
    text = "\n".join(robot.warnings)
    assert "no link states a mass: masses are inferred" in text
    assert "move and have no mass are given 1 g: base" in text
    assert "a URDF has no gains" in text
    assert "fixed to the world (--floating-base" in text
    assert robot.joints == ("shoulder",)
    assert robot.mass == pytest.approx(1000 * 0.1 * 0.1 * 0.4 + 0.001)  # water, as the warning says


def test_an_mjcf_says_what_it_left_open(tmp_path):
    robot = load_robot(write(tmp_path, "cart.xml", MJCF))
    text = "\n".join(robot.warnings)
    assert "joint without a name: it is called 'cart_joint'" in text
    assert "actuator without a name: it is called 'hinge'" in text
    assert "'jet' drives a site" in text
    assert "'cart_joint' has no limits" in text and "'hinge' has no limits" not in text
    assert "control_dt" in text
    assert robot.joints == ("hinge",)
    assert robot.joint_table[0].torque_limit == pytest.approx(6)  # gear 3, command at most 2
    assert (robot.joint_table[0].low, robot.joint_table[0].high) == pytest.approx((-0.0174533, 0.0174533), rel=1e-5)


TWO = """<mujoco><worldbody><body><joint name="a" range="-10 10"/><geom size=".1"/><body pos="0 0 .3">
<joint name="b" axis="1 0 0" range="-10 10"/><geom size=".1"/></body></body></worldbody><actuator>{}<position joint="b" kp="9"/>
</actuator></mujoco>"""


@pytest.mark.parametrize(
    ("actuator", "sentence", "joints"),
    [
        ('<muscle joint="a" lengthrange="-1 1"/>', "is a muscle: it is commanded in none of position", ("b",)),
        ('<dcmotor joint="a" motorconst=".1" resistance="2"/>', "is a DC motor whose command is no position", ("b",)),
        ('<damper joint="a" kv="3" ctrlrange="0 1"/>', "as a damper has", ("b",)),
        ('<position joint="a" kp="0"/>', "has no gain, so joint 'a' is passive (--kp gives it one)", ("a", "b")),
        ('<velocity joint="b" kv="1"/>', "drives joint 'b', as 'b_2' does: it holds", ("b",)),
    ],
)
def test_an_actuator_that_no_log_commands_is_named(tmp_path, actuator, sentence, joints):
    order = TWO if "velocity" not in actuator else TWO.replace("{}", "").replace("</actuator>", "{}</actuator>")
    robot = load_robot(write(tmp_path, "two.xml", order.format(actuator)))
    assert sentence.replace("b_2", "b") in "\n".join(robot.warnings)
    assert robot.joints == joints


def test_a_name_with_brackets_means_itself(tmp_path):
    robot = load_robot(write(tmp_path, "two.xml", TWO.format("").replace('"b"', '"leg[0]"')), joints=["leg[0]"])
    assert robot.joints == ("leg[0]",)


def test_a_muscle_before_a_servo_does_not_hide_it(tmp_path):
    robot = load_robot(write(tmp_path, "two.xml", TWO.format('<muscle joint="b" lengthrange="-1 1"/>')))
    assert [(d.name, d.signal) for d in robot.drives] == [("b", "q")]


def test_an_area_is_a_gain_of_torque(tmp_path):
    robot = load_robot(write(tmp_path, "two.xml", TWO.format('<cylinder joint="a" area="0.2" ctrlrange="-5 5"/>')))
    assert robot.drives[0].signal == "tau"
    assert robot.joint_table[0].torque_limit == pytest.approx(1)  # 0.2 of 5


def test_a_home_pose_outside_the_ranges_is_said(tmp_path):
    path = write(tmp_path, "two.xml", TWO.format("").replace("</mujoco>", '<keyframe><key qpos="2 0"/></keyframe></mujoco>'))
    assert "outside their ranges, which push them back: a at 2 (-0.175 to 0.175)" in "\n".join(load_robot(path).warnings)


def test_limits_that_are_left_out_on_purpose_are_not_news(tmp_path):
    path = write(tmp_path, "cart.xml", MJCF.replace('type="slide"', 'type="slide" limited="false"'))
    assert "has no limits" not in "\n".join(load_robot(path).warnings)


def test_the_control_period_is_whole_physics_steps(tmp_path):
    path = write(tmp_path, "cart.xml", MJCF.replace("<worldbody>", '<option timestep="0.003"/><worldbody>', 1))
    robot = load_robot(path)
    assert (robot.substeps, robot.control_dt) == (7, pytest.approx(0.021))


@pytest.mark.parametrize("period", ["0", "-1", "1e300"])
def test_an_impossible_control_period_is_refused(tmp_path, period):
    numeric = f'<custom><numeric name="control_dt" data="{period}"/></custom><worldbody>'
    assert "control_dt" in complaint(write(tmp_path, "cart.xml", MJCF.replace("<worldbody>", numeric, 1)))


@pytest.mark.parametrize("timestep", ["0", "-1", "1e300"])
def test_an_impossible_timestep_is_refused(tmp_path, timestep):
    option = f'<option timestep="{timestep}"/><worldbody>'
    assert "cart.xml" in complaint(write(tmp_path, "cart.xml", MJCF.replace("<worldbody>", option, 1)))


def test_a_loose_object_in_the_scene_is_not_the_robot(tmp_path):
    ball = '<body name="ball"><freejoint/><geom name="ball" size="0.1" mass="9"/></body></worldbody>'
    robot = load_robot(write(tmp_path, "cart.xml", MJCF.replace("</worldbody>", ball)))
    assert (robot.base, robot.floating, robot.feet, robot.mass) == ("cart", False, (), pytest.approx(2))


def test_menagerie_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco_menagerie", None)
    assert "pip install mujoco-menagerie" in complaint("menagerie:unitree_go2")


def test_menagerie_robots_load_by_name(monkeypatch, tmp_path):
    class MenagerieError(Exception):
        pass

    class Entry:
        def __init__(self, name: str) -> None:
            self.name = name

        def xml(self) -> Path:
            if self.name == "absent":
                raise MenagerieError("not found under MENAGERIE_ROOT")
            return write(tmp_path, "scene.xml", MJCF)

    package = types.SimpleNamespace(names=lambda: ["cart", "absent"], get=Entry, MenagerieError=MenagerieError)
    monkeypatch.setitem(sys.modules, "mujoco_menagerie", package)
    robot = load_robot("menagerie:cart")
    assert (robot.name, robot.source) == ("cart", "menagerie:cart")
    assert "'cart'" in complaint("menagerie:crat")
    assert "MENAGERIE_ROOT" in complaint("menagerie:absent")


@pytest.mark.skipif(not DATA.is_dir(), reason=f"no recorded data at {DATA}; set GAPLESS_DATA")
@pytest.mark.parametrize(
    ("path", "joints", "mass", "feet"),  # masses as published: SO-101 0.632 kg, Go2 15.2 kg, G1 33.3 kg
    [
        ("so101/model/so101.xml", 6, 0.632, 0),
        ("go2_inair/model/go2_fixed_base.xml", 12, 15.206, 0),
        ("policies/models/go2.xml", 12, 15.206, 4),
        ("policies/models/g1.xml", 29, 33.341, 8),
    ],
)
def test_models_from_elsewhere_load(path, joints, mass, feet):
    robot = load_robot(DATA / path)
    assert len(robot.joints) == joints
    assert robot.mass == pytest.approx(mass, abs=1e-3)
    assert len(robot.feet) == feet
    assert robot.floating == (feet > 0)


FREE = """<mujoco>
  <worldbody>
    {world}
    <body name="trunk" pos="0 0 {height}">
      <freejoint/>
      <geom size="0.1" contype="{contype}" conaffinity="0"/>
      <body name="leg" pos="0 0 -0.1">
        <joint name="hip" range="-1 1"/>
        <geom type="capsule" size="0.02" fromto="0 0 0 0 0 -0.2" contype="{contype}" conaffinity="0"/>
      </body>
    </body>
  </worldbody>
  <actuator><position name="hip" joint="hip" kp="10"/></actuator>
</mujoco>"""


@pytest.mark.parametrize("contype", [1, 4])
def test_a_robot_with_a_free_base_and_no_ground_gets_a_floor_under_its_home_pose_and_says_so(tmp_path, contype):
    path = tmp_path / "hopper.xml"
    path.write_text(FREE.format(world="", height=1.0, contype=contype))
    robot = load_robot(path)
    assert "there is no ground: the robot was put onto a floor" in " ".join(robot.warnings)
    assert robot.home[2] == pytest.approx(0.32)  # from 1 m
    data = mujoco.MjData(robot.model)
    for _ in range(500):
        mujoco.mj_step(robot.model, data)
    assert data.qpos[2] > 0.02  # it may topple, but not fall through
    path.write_text(FREE.format(world='<geom type="plane" size="1 1 1"/>', height=0.32, contype=contype))
    assert "no ground" not in " ".join(load_robot(path).warnings)


def test_a_free_base_that_can_touch_nothing_is_said_to_fall(tmp_path):
    path = tmp_path / "ghost.xml"
    path.write_text(FREE.format(world="", height=1.0, contype=0))
    assert "no geom of the robot can touch a floor: it falls" in " ".join(load_robot(path).warnings)


def test_a_stated_total_mass_is_written_into_the_bodies_without_a_warning_of_mujoco(tmp_path, recwarn):
    path = tmp_path / "robot.xml"
    inner = '<body name="b" pos="0 0 1"><joint name="j"/><geom size=".1 .3" type="capsule" euler="30 0 0"/></body>'
    path.write_text(
        '<mujoco><compiler settotalmass="14"/><worldbody><body name="a">'
        f'<geom size=".1 .2 .3" type="box"/>{inner}</body></worldbody><actuator><position joint="j"/></actuator></mujoco>'
    )
    robot = load_robot(path)
    assert not recwarn.list and any("14 kg" in said for said in robot.warnings)
    plain = mujoco.MjModel.from_xml_path(str(path))
    assert robot.mass == pytest.approx(14.0)
    for field in ("body_mass", "body_inertia", "body_ipos"):
        np.testing.assert_allclose(getattr(robot.model, field), getattr(plain, field), atol=1e-12)


def test_zero_outside_the_ranges_of_an_mjcf_without_keyframes_is_no_home(tmp_path):
    text = TWO.format("").replace('name="a" range="-10 10"', 'name="a" range="30 50"')
    robot = load_robot(write(tmp_path, "two.xml", text))
    assert "zero is outside the limits, so home is in their middle: a" in "\n".join(robot.warnings)
    assert np.degrees(robot.home) == pytest.approx([40, 0])
    keyed = text.replace("</mujoco>", '<keyframe><key qpos="0 0"/></keyframe></mujoco>')
    again = load_robot(write(tmp_path, "keyed.xml", keyed))
    assert again.home == pytest.approx([0, 0])  # what the file says counts
