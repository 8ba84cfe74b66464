"""URDF: files are found, masses are right, what is impossible is repaired and said, and drives come from the limits."""

import struct
import sys
from pathlib import Path

import mujoco
import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.robots import load_robot

LINK = (
    '<link name="{name}"><inertial><mass value="{mass}"/>'
    '<inertia ixx="{i}" iyy="{i}" izz="{j}" ixy="0" ixz="0" iyz="0"/></inertial>{more}</link>'
)
JOINT = '<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/><axis xyz="0 1 0"/>{more}</joint>'
MESH = '<collision><geometry><mesh filename="{}"/></geometry></collision>'


def link(name: str, mass: float = 1.0, i: float = 0.01, j: float = 0.01, more: str = "") -> str:
    return LINK.format(name=name, mass=mass, i=i, j=j, more=more)


def joint(name: str, parent: str, child: str, kind: str = "revolute", more: str = "") -> str:
    limit = '<limit lower="-1" upper="1" effort="5" velocity="2"/>'
    return JOINT.format(name=name, parent=parent, child=child, kind=kind, more=more or limit)


def urdf(folder: Path, *parts: str, name: str = "robot.urdf") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f'<robot name="r">{"".join(parts)}</robot>')
    return path


def test_links_that_are_inside_each_other_at_home_do_not_collide(tmp_path):
    ball = '<collision><geometry><sphere radius="0.1"/></geometry></collision>'
    parts = [link(name, more=ball) for name in ("a", "b", "c")]
    robot = load_robot(urdf(tmp_path, *parts, joint("one", "a", "b"), joint("two", "b", "c")))
    assert "links that are inside each other in the home pose are taken not to collide: a and b, a and c" in said(robot)
    data = mujoco.MjData(robot.model)
    mujoco.mj_forward(robot.model, data)
    assert data.ncon == 0


def test_a_light_wrist_holds_what_it_carries(tmp_path):
    hand = link("hand", mass=1.0, i=1e-4, j=1e-4).replace("<inertial>", '<inertial><origin xyz="0.1 0 0"/>')
    robot = load_robot(urdf(tmp_path, link("arm"), hand, joint("wrist", "arm", "hand")))
    data = mujoco.MjData(robot.model)
    for _ in range(3000):
        mujoco.mj_step(robot.model, data)
    assert abs(data.qpos[0]) < 0.21  # at zero it is level, and weighs 1 N m, for which the file allows 5


def test_guessed_drives_hold_links_that_hardly_move_but_together(tmp_path):
    upper, lower = link("upper", mass=0.1, i=1e-4, j=1e-4), link("lower", i=1e-4, j=1e-4)
    lower = lower.replace("<inertial>", '<inertial><origin xyz="0 0 -0.3"/>')
    elbow = joint("elbow", "upper", "lower").replace("<parent", '<origin xyz="0 0 -0.05"/><parent')
    robot = load_robot(urdf(tmp_path, link("base"), upper, lower, joint("shoulder", "base", "upper"), elbow))
    data = mujoco.MjData(robot.model)
    data.qvel[:] = 0.01
    for _ in range(1000):
        mujoco.mj_step(robot.model, data)
    assert np.abs(data.qvel).max() < 1e-3


def test_friction_that_eats_the_drive_is_said(tmp_path):
    stuck = '<limit lower="-1" upper="1" effort="5" velocity="2"/><dynamics friction="4"/>'
    robot = load_robot(urdf(tmp_path, link("a"), link("b"), joint("one", "a", "b", more=stuck)))
    assert "dry friction in the file holds joints back by more than 0.2 rad, check <dynamics>: one" in said(robot)


def said(robot) -> str:
    return "\n".join(robot.warnings)


def stl(path: Path) -> None:
    """A tetrahedron as binary STL."""
    corners = np.array([[0, 0, 0], [0.1, 0, 0], [0, 0.1, 0], [0, 0, 0.1]], np.float32)
    faces = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
    body = b"".join(struct.pack("<12fH", 0, 0, 0, *corners[list(face)].ravel(), 0) for face in faces)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(80) + struct.pack("<I", len(faces)) + body)


