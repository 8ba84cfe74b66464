"""Twin: sensible mechanisms on anyone's model, exact when saved, physical for any draw, every parameter alive."""

import os
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from gapless.errors import BadInput
from gapless.robots import BUILT_IN, load_robot
from gapless.twin import (
    DC,
    Backlash,
    Box,
    Contact,
    Disturbance,
    Flex,
    Friction,
    Gains,
    Inertia,
    Latency,
    Motor,
    Offset,
    Point,
    Sensors,
    Twin,
    callback,
    within_tolerance,
)
from gapless.twin.mechanism import Bound, Mechanism
from gapless.twin.mechanisms.inertia import second_moments
from gapless.twin.space import amount
from gapless.worlds import Worlds
from tests.data import DATA, needs_data
from tests.twin.models import one_world

OTHERS = [DATA / f for f in ("so101/model/so101.xml", "go2_inair/model/go2_fixed_base.xml", "policies/models/g1.xml")]


@pytest.mark.parametrize("source", [*BUILT_IN, *(pytest.param(p, marks=needs_data) for p in OTHERS)], ids=str)
def test_at_nominal_values_a_twin_is_the_model_bit_by_bit(source):
    given, twin = load_robot(source).model, Twin.load(source)
    for name, array in twin.fields(twin.space.nominal).items():
        if not name.startswith("path."):
            own = getattr(given.opt if name.startswith("opt.") else given, name.removeprefix("opt."))
            np.testing.assert_allclose(array[0], own, rtol=1e-15, atol=1e-15, err_msg=name)


MODELS = {
    "so101": ("so101/model/so101.xml", 6),
    "go2": ("go2_inair/model/go2_fixed_base.xml", 12),
    "double_pendulum": ("double_pendulum/model/double_pendulum.xml", 2),
    "xl330": ("xl330/model/xl330_bench.xml", 1),
    "go2_free": ("policies/models/go2.xml", 12),
    "g1": ("policies/models/g1.xml", 29),
}


@needs_data
@pytest.mark.parametrize("name", MODELS)
def test_someone_elses_model_becomes_a_twin_without_configuration(name):
    file, joints = MODELS[name]
    twin = Twin.load(DATA / file)
    assert len(twin.joints) == joints
    for quantity in ("friction.coulomb", "friction.viscous", "armature.inertia", "motor.strength", "offset.encoder"):
        assert len(twin.space.match(f"{quantity}/*")) == joints
    assert ("gains.kp/shoulder_pan" in twin.space.names) == (name == "so101")
    assert ("contact.slope_roll" in twin.space.names) == (name in ("go2_free", "g1"))
    worlds = Worlds(twin, 8, within_tolerance(twin.space), np.random.default_rng(0))
    for _ in range(20):
        worlds.step(worlds.home_command)
        assert not worlds.failures
    assert np.isfinite(worlds.qpos).all()


