"""A fit to a robot that steps by itself, with nothing aligned: what it shows, what it does not, and what it refuses."""

import dataclasses

import numpy as np
import pytest

import gapless
from gapless.errors import BadInput
from gapless.identify import WalkingFit, fit_walking, walking_distance
from gapless.identify.walking import fitting
from gapless.twin import MECHANISMS, Twin, as_given
from gapless.worlds import StandIn, StandInSpec, record

Latency, Gains, Friction, Sensors = (MECHANISMS[m] for m in ("Latency", "Gains", "Friction", "Sensors"))
DELAY = 0.02


def crew_of(twin):
    """An open-loop trot on the spot for n robots, each from another moment of its cycle."""
    legs = np.array([j[:2] in ("FL", "RR") for j in twin.joints])
    lift = np.array([{"hip": 0.0, "thigh": 0.25, "calf": -0.5}[j[3:]] for j in twin.joints])
    home = twin.home_command[[d.control for d in twin.drives]]

    def crew(n):
        phase = np.arange(n) / n

        def drive(readings):
            assert readings["q"].shape == (n, 12)
            nonlocal phase
            phase = phase + 2.0 * twin.control_dt
            step = np.sin(2 * np.pi * (phase[:, None] + 0.5 * legs))
            return home + lift * np.maximum(step, 0.0)

        return drive

    return crew


pytestmark = pytest.mark.xdist_group("walking")  # one worker makes the fixtures, once


@pytest.fixture(scope="module")
def twin():
    """With fewer causes than usual, so that few simulated robots teach enough."""
    return Twin.load("quadruped", mechanisms=[Latency(), Gains(), Friction(), Sensors()])


@pytest.fixture(scope="module")
def log(twin):
    spec = StandInSpec("quadruped", 3, tolerance=0.3, change={"latency.action": DELAY, "gains.kp/*": "x1.6"})
    drive = crew_of(twin)(1)
    walker = [lambda reading: drive({k: v[None] for k, v in reading.items() if k != "time"})[0]] * 600
    return record(StandIn(spec), walker, "q", "walk")


@pytest.fixture(scope="module")
def found(twin, log):
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("WORLDS", 80), ("ROUNDS", 3), ("SECONDS", 2.0), ("JUDGED", 6.0)):
            patch.setattr(fitting, name, value)
        return fit_walking(twin, [log], crew_of(twin))


def test_it_shows_the_stiffer_gain_without_any_alignment(found):
    hips = next(p for name, p in found.parameters.items() if name.startswith("gains.kp") and "hip" in name)
    assert hips.identified
    assert hips.low < 1.6 * 50 < hips.high
    assert hips.value == pytest.approx(1.6 * 50, rel=0.2)  # 50 as given


def test_the_fitted_robot_steps_more_like_the_real_one_where_the_fit_did_not_look(found):
    assert found.predicts
    assert found.heldout < 0.6 * found.heldout_given
    assert found.floor < found.fitted.mean.size < found.nominal.mean.size


def test_an_open_loop_cannot_show_a_delay(found):
    """Nobody sees when a step was commanded: only a policy that answers its readings walks otherwise with a delay."""
    delay = found.parameters["latency.action"]
    assert not delay.identified
    assert delay.high > DELAY / 2


def test_what_stepping_does_not_show_stays_as_uncertain_as_it_was(found):
    viscous = [p for name, p in found.parameters.items() if name.startswith("friction.viscous")]
    assert not any(p.identified for p in viscous)
    assert all(p.low < 0.06 and p.high > 0.17 for p in viscous)  # a factor of 3 to either side before
    assert "Walking shows" in found.verdict().text
    assert any("friction.viscous" in u.parameters[0] for u in found.undetermined)


def test_it_saves_and_loads(found, tmp_path):
    found.save(tmp_path)
    again = gapless.load(tmp_path)
    assert isinstance(again, WalkingFit)
    assert str(again) == str(found)
    assert gapless.load_belief(tmp_path / "belief.json").space.names == tuple(found.parameters)
    assert (tmp_path / "twin.xml").is_file()
    assert "What walking shows" in (tmp_path / "report.html").read_text()


def test_the_robot_itself_is_nearer_than_the_model_as_given(twin, log):
    """The distance that everything is judged by, at the true numbers."""
    values = twin.space.values({"latency.action": DELAY, "gains.kp/*": 80.0})
    true = walking_distance(twin, log, values, crew_of(twin)).mean.size
    given = walking_distance(twin, log, twin.space.nominal, crew_of(twin)).mean.size
    assert true < 0.3 * given


def test_a_log_of_a_fall_a_short_one_and_one_without_orientation_are_refused(twin, log):
    quat = log["quat"].values.copy()
    quat[400:] = [0.0, 1.0, 0.0, 0.0]
    fallen = {**log.signals, "quat": dataclasses.replace(log["quat"], values=quat)}
    fell = dataclasses.replace(log, signals=fallen)
    with pytest.raises(BadInput, match="the robot fell; cut the log before that"):
        walking_distance(twin, fell, twin.space.nominal, crew_of(twin))
    with pytest.raises(BadInput, match="lasts 7.0 s, and at least 9 s"):
        fit_walking(twin, [fell], crew_of(twin))
    blind = {s: v for s, v in log.signals.items() if s != "quat"}
    with pytest.raises(BadInput, match="the log has no orientation"):
        fit_walking(twin, [dataclasses.replace(log, signals=blind)], crew_of(twin))
    with pytest.raises(BadInput, match="lasts 5.0 s, and at least 9 s"):
        fit_walking(twin, [log.slice(0.0, 5.001)], crew_of(twin))


def test_a_held_base_and_a_policy_under_which_all_fall_are_refused(twin, log, monkeypatch):
    with pytest.raises(BadInput, match="does not move, so it does not walk"):
        fit_walking(as_given("quadruped", in_air=True), [log], crew_of(twin))
    monkeypatch.setattr(fitting, "SECONDS", 2.0)
    monkeypatch.setattr(fitting, "WORLDS", 16)

    def rolls_over(n):
        left = np.array([1.5 if j[1] == "L" and j.endswith("thigh") else 0.0 for j in twin.joints])
        return lambda readings: np.tile(twin.home_command[[d.control for d in twin.drives]] + 2 * left, (n, 1))

    with pytest.raises(BadInput, match="fell or broke in simulation"):
        fit_walking(twin, [log], rolls_over)