@pytest.mark.parametrize("where", ["above", "ros", "ament", "stated", "renamed"])
def test_a_package_is_found_as_ros_finds_it_above_the_file_or_where_the_user_says(tmp_path, monkeypatch, where):
    mesh = "package://my_robot/meshes/arm.stl"
    path = urdf(tmp_path / "ws/my_robot/urdf", link("base"), link("arm", more=MESH.format(mesh)), joint("j", "base", "arm"))
    places = {
        "above": "ws/my_robot",
        "ros": "ros/my_robot",
        "ament": "install/share/my_robot",
        "stated": "other/my_robot",
        "renamed": "ws",
    }
    stl(tmp_path / places[where] / "meshes/arm.stl")
    monkeypatch.setenv("ROS_PACKAGE_PATH", f"{tmp_path}/nowhere:{tmp_path}/ros")
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"{tmp_path}/install")
    robot = load_robot(path, packages=[tmp_path / "other"])
    assert robot.model.nmesh == 1 and "not found" not in said(robot)


def test_a_missing_mesh_is_named_and_the_masses_stay(tmp_path):
    robot = load_robot(
        urdf(tmp_path, link("base"), link("arm", 2.5, more=MESH.format("package://x/gone.stl")), joint("j", "base", "arm"))
    )
    assert "touch nothing: gone.stl" in said(robot) and "--package" in said(robot)
    assert robot.mass == pytest.approx(3.5)


def test_a_mesh_that_mujoco_does_not_read_is_converted(tmp_path):
    pytest.importorskip("trimesh")
    corners = ["0 0 0", "0.1 0 0", "0 0.1 0", "0 0 0.1"]
    facets = ["\n".join(f"vertex {corners[i]}" for i in f) for f in ((0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3))]
    text = "solid x\n" + "".join(f"facet normal 0 0 1\nouter loop\n{f}\nendloop\nendfacet\n" for f in facets) + "endsolid x\n"
    (tmp_path / "ascii.stl").write_text(text)
    path = urdf(tmp_path, link("base"), link("arm", more=MESH.format("ascii.stl")), joint("j", "base", "arm"))
    model = load_robot(path).model
    assert (model.nmesh, model.mesh_vertnum[0]) == (1, 4)


def test_links_without_mass_have_none_whatever_they_look_like(tmp_path):
    box = '<collision><geometry><box size="1 1 1"/></geometry></collision>'
    bare = f'<link name="cover">{box}</link>'
    fixed = joint("f", "arm", "cover", "fixed")
    robot = load_robot(urdf(tmp_path, link("base"), link("arm"), bare, joint("j", "base", "arm"), fixed))
    assert robot.mass == pytest.approx(2.0)  # MuJoCo would add a tonne of water
    assert "without a stated mass have none, as URDF means it: cover" in said(robot)


@pytest.mark.parametrize(("i", "j"), [(0.01, 0.05), (-0.01, 0.02), (0.0, 0.0)])
def test_an_impossible_inertia_becomes_the_nearest_possible_one(tmp_path, i, j):
    robot = load_robot(urdf(tmp_path, link("base"), link("arm", 1.0, i, j), joint("j", "base", "arm")))
    inertia = robot.model.body("arm").inertia
    assert (inertia > 0).all() and 2 * inertia.max() <= inertia.sum() * (1 + 1e-9)
    if j > 0:
        assert "no body can have" in said(robot) and "arm" in said(robot)


def test_a_possible_inertia_is_left_alone(tmp_path):
    robot = load_robot(urdf(tmp_path, link("base"), link("arm", 1.0, 0.01, 0.015), joint("j", "base", "arm")))
    assert robot.model.body("arm").inertia == pytest.approx([0.015, 0.01, 0.01])
    assert "no body" not in said(robot)


def test_moving_links_without_mass_get_a_speck(tmp_path):
    robot = load_robot(
        urdf(
            tmp_path, link("base"), '<link name="frame"/>', link("arm"), joint("a", "base", "frame"), joint("b", "frame", "arm")
        )
    )
    assert robot.model.body("frame").mass == pytest.approx(1e-3) and "given 1 g: frame" in said(robot)


