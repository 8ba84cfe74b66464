"""The canonical model against MuJoCo's own reader of URDF, which shares no code with its writer."""

import mujoco
import numpy as np
import pytest

from gapless.check.engines.canonical import canonical
from gapless.errors import BadInput
from gapless.robots import load_robot
from gapless.twin import Twin
from tests.data import DATA, needs_data

ROBOTS = ["quadruped", "arm", "biped", pytest.param(DATA / "policies/models/go2.xml", marks=needs_data)]


def read_back(robot, made, tmp_path):
    for shape in made.shapes:
        if shape.kind == "mesh":
            (tmp_path / shape.file).write_text(shape.obj())
    # as links are told apart by name, none may be welded to its parent
    text = made.urdf().replace("<robot ", '<robot xmlns:m="m" ', 1)
    text = text.replace(">", '><mujoco><compiler fusestatic="false" discardvisual="false"/></mujoco>', 1)
    path = tmp_path / "robot.urdf"
    path.write_text(text)
    spec = mujoco.MjSpec.from_file(str(path))
    if made.floating:
        spec.body(made.links[0].name).add_freejoint()
    return spec.compile()


@pytest.mark.parametrize("source", ROBOTS)
def test_urdf_is_the_same_robot(source, tmp_path):
    robot = load_robot(source)
    made = canonical(robot.model, robot.home, robot.name)
    read = read_back(robot, made, tmp_path)
    moving = robot.model.body_weldid > 0  # what is bolted to the ground is no link
    assert made.mass == pytest.approx(robot.model.body_mass[moving].sum(), rel=1e-9)
    rng = np.random.default_rng(0)
    ours, theirs = mujoco.MjData(robot.model), mujoco.MjData(read)
    for _ in range(3):
        for j in made.joints:
            q = rng.uniform(max(j.low, -2), min(j.high, 2))
            ours.joint(j.name).qpos[0], theirs.joint(j.name).qpos[0] = q, q - j.zero
        if made.floating:
            quat = rng.normal(size=4)
            ours.qpos[:7] = theirs.qpos[:7] = [*rng.normal(size=3), *quat / np.linalg.norm(quat)]
        mujoco.mj_forward(robot.model, ours)
        mujoco.mj_forward(read, theirs)
        dofs = [(int(robot.model.joint(j.name).dofadr[0]), int(read.joint(j.name).dofadr[0])) for j in made.joints]
        mine, other = (list(x) for x in zip(*dofs, strict=True))
        full = [np.zeros((m.nv, m.nv)) for m in (robot.model, read)]
        mujoco.mj_fullM(robot.model, ours, full[0])
        mujoco.mj_fullM(read, theirs, full[1])
        rotors = np.diag([j.armature for j in made.joints])  # a URDF has none
        assert np.allclose(full[0][np.ix_(mine, mine)], full[1][np.ix_(other, other)] + rotors, rtol=1e-5, atol=1e-7)


def test_table_has_what_a_urdf_lacks():
    robot = load_robot("quadruped")
    made = canonical(robot.model, robot.home)
    by_name = {j.name: j for j in made.joints}
    for j in robot.joint_table:
        assert (by_name[j.name].armature, by_name[j.name].friction, by_name[j.name].damping) == (
            j.armature,
            j.friction,
            j.damping,
        )
    assert made.law.joints == robot.joints
    assert np.allclose(made.law.gain, 50) and np.allclose(made.law.bias[1:].T, [-50, -1.5])
    assert np.allclose(made.law.limit[1], [23.7, 23.7, 35.55] * 4)


def test_what_no_urdf_has_is_refused_or_said():
    twin = Twin.load("quadruped")
    assert canonical(twin.model, twin.home).lost == ()
    ball = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><body name='b'><joint type='ball'/><geom size='0.1'/></body></worldbody></mujoco>"
    )
    with pytest.raises(BadInput, match="one hinge or slide"):
        canonical(ball, ball.qpos0)