def random_values(twin: Twin, seed: int, narrow: float = 0.3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return Box(twin.space, twin.space.low, twin.space.high).narrow(narrow).sample(1, rng)[0]


def plain_trajectory(path: Path, worlds: Worlds, commands: np.ndarray) -> np.ndarray:
    """What a program that knows only MuJoCo makes of a saved twin."""
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    data.qpos[:] = worlds.home
    held = commands[0] * 0 + worlds.home_command
    for a in range(model.nactuator):
        if model.actuator_history[a, 0]:
            at = int(model.actuator_ctrladr[a])
            times = np.arange(-model.actuator_history[a, 0], 0) * model.opt.timestep
            mujoco.mj_initCtrlHistory(model, data, a, times, np.full(model.actuator_history[a, 0], held[at]))
    out = []
    for command in commands:
        data.ctrl[:] = command
        for _ in range(worlds.twin.substeps):
            mujoco.mj_step(model, data)
        out.append(data.qpos.copy())
    return np.array(out)


@pytest.mark.parametrize(
    ("source", "add"),
    [
        ("bench", []),
        ("arm", []),
        ("quadruped", []),
        ("biped", []),
        ("rover", []),
        ("bench", [Motor(no_load_speed=5.0)]),
        ("bench", [Motor(dc=DC(0.36, 5.8, 12.0))]),
        ("arm", [Backlash("*")]),
        ("quadruped", [Backlash("*_calf"), Flex("*_thigh", stiffness=50.0)]),
        ("quadruped", [Disturbance(wind=True), Contact(step_at=1.0), Inertia(tensor="*")]),
        ("bench", [Friction(full=True)]),
    ],
    ids=lambda x: x if isinstance(x, str) else "+".join(type(m).__name__ for m in x),
)
def test_a_saved_twin_in_plain_mujoco_gives_the_twins_trajectory(source, add, tmp_path):
    twin = Twin.load(source, add=add)
    rng = np.random.default_rng(0)
    values = random_values(twin, 1, 0.05)
    names = twin.space.names
    for i, name in enumerate(names):
        if name.startswith(("sensors.", "latency.", "contact.slope", "offset.imu")):
            values[i] = twin.space.nominal[i]
        # in contact the solver's stopping rule turns the last bit of a sum into 1e-7, so legs get what adds no rounding
        legs = source in ("quadruped", "biped")
        if name == "latency.action":
            values[i] = (2 if legs else 2.4) * twin.model.opt.timestep
        if name.startswith("offset.encoder") and (legs or any(isinstance(m, Motor) and (m.dc or m.no_load_speed) for m in add)):
            values[i] = 0.0  # behind a DC motor the file cannot hold it, and says so
    worlds = Worlds(twin, 1, Point(twin.space, values), threads=1)
    commands = worlds.home_command + 0.1 * rng.standard_normal((50, len(worlds.home_command))).cumsum(axis=0) * 0.3
    ours = []
    for command in commands:
        worlds.step(command[None])
        assert not worlds.failures
        ours.append(worlds.qpos[0].copy())
    twin.save(tmp_path / "twin.xml", values)
    if callback.frictional(twin.model):
        assert "needs a callback" in (tmp_path / "twin.xml").read_text()
        callback.install()
    np.testing.assert_allclose(plain_trajectory(tmp_path / "twin.xml", worlds, commands), ours, atol=1e-9)
    assert list(tmp_path.iterdir()) == [tmp_path / "twin.xml"]


def test_a_saved_file_says_what_it_cannot_hold(tmp_path):
    twin = Twin.load("bench")
    twin.save(tmp_path / "t.xml", twin.space.values({"sensors.noise_q": 0.01, "latency.drop": 0.1, "latency.action": 0.001}))
    text = (tmp_path / "t.xml").read_text()
    assert "no place for it: drop, noise_q" in text
    assert "rounded up to one step" in text


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31))
def test_any_draw_of_a_belief_compiles_to_a_physical_model(seed):
    twin = _QUADRUPED
    model = twin.compile(random_values(twin, seed, 1.0))
    moving = model.body_mass > 0
    assert moving.sum() == 13
    assert (second_moments(model.body_inertia[moving]) >= -1e-12).all()
    for field in ("dof_damping", "dof_frictionloss", "dof_armature", "actuator_gainprm"):
        values = getattr(model, field)
        assert np.isfinite(values).all()
        assert (values >= 0).all()
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_forward(model, data)
    assert np.isfinite(data.qacc).all()
    assert (np.linalg.eigvalsh(_mass_matrix(model, data)) > 0).all()


_QUADRUPED = Twin.load("quadruped", add=[Inertia(tensor="*")])


def _mass_matrix(model, data) -> np.ndarray:
    full = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, full)
    return full


EVERYTHING = (
    Latency(),
    Gains(),
    Motor(no_load_speed=25.0),
    Friction(full=True),
    Inertia(tensor="*"),
    Offset(),
    Backlash("*_calf", width=0.01),
    Flex("*_thigh", stiffness=100.0),
    Contact(step_at=0.3),
    Sensors(accelerometer=True),
    Disturbance(wind=True),
)


def dead_parameters(mechanisms) -> list[str]:
    """Parameters without any effect, by central differences in one batch: half a mismatch up and down, the same commands.

    What is random (noise, jitter, loss) is off but in the two worlds whose parameter it is, where it can only differ from none.
    """
    twin = Twin.load("quadruped", mechanisms=mechanisms, timestep=0.0025)
    space = twin.space
    chance = np.array(
        [
            n.startswith(("sensors.noise", "sensors.drift", "sensors.drop", "latency.jitter", "latency.drop"))
            for n in space.names
        ]
    )
    one_sided = space.low >= space.nominal
    middle = np.where(one_sided & ~chance, 0.5, 0.0)
    up = np.tile(middle, (len(space), 1)) + np.diag(np.where(chance, 1.0, 0.5))
    down = np.tile(middle, (len(space), 1)) - np.diag(np.where(chance, 0.0, 0.5))
    values = space.clip(space.from_scaled(np.concatenate([up, down])))
    signals = ("q", "dq", "tau", "quat", "gyro", "acc")
    worlds = Worlds(twin, len(values), Box(space, space.low, space.high), np.random.default_rng(0), signals=signals)
    worlds.write(values)
    worlds.reset(redraw=False)
    seen = []
    for k in range(55):
        if k == 20:
            worlds.push([1.5, 0.3, 0])
        jump = np.sign(np.sin(0.4 * k + np.arange(12))) * (k > 40)
        worlds.step(worlds.home_command + 0.6 * np.sin(0.25 * k + np.arange(12)) * (k > 5) + 1.5 * jump)
        seen.append(np.concatenate([worlds.qpos, *worlds.readings.values()], axis=1))
    effect = np.abs(np.array(seen)[:, : len(space)] - np.array(seen)[:, len(space) :]).max(axis=(0, 2))
    return [n for n, e in zip(space.names, effect, strict=True) if e < 1e-9]