def test_the_base_is_fixed_unless_it_is_let_go(tmp_path):
    ball = '<collision><geometry><sphere radius="0.1"/></geometry></collision>'
    path = urdf(tmp_path, link("base", more=ball), link("arm"), joint("j", "base", "arm"))
    assert not load_robot(path).floating and load_robot(path).base == "base"
    loose = load_robot(path, floating=True)
    assert loose.floating and loose.home[2] == pytest.approx(0.1)  # on a floor
    assert "was put onto a floor" in said(loose)


def test_a_fixed_mjcf_can_be_let_go_too(tmp_path):
    path = tmp_path / "arm.xml"
    path.write_text(
        '<mujoco><worldbody><body name="base"><geom size="0.1"/><body name="arm"><joint name="j"/><geom size="0.05"/></body>'
        '</body></worldbody><actuator><position joint="j"/></actuator>'
        '<keyframe><key name="home" qpos="0.5" ctrl="0.5"/></keyframe></mujoco>'
    )
    robot = load_robot(path, floating=True)
    assert robot.floating and robot.home[-1] == 0.5 and robot.home[2] == pytest.approx(0.1)


def test_drives_take_their_torque_from_the_limits_and_hold_the_home_pose(tmp_path):
    limit = '<limit lower="0.5" upper="1.5" effort="5" velocity="2"/>'
    robot = load_robot(urdf(tmp_path, link("base"), link("arm"), joint("j", "base", "arm", more=limit)))
    (drive,) = robot.joint_table
    assert drive.torque_limit == 5 and drive.kp > 0
    assert robot.home == pytest.approx([1.0]) and robot.home_command == pytest.approx([1.0])
    assert "state yours (--kp, --kd)" in said(robot) and "home is in their middle: j" in said(robot)


def test_a_slide_a_wheel_and_a_follower_are_what_they_are(tmp_path):
    control = (
        '<ros2_control><joint name="wheel"><command_interface name="velocity"/></joint>'
        '<joint name="lift"><command_interface name="effort"/></joint></ros2_control>'
    )
    mimic = '<limit lower="-1" upper="1" effort="5" velocity="2"/><mimic joint="arm" multiplier="2" offset="0.1"/>'
    links = [link(name) for name in ("base", "a", "b", "c", "d")]
    joints = (
        joint("wheel", "base", "a", "continuous"),
        joint("lift", "base", "b", "prismatic"),
        joint("arm", "b", "c"),
        joint("finger", "c", "d", more=mimic),
    )
    robot = load_robot(urdf(tmp_path, *links, *joints, control))
    assert {d.name: d.signal for d in robot.drives} == {"wheel": "dq", "lift": "tau", "arm": "q"}
    model = robot.model
    assert model.joint("lift").type[0] == mujoco.mjtJoint.mjJNT_SLIDE and not model.jnt_limited[model.joint("wheel").id]
    assert model.neq == 1 and robot.home[model.joint("finger").qposadr[0]] == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ((), "has no links"),
        ((link("base", "heavy"),), "a finite number was expected"),
        ((link("base"), joint("j", "base", "gone")), "cannot be used by MuJoCo"),
    ],
)
def test_what_is_no_robot_is_refused_in_a_sentence(tmp_path, parts, sentence):
    with pytest.raises(BadInput, match=sentence) as caught:
        load_robot(urdf(tmp_path, *parts))
    assert "robot.urdf" in str(caught.value) and "\n" not in str(caught.value)


def test_xacro_is_asked_for_where_it_is_missing(tmp_path, monkeypatch):
    path = urdf(tmp_path, link("base"), name="robot.urdf.xacro")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BadInput, match="pip install xacro"):
        load_robot(path)


def test_nearly_all_robots_of_example_robot_data_load():
    share = Path(sys.prefix) / "lib" / f"python3.{sys.version_info.minor}/site-packages/cmeel.prefix/share/example-robot-data"
    names = (
        "go1",
        "ur5_robot",
        "talos_left_arm",
        "allegro_right_hand",
        "solo12",
        "human",
    )  # each for another reason
    files = [f for f in sorted(share.rglob("*.urdf")) if f.stem in names]
    if not files:
        pytest.skip("the package example-robot-data is not installed")
    masses = {f.stem: load_robot(f).mass for f in files}
    assert masses["go1"] == pytest.approx(13.1, abs=0.1) and masses["ur5_robot"] == pytest.approx(20.99, abs=0.01)


