"""The stand-in: a robot with secrets that behaves like a robot, and a file that says what they are."""

import dataclasses

import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.robots import Robot
from gapless.twin import Twin
from gapless.worlds import replay
from gapless.worlds.motions import plan
from gapless.worlds.recording import record
from gapless.worlds.standin import Spec, StandIn, build, draw, dump, load

FULL = """
robot = "quadruped"
seed = 3
in_air = true
tolerance = 0.5
timestep = 0.0025
[change]
"friction.viscous/*" = "x1.8"
"latency.action" = 0.018
"friction.coulomb/FL_*" = "+0.1"
[add]
backlash = { joints = "*_calf", width = 0.02 }
[sensors]
noise_q = 0.001
"""


def shown_lifted(spec: Spec) -> list[str]:
    """The changes that can show while the base is held."""
    return [pattern for pattern in spec.change if not pattern.startswith(("contact.", "inertia.payload"))]


def spec_file(tmp_path, text: str):
    path = tmp_path / "secret.toml"
    path.write_text(text)
    return path


def test_a_file_changes_what_it_names_and_draws_the_rest_within_tolerance(tmp_path):
    truth = StandIn(load(spec_file(tmp_path, FULL))).reveal()
    nominal = Twin.load("quadruped", in_air=True).space
    tolerance = dict(zip(nominal.names, zip(nominal.nominal, nominal.tolerance, strict=True), strict=True))
    assert truth["latency.action"] == 0.018
    assert truth["friction.viscous/RL_hip"] == pytest.approx(1.8 * tolerance["friction.viscous/RL_hip"][0])
    assert truth["friction.coulomb/FL_hip"] == pytest.approx(0.1 + tolerance["friction.coulomb/FL_hip"][0])
    assert truth["backlash.width/RR_calf"] == pytest.approx(0.02, abs=0.0005)
    assert truth["sensors.noise_q"] == 0.001
    named = ("latency.action", "friction.viscous", "friction.coulomb/FL", "sensors.noise_q")
    others = [n for n in tolerance if not n.startswith(named)]
    off = np.array([truth[n] - tolerance[n][0] for n in others])
    allowed = np.array([tolerance[n][1] for n in others])
    assert (np.abs(off) <= 0.5 * allowed + 1e-12).all()
    assert (off != 0).mean() > 0.9


def test_the_same_seed_is_the_same_robot_and_another_seed_another():
    a, b, c = (StandIn(Spec("bench", seed=s)).reveal() for s in (1, 1, 2))
    assert a == b != c
    exact = StandIn(Spec("bench", tolerance=0)).reveal()
    assert list(exact.values()) == Twin.load("bench").space.nominal.tolist()


def test_it_runs_at_half_the_twins_time_step_unless_told():
    assert build(Spec("bench")).model.opt.timestep == Twin.load("bench").model.opt.timestep / 2
    assert build(Spec("bench", timestep=0.001)).model.opt.timestep == 0.001


def test_it_follows_the_protocol_and_counts_what_is_spent_on_it():
    robot: Robot = StandIn(Spec("arm"))
    log = record(robot, plan("steps", Twin.load("arm"), 1.0, np.random.default_rng(0)))
    assert isinstance(robot, StandIn)
    assert robot.seconds == pytest.approx(1.0)
    assert log["q"].time.tolist() == pytest.approx((np.arange(51) * robot.period).tolist())
    assert log.joints == robot.joints
    robot.reset()
    assert (robot.episodes, float(robot.read()["time"])) == (2, 0.0)
    robot.stop()
    robot.stop()
    with pytest.raises(BadInput, match="was stopped"):
        robot.write({"q": np.zeros(6)})


def test_the_log_does_not_give_the_secrets_away():
    robot = StandIn(Spec("bench", change={"friction.coulomb/*": 0.3}))
    log = record(robot, plan("steps", Twin.load("bench"), 0.5, np.random.default_rng(0)))
    assert not log.meta
    assert set(log.signals) == {"q", "dq", "tau", "q_cmd"}
    assert robot.named() == {n: v for n, v in robot.reveal().items() if n.startswith("friction.coulomb")}


@pytest.mark.parametrize("command", [{"q": np.full(6, np.nan)}, {"q": np.zeros(5)}, {"tau": np.zeros(6)}, {}])
def test_a_command_it_cannot_take_is_refused(command):
    with pytest.raises(BadInput, match="a command needs 'q' with 6 numbers"):
        StandIn(Spec("arm")).write(command)