def test_every_parameter_changes_what_the_robot_does_or_reports():
    assert dead_parameters(EVERYTHING) == []


def test_a_parameter_without_effect_would_be_found():
    @dataclass(frozen=True)
    class Dead(Mechanism):
        def bind(self, model):
            return Bound([amount("dead.nothing", 0.0, 1.0, 0.1, "", -9.0, 9.0)], lambda fields, values: None)

    assert dead_parameters((Gains(), Sensors(accelerometer=True), Latency(), Dead())) == ["dead.nothing"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Twin.load("quadrupet"), "unknown robot 'quadrupet'.*'quadruped'"),
        (lambda: Twin.load("quadruped", control_dt=0.013), "not a whole number of physics steps"),
        (lambda: Twin.load("quadruped", add=[Friction(joints="FL_knee")]), "unknown joint 'FL_knee'"),
        (lambda: Twin.load("quadruped", mechanisms=[Friction(), Friction()]), "named twice"),
        (lambda: Twin.load("bench").accepts(Twin.load("arm").space), "not about bench"),
        (lambda: Worlds(Twin.load("bench"), 4, within_tolerance(Twin.load("arm").space)), "not about bench"),
    ],
)
def test_bad_input_is_one_sentence(make, message):
    with pytest.raises(BadInput, match=message):
        twin = make()
        _ = twin.space


def test_keyframes_keep_their_joints_when_a_mechanism_adds_some():
    twin = Twin.load("quadruped", add=[Backlash("*_calf")])
    plain = load_robot("quadruped").model
    for d in twin.drives:
        assert twin.model.key_qpos[0, d.qpos] == plain.key_qpos[0, plain.joint(d.name).qposadr[0]]


def test_two_mechanisms_of_one_kind_share_the_joints_out():
    twin = Twin.load("quadruped", add=[Backlash("*_thigh", width=0.01), Backlash("*_calf", width=0.02)])
    nominal = dict(zip(twin.space.names, twin.space.nominal, strict=True))
    assert nominal["backlash.width/FL_thigh"] == 0.01
    assert nominal["backlash.width/FL_calf"] == 0.02
    sticky = Twin.load(
        "quadruped", add=[Friction("*_hip", full=True), Friction("*_t*", full=True), Friction("*_calf", full=True)]
    )
    values = sticky.space.values({"friction.stribeck/*": 1.0, "friction.stribeck_speed/*": 0.2})
    marked = sticky.compile(values).jnt_user[1:, -callback.COLUMNS]
    assert marked.tolist() == [1.0] * 12


def test_a_saved_twin_keeps_its_values_as_nominal_ones(tmp_path):
    twin = Twin.load("bench", add=[Friction(full=True)])
    given = {"friction.stribeck/*": 0.1, "friction.coulomb/*": 0.2, "latency.action": 0.02, "gains.kp/*": 12.0}
    twin.save(tmp_path / "t.xml", twin.space.values(given))
    again = Twin.load(tmp_path / "t.xml", add=[Friction(full=True)])
    for pattern, value in given.items():
        at = again.space.names.index(again.space.match(pattern)[0])
        assert again.space.nominal[at] == pytest.approx(value), pattern
    worlds = one_world(again)
    held = worlds.home_command + 0.0
    before = worlds.qpos.copy()
    for _ in range(3):
        worlds.step(held)
    assert np.abs(worlds.qpos - before).max() < 0.2  # a delayed robot is not told to go to zero


def test_saving_to_a_folder_that_is_not_there_leaves_nothing(tmp_path):
    with pytest.raises(OSError):
        Twin.load("bench").save(tmp_path / "none" / "t.xml")
    assert os.listdir(tmp_path) == []


def test_a_field_that_no_mechanism_wrote_before_is_saved_too(tmp_path):
    class Softness(Mechanism):
        def bind(self, model):
            parameter = amount("softness.width", 0.001, 0.001, 0.0, "m", 0.0, 0.1)

            def apply(fields, values):
                fields["geom_solimp"][:, :, 2] = values["softness.width"]

            return Bound([parameter], apply)

    twin = Twin.load("bench", add=[Softness()])
    twin.save(tmp_path / "twin.xml", twin.space.values({"softness.width": 0.02}))
    assert (mujoco.MjModel.from_xml_path(str(tmp_path / "twin.xml")).geom_solimp[:, 2] == 0.02).all()


def test_a_twin_of_some_joints_keeps_what_was_stated_and_says_what_is_held():
    twin = Twin.load("arm").restated({"latency.action": 0.01})
    few = twin.only(["elbow_flex", "gripper"], "for a test")
    assert few.joints == ("elbow_flex", "gripper")
    assert few.space.nominal[few.space.names.index("latency.action")] == 0.01
    assert "for a test" in few.warnings[-1] and "shoulder_pan" in few.warnings[-1]
    assert twin.only(list(twin.joints), "for a test") is twin
