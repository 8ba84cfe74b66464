"""The recipe in a belief's file: the same twin again, or one sentence."""

import json

import pytest

from gapless.errors import BadInput
from gapless.twin import DC, Backlash, Flex, Friction, Gains, Latency, Motor, Point, Table, Twin, recipe
from gapless.twin.belief import save

DRIVES = [Gains(kp={"*": 2.0}, kd={"*": 0.0}), Motor(dc=DC(0.5, 2.0, 12.0, voltage_control=True))]


def written(twin, path):
    save(Point(twin.space, twin.space.nominal), path, recipe.recipe(twin))
    return path


@pytest.mark.parametrize(
    "mechanisms",
    [
        [],
        [Friction(full=True), Backlash(width=0.02)],
        [Friction(full=True), *DRIVES],
        [Flex(joints="servo", stiffness=30.0), Table("arm", (0.0, 0.0, 0.1))],
        [Latency(buses={"can": "ser*"}), Friction(hard=False)],
    ],
    ids=["usual", "backlash", "dc motor", "flex and table", "bus"],
)
def test_the_twin_is_made_again_from_its_recipe(mechanisms, tmp_path):
    twin = Twin.load("bench", add=mechanisms).plus(centre={"servo": 0.7})
    again = recipe.load("bench", written(twin, tmp_path / "belief.json"))
    assert again.mechanisms == twin.mechanisms
    assert again.space == twin.space
    assert again.spec.to_xml() == twin.spec.to_xml()  # with the angle that friction is counted from


def test_a_belief_that_was_found_with_a_finer_time_step_keeps_it_and_never_makes_one_coarser(tmp_path):
    twin = Twin.load("bench")
    for factor, wanted in ((0.5, 0.5), (2.0, 1.0)):
        again = recipe.load("bench", written(twin.at_step(factor * twin.model.opt.timestep), tmp_path / "belief.json"))
        assert again.model.opt.timestep == pytest.approx(wanted * twin.model.opt.timestep)


def test_gains_that_are_given_take_the_place_of_the_recipes(tmp_path):
    twin = Twin.load("bench", add=[Gains(kp={"*": 3.0}, kd={"*": 0.1}), Friction(full=True)])
    twin = recipe.load("bench", written(twin, tmp_path / "belief.json"), [Gains(kp={"*": 5.0})])
    known = dict(zip(twin.space.names, twin.space.nominal, strict=True))
    assert known["gains.kp/servo"] == 5.0
    assert known["gains.kd/servo"] == 0.1
    assert Friction(full=True) in twin.mechanisms


def test_a_model_without_actuators_has_those_of_the_recipe(tmp_path):
    inertia = '<inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/>'
    link = f'<link name="{{}}"><inertial><mass value="1"/>{inertia}</inertial></link>'
    joint = '<joint name="hinge" type="continuous"><parent link="a"/><child link="b"/><axis xyz="0 1 0"/></joint>'
    (tmp_path / "r.urdf").write_text(f'<robot name="r">{link.format("a")}{link.format("b")}{joint}</robot>')
    twin = Twin.load(tmp_path / "r.urdf", add=[Gains(kp={"*": 3.0}, kd={"*": 0.1})])
    again = recipe.load(tmp_path / "r.urdf", written(twin, tmp_path / "belief.json"))
    assert again.joints == twin.joints == ("hinge",)


def test_a_belief_without_a_recipe_is_about_a_usual_twin(tmp_path):
    twin = Twin.load("bench")
    save(Point(twin.space, twin.space.nominal), tmp_path / "belief.json")
    assert recipe.load("bench", tmp_path / "belief.json").mechanisms == twin.mechanisms


@pytest.mark.parametrize(
    "given",
    [
        [],
        {"mechanisms": "all"},
        {"timestep": 0.0},
        {"timestep": "fine"},
        {"mechanisms": [{"kind": "system"}]},
        {"mechanisms": [{"kind": "Friction", "colour": "red"}]},
        {"mechanisms": [{"kind": "Backlash", "width": [[1]]}]},
        {"mechanisms": [{"kind": "Backlash", "width": float("nan")}]},
        {"mechanisms": [{"kind": "Motor", "dc": {"kt": 1.0}}]},
        {"mechanisms": [{"kind": "Friction"}] * 1001},
        {"mechanisms": [{"kind": "Friction", "joints": None}]},
        {"mechanisms": [{"kind": "Backlash", "width": "wide"}]},
        {"mechanisms": [{"kind": "Gains", "kp": 3}]},
        {"mechanisms": [{"kind": "Gains", "quantum": "x"}]},
        {"mechanisms": [{"kind": "Gains", "unit": 10**400}]},
        {"mechanisms": [{"kind": "Motor", "dc": {"kt": 0.0, "resistance": 1.0, "voltage": 12.0}}]},
        {"mechanisms": [{"kind": "Motor", "no_load_speed": "x"}]},
        {"mechanisms": [{"kind": "Table", "link": "arm", "point": [0, 1]}]},
        {"mechanisms": [{"kind": "Table", "link": 3, "point": [0, 1, 2]}]},
        {"mechanisms": [{"kind": "Inertia", "payload": 3}]},
        {"joints": ["left", "right"]},
        {"centre": {"servo": "here"}},
        {"centre": 3},
    ],
)
def test_a_bad_recipe_is_one_sentence(given, tmp_path):
    file = written(Twin.load("bench"), tmp_path / "belief.json")
    file.write_text(json.dumps({**json.loads(file.read_text()), "twin": given}))
    with pytest.raises(BadInput, match="its twin cannot be made"):
        recipe.load("bench", file)


def test_a_belief_about_another_robot_is_refused_though_its_names_would_do(tmp_path):
    quadruped = Twin.load("quadruped")
    save(Point(quadruped.space.select("latency.action"), [0.01]), tmp_path / "belief.json", recipe.recipe(quadruped))
    with pytest.raises(BadInput, match="is about a robot with the joints FL_hip, .* biped has others"):
        recipe.load("biped", tmp_path / "belief.json")


def test_a_twin_that_has_it_all_already_is_not_the_robots_model(tmp_path):
    twin = Twin.load("bench", add=[Backlash(width=0.02)])
    file = written(twin, tmp_path / "belief.json")
    twin.save(tmp_path / "twin.xml")
    with pytest.raises(BadInput, match=r"its twin cannot be made of .*twin.xml"):
        recipe.load(tmp_path / "twin.xml", file)