@pytest.mark.parametrize("difficulty", ["easy", "normal", "hard"])
@pytest.mark.parametrize("seed", range(5))
def test_a_drawn_stand_in_survives_its_file_and_runs(difficulty, seed, tmp_path):
    spec = draw("quadruped", difficulty, seed, in_air=True)
    assert load(spec_file(tmp_path, dump(spec))) == spec
    assert len(shown_lifted(spec)) == {"easy": 1, "normal": 3, "hard": 5}[difficulty]
    robot = StandIn(spec)
    record(robot, plan("rich", build(spec), 0.5, np.random.default_rng(0)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("seed = 3", "robot is missing"),
        ("robot = 3", "robot: a text was expected, not 3"),
        ('robot = "quadrupet"', "did you mean 'quadruped'"),
        ('robot = "none.xml"', "none.xml"),
        ('robot = "bench"\nsed = 1', "unknown entry of a stand-in 'sed': did you mean 'seed'"),
        ('robot = "bench"\nseed = "a"', "seed: a whole number .* was expected, not a"),
        ('robot = "bench"\nseed = true', "seed: a whole number .* was expected, not True"),
        ('robot = "bench"\n[change]\n"frction.viscous/*" = 1.0', "unknown parameter"),
        ('robot = "bench"\n[change]\n"friction.viscous/*" = "1.8x"', "neither a number, a factor"),
        ('robot = "bench"\n[change]\n"friction.viscous/*" = true', "a finite number was expected, not True"),
        ('robot = "bench"\n[change]\n"latency.action" = 5.0', "outside its bounds"),
        ('robot = "bench"\n[add]\nbacklsh = {}', "unknown mechanism 'backlsh': did you mean 'backlash'"),
        ('robot = "bench"\n[add]\nbacklash = { widt = 1 }', "unknown entry of add.backlash 'widt': did you mean 'width'"),
        ('robot = "bench"\n[add]\nbacklash = 3', "add.backlash: a table was expected, not 3"),
        ('robot = "bench"\nseed = -1', "seed: a whole number from 0 .* was expected, not -1"),
        ('robot = "bench"\ntimestep = nan', "timestep: a finite number was expected, not nan"),
        ('robot = "bench"\ntimestep = -0.001', "timestep: -0.001 is not from 1e-05 to 1"),
        ('robot = "bench"\ntimestep = 0', "timestep: 0 is not from 1e-05 to 1"),
        ('robot = "bench"\ntolerance = -1', "tolerance: -1 is not from 0 to 1000"),
        ('robot = "bench"\ntolerance = nan', "tolerance: a finite number was expected, not nan"),
        (f'robot = "bench"\ntolerance = 1{"0" * 400}', "tolerance: a finite number was expected"),
        ('robot = "bench"\nmotion_capture = true', "needs a free base"),
        ('robot = "bench"\n[add]\nbacklash = { joints = 5 }', "add.backlash.joints: a text was expected, not 5"),
        ('robot = "bench"\n[add]\nbacklash = { width = "a" }', "add.backlash.width: a finite number was expected, not a"),
        ('robot = "bench"\n[add]\ngains = { kp = 5 }', "add.gains.kp: a table was expected, not 5"),
        ('robot = "bench"\n[add]\ngains = { kp = { "*" = -1 } }', "add.gains.kp.\\*: -1 is not from 0 to inf"),
        ('robot = "bench"\n[add]\nlatency = { longest = "x" }', "add.latency.longest: a finite number was expected, not x"),
        ('robot = "bench"\n[add]\nfriction = { full = 1 }', "add.friction.full: true or false was expected, not 1"),
        (
            'robot = "arm"\n[add]\nmotor = { no_load_speed = 0.0 }',
            "no_load_speed: a positive number was expected, not 0",
        ),
        ('robot = "arm"\n[add]\nmotor = { no_load_speed = -5.0 }', "add.motor.no_load_speed: -5 is not from 0 to inf"),
        (
            'robot = "arm"\n[add]\nmotor = { dc = { kt = 0, resistance = 1, voltage = 1 } }',
            "motor.dc.kt: a positive number",
        ),
        ('robot = "arm"\n[add]\nmotor = { dc = { kt = 1 } }', "add.motor.dc: resistance is missing"),
        (
            'robot = "arm"\n[add]\nmotor = { dc = { kt = 1, resistance = 1, voltage = 24, thermal_resistance = 1.0 } }',
            "no robot can be built as it says .*thermal",
        ),
        ('robot = "arm"\n[add]\nflex = { damping = -1.0 }', "add.flex.damping: -1 is not from 0 to inf"),
        ('robot = "bench"\n[sensors]\nnoise = 1', "unknown sensor quantity"),
        ('robot = "bench"\n[sensors]\nnoise_q = "loud"', "noise_q: a finite number was expected, not loud"),
        ("robot = [", "not valid TOML"),
    ],
)
def test_a_faulty_file_is_one_sentence_that_names_it(text, message, tmp_path):
    path = spec_file(tmp_path, text)
    with pytest.raises(BadInput, match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("robot", ["bench", "arm", "quadruped", "biped", "rover"])
@pytest.mark.parametrize("difficulty", ["easy", "normal", "hard"])
def test_every_drawn_stand_in_can_be_built(robot, difficulty):
    for seed in range(6):
        assert StandIn(draw(robot, difficulty, seed)).joints


def test_drawing_needs_no_luck(monkeypatch):
    monkeypatch.setattr("gapless.worlds.standin.REDRAWS", 1)
    for seed in range(6):
        assert len(shown_lifted(draw("biped", "hard", seed))) == 5


@pytest.mark.parametrize("robot", ["quadruped", "biped"])
@pytest.mark.parametrize("difficulty", ["normal", "hard"])
def test_a_lifted_stand_in_is_the_same_robot(robot, difficulty, tmp_path):
    for seed in range(4):
        standing = draw(robot, difficulty, seed)
        assert draw(robot, difficulty, seed, in_air=True) == dataclasses.replace(standing, in_air=True)
        file = load(spec_file(tmp_path, dump(standing)))
        on_feet, lifted = (StandIn(dataclasses.replace(file, in_air=air)) for air in (False, True))
        truth = on_feet.reveal()
        assert lifted.reveal() == {name: truth[name] for name in lifted.reveal()}
        assert {name.partition("/")[0] for name in lifted.named()} >= {name.partition("/")[0] for name in shown_lifted(file)}


def test_what_only_a_standing_robot_has_may_be_named_in_the_file_of_a_lifted_one(tmp_path):
    change = '[change]\n"contact.slope_roll" = 0.05\n"inertia.payload" = 2.0\n"gains.kp/*" = "x0.8"'
    text = f'robot = "quadruped"\nin_air = true\n{change}'
    robot = StandIn(load(spec_file(tmp_path, text)))
    assert {name.partition("/")[0] for name in robot.named()} == {"gains.kp", "inertia.payload"}
    with pytest.raises(BadInput, match="unknown parameter 'contact.slop_roll'"):
        load(spec_file(tmp_path, text.replace("slope", "slop")))


def test_a_payload_on_the_base_does_not_show_while_it_is_lifted():
    commands = plan("steps", Twin.load("quadruped", in_air=True), 0.5, np.random.default_rng(0))
    with_load, without = (
        record(StandIn(Spec("quadruped", in_air=True, change={"inertia.payload": kg})), commands)["q"].values
        for kg in (3.0, 0.0)
    )
    np.testing.assert_array_equal(with_load, without)


def test_a_robot_with_a_fixed_base_cannot_be_lifted():
    with pytest.raises(BadInput, match="only a robot with a floating base can be hung up"):
        draw("arm", "easy", 0, in_air=True)


def test_motion_capture_makes_the_replay_of_a_free_robot_exact(tmp_path):
    text = 'robot = "quadruped"\ntolerance = 0\ntimestep = 0.005\nmotion_capture = true\n[change]\n"latency.observation" = 0.02'
    spec = load(spec_file(tmp_path, text))
    assert load(spec_file(tmp_path, dump(spec))) == spec
    robot = StandIn(spec)
    log = record(robot, plan("rich", build(spec), 2.0, np.random.default_rng(0)))
    assert set(log.signals) == {"q", "dq", "tau", "quat", "gyro", "q_cmd", "base_pos", "base_vel"}
    twin = Twin.load("quadruped")
    result = replay(twin, log, twin.space.values({"latency.observation": 0.02}))
    for signal in ("q", "dq", "quat", "base_pos", "base_vel"):
        assert np.abs(result.error(signal)).max() < 1e-9, signal
    assert np.ptp(log["base_pos"].values[:, 2]) > 0.001


def test_motion_capture_shows_the_base_at_the_instant_of_the_other_readings():
    spec = Spec("quadruped", tolerance=0, motion_capture=True, change={"latency.observation": 0.02})
    robot = StandIn(spec)
    _, command = robot._twin.home, robot._twin.home_command
    before = robot._worlds.qpos[0, :3].copy()
    for _ in range(10):
        robot.write({"q": command})
        np.testing.assert_array_equal(robot.read()["base_pos"], before)  # a period of 0.02 s late
        before = robot._worlds.qpos[0, :3].copy()


def test_a_model_beside_the_file_is_found(tmp_path):
    Twin.load("bench").save(tmp_path / "mine.xml")
    assert StandIn(load(spec_file(tmp_path, 'robot = "mine.xml"'))).joints == Twin.load("bench").joints