def test_what_other_programs_read_is_put_right_and_said(tmp_path):
    again = JOINT.format(name="j", kind="revolute", parent="base", child="arm", more="").replace(
        "</joint>",
        '<axis xyz="1 0 0"/><origin xyz="0.1, 0, 0.2" rpy="0 0 1.5 7"/><limit lower="-1" upper="1" effort="5"/></joint>',
    )
    path = urdf(tmp_path, link("base"), link("arm"), again)
    path.write_text(f"\n  <?xml version='1.0'?>{path.read_text()}\n\0")
    robot = load_robot(path)
    body = robot.model.body("arm")
    np.testing.assert_allclose(body.pos, [0.1, 0, 0.2])
    np.testing.assert_allclose(body.quat, [np.cos(0.75), 0, 0, np.sin(0.75)])
    np.testing.assert_allclose(robot.model.joint("j").axis, [0, 1, 0])
    assert "the first counts: <axis> of j" in said(robot) and "the first three count: <origin> of j" in said(robot)


@pytest.mark.parametrize(("vector", "hint"), [("0 0", "three numbers were expected"), ("$(arg x) 0 0", "run xacro first")])
def test_a_vector_that_is_none_is_named(tmp_path, vector, hint):
    more = f'<origin xyz="{vector}"/>'
    with pytest.raises(BadInput, match=rf"<origin xyz='.*'> of joint 'j': {hint}"):
        load_robot(urdf(tmp_path, link("base"), link("arm"), joint("j", "base", "arm", more=more)))


def test_a_link_called_world_may_be_what_a_joint_moves_against(tmp_path):
    parts = '<link name="world"/>', link("arm", mass=2.0), joint("j", "world", "arm", kind="continuous")
    robot = load_robot(urdf(tmp_path, *parts))
    assert robot.joints == ("j",) and robot.mass == pytest.approx(2.0) and "1 g" not in said(robot)
    with pytest.raises(BadInput, match="its base cannot be let go, since link 'arm' moves against the world on a joint"):
        load_robot(urdf(tmp_path, *parts), floating=True)
    with pytest.raises(BadInput, match="no link but the world"):
        load_robot(urdf(tmp_path, '<link name="world"/>'))


def test_a_light_joint_gets_a_drive_that_overcomes_its_friction(tmp_path):
    limit = '<limit lower="-1" upper="1" effort="{}" velocity="2"/><dynamics damping="1" friction="{}"/>'
    for effort, friction, expected in ((30, 1.0, 20.0), (30, 0.1, 20.0), (100, 2.0, 40.0), (12, 2.0, 12.0)):
        more = limit.format(effort, friction)
        robot = load_robot(urdf(tmp_path, link("base"), link("arm", i=1e-4), joint("j", "base", "arm", more=more)))
        assert robot.model.actuator_gainprm[0, 0] == pytest.approx(expected)


def test_a_wrist_that_weighs_next_to_nothing_gets_a_rotor_and_follows(tmp_path):
    parts = [link(name, i=i, j=i) for name, i in (("base", 1.0), ("upper", 0.05), ("lower", 0.02), ("hand", 1e-5))]
    pairs = (("shoulder", "base", "upper"), ("elbow", "upper", "lower"), ("wrist", "lower", "hand"))
    robot = load_robot(urdf(tmp_path, *parts, *(joint(*pair) for pair in pairs)))
    assert "light joints were given rotors, of which a URDF says nothing: wrist" in said(robot)
    model, data = robot.model, mujoco.MjData(robot.model)
    dof = model.joint("wrist").dofadr[0]
    assert model.dof_armature[dof] == pytest.approx(0.1 * 0.02, rel=0.1)
    assert not model.dof_armature[[model.joint(name).dofadr[0] for name in ("shoulder", "elbow")]].any()
    model.dof_frictionloss[dof] = 0.05  # of a small gear, which would hold a drive as weak as the link is light
    data.ctrl[model.actuator("wrist").id] = 0.5
    mujoco.mj_step(model, data, 1000)
    assert data.qpos[model.joint("wrist").qposadr[0]] == pytest.approx(0.5, abs=0.05)
