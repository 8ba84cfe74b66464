"""The same robot in each engine: parity with MuJoCo and closed forms, planted traps, and a policy that holds its pose."""

import json
import re
from xml.etree import ElementTree

import pytest

from gapless.check import cross_check, parity
from gapless.check.engines import load as loading
from gapless.check.engines.canonical import canonical
from gapless.check.engines.cross import CrossCheck, read_otherwise
from gapless.check.engines.engine_world import differences
from gapless.errors import BadInput
from gapless.robots import load_robot
from gapless.twin import Twin
from tests.check.made import engines, still


@pytest.mark.parametrize("engine", engines())
def test_an_engine_moves_the_same_robot_as_mujoco(engine):
    agreements = parity(engine, Twin.load("quadruped"))
    assert {a.test for a in agreements} == {"single-joint step", "sliding block", "drop", "stand still"}
    assert [a for a in agreements if not a.good] == []


@pytest.mark.parametrize("engine", engines())
def test_an_engine_has_the_masses_limits_and_armature_of_the_model(engine):
    robot = load_robot("arm")
    assert loading.build(engine, robot.model, robot.home, robot.control_dt).wrong == ()


def without_inertia(urdf: str, link: str) -> str:
    tree = ElementTree.fromstring(urdf)
    node = next(n for n in tree.iter("link") if n.get("name") == link)
    node.remove(node.find("inertial"))
    return ElementTree.tostring(tree, encoding="unicode")


@pytest.mark.parametrize("engine", [e for e in engines() if e.values == ("pybullet",)])
def test_a_link_without_inertia_is_found(engine, tmp_path):
    from gapless.check.engines.pybullet import PybulletRobot

    robot = load_robot("quadruped")
    model = canonical(robot.model, robot.home)
    planted = PybulletRobot(model, 0.001, tmp_path, without_inertia(model.urdf(), "RL_calf"))
    found = differences(model, "pybullet", planted.read_back())
    assert found[0] == "pybullet gives link RL_calf 1 kg, and the model 0.26 kg"
    path = tmp_path / "frames.urdf"  # as a user gives it: a frame without mass, which MuJoCo welds to its parent
    path.write_text(
        "<robot name='r'><link name='base'><inertial><mass value='2'/><inertia ixx='.1' iyy='.1' izz='.1' ixy='0' ixz='0' "
        "iyz='0'/></inertial></link><link name='arm'><inertial><mass value='1'/><inertia ixx='.1' iyy='.1' izz='.1' ixy='0' "
        "ixz='0' iyz='0'/></inertial></link><link name='camera'/><joint name='j' type='continuous'><parent link='base'/>"
        "<child link='arm'/></joint><joint name='f' type='fixed'><parent link='arm'/><child link='camera'/></joint></robot>"
    )
    (sentence,) = read_otherwise(Twin.load(str(path)))
    assert "camera" in sentence and "gives 1 kg" in sentence


def test_a_policy_stands_in_every_engine_that_is_installed(tmp_path):
    twin = Twin.load("quadruped")
    result = cross_check(still(twin), twin, commands=[(0.0, 0.0, 0.0)], seconds=1.5, with_parity=False)
    assert result.passed and result.verdict().good
    assert all(t.survived == pytest.approx(1.5) and t.error < 0.1 and t.apart < 0.1 for t in result.trials)
    result.save(tmp_path)
    assert CrossCheck.load(tmp_path).json() == json.loads(json.dumps(result.json()))


def test_a_robot_that_falls_is_said_to_fall():
    twin = Twin.load("quadruped")
    weak = twin.space.values({"motor.strength/*": 0.2, "inertia.payload": 20.0})
    result = cross_check(still(twin), twin, ("mujoco",), weak, [(0.0, 0.0, 0.0)], 2.0)
    assert not result.passed and "falls in mujoco" in result.verdict().text


def test_a_delay_acts():
    twin = Twin.load("quadruped")
    late = twin.space.values({"latency.action": 0.03})
    result = cross_check(still(twin), twin, ("mujoco",), late, [(0.0, 0.0, 0.0)], 0.5)
    assert result.passed


def test_engines_that_do_not_exist_or_are_missing_are_refused(monkeypatch):
    twin = Twin.load("quadruped")
    with pytest.raises(BadInput, match=re.escape("unknown engine 'gazebo'")):
        cross_check(still(twin), twin, ("gazebo",))
    monkeypatch.setattr(loading, "find_spec", lambda name: None if name == "pydrake" else object())
    with pytest.raises(BadInput, match=re.escape("drake is not installed: pip install 'gapless[engines]'")):
        cross_check(still(twin), twin, ("drake",))
