"""What speaks against a fit, each alone."""

import numpy as np
import pytest

from gapless.identify.full_model.rungs import State
from gapless.identify.score import Scores
from gapless.identify.trust import _baselines, _chains, _coarse, _disagree, _weight, hiding, unlike
from gapless.twin import Gaussian, Twin

TWIN = Twin.load("quadruped", in_air=True)
SPACE = TWIN.space.select("gains.kp/*_hip", "friction.coulomb/*_hip")


def believed(centre: dict[str, float], spread: float = 0.05) -> Gaussian:
    x = np.array([centre.get(name, 0.0) for name in SPACE.names])
    return Gaussian(SPACE, x, np.eye(len(x)) * spread**2)


def test_a_lopsided_robot_is_suspected_by_gains_of_one_side_and_not_by_friction_or_what_is_not_known():
    right = {"gains.kp/FR_hip": 1.5, "gains.kp/RR_hip": 1.5, "friction.coulomb/FR_hip": 2.0}
    (apart,) = unlike(TWIN, believed(right))
    words = apart.sentence
    assert [{SPACE.names[i] for i in places} for places in apart.numbers] == [
        {*SPACE.match("friction.*")},
        {*SPACE.match("gains.*")},
    ]
    assert words.startswith("gains.kp/FR_hip is 91.9 N m/rad and gains.kp/FL_hip 50")
    assert "Compare with the limbs swapped" in words
    assert not unlike(TWIN, believed(right, spread=1.0))
    assert not unlike(TWIN, believed({"gains.kp/FR_hip": 0.2}))


@pytest.mark.parametrize(
    ("times", "sd", "said"), [(1.05, 0.01, False), (0.77, 0.05, True), (1.3, 0.05, True), (1.3, 0.2, False)]
)
def test_torques_of_robots_of_another_weight_are_suspected_where_they_are_sure(times, sd, said):
    assert bool(_weight((np.log(times), sd))) == said
    assert not _weight(None)


def test_halves_that_put_numbers_elsewhere_are_suspected_where_many_do():
    belief = believed({})
    halves = np.zeros((2, len(SPACE)))
    halves[0, 0] = 0.3
    assert not _disagree(belief, halves)  # one of eight may be chance
    halves[0, :4] = 0.3
    (words,) = _disagree(belief, halves)
    assert SPACE.names[0] in words


def scores(fit: float) -> Scores:
    """Held-out errors of a fit beside those of a model that is 0.05 rad off [rad]."""
    return Scores(command=0.1, delay=0.08, given=0.05, fit=fit)


def test_physics_that_break_are_said_and_no_figure():
    (words,) = _baselines(scores(np.inf), [])
    assert "physics of the fitted model break" in words and "deg" not in words


def test_a_time_step_that_makes_most_of_what_is_left_is_said_unless_little_is_left():
    coarse = np.full(12, 0.02)
    (words,) = _coarse(TWIN, scores(0.02), coarse)
    assert "1.1 deg" in words and "lower it" in words
    assert not _coarse(TWIN, scores(0.04), coarse)
    assert not _coarse(TWIN, scores(0.001), np.full(12, 0.0009))


def test_closed_chains_are_named(tmp_path):
    path = tmp_path / "chain.xml"
    path.write_text(
        '<mujoco><worldbody><body name="a"><joint name="a"/><geom size="0.1"/></body><body name="b" pos="1 0 0">'
        '<joint name="b"/><geom size="0.1"/></body></worldbody>'
        '<equality><connect body1="a" body2="b" anchor="0.5 0 0"/></equality>'
        '<actuator><position joint="a" kp="9"/></actuator></mujoco>'
    )
    (words,) = _chains(Twin.load(str(path)))
    assert "a, b" in words
    assert not _chains(TWIN)


def test_of_a_robot_on_its_feet_what_only_accelerations_and_contact_show_may_hide_what_the_model_lacks():
    fitted = ("gains.kp/*", "contact.stiffness", "armature.inertia/*_hip", "friction.coulomb/*", "offset.imu_pitch")
    standing, held = (
        State(twin, twin.space.nominal, twin.space.nominal[None], twin.space.select(*names), {}, [])
        for twin, names in ((Twin.load("quadruped"), fitted), (TWIN, ("gains.kp/*", "armature.inertia/*")))
    )
    assert set(hiding(standing, np.array([1.0, 9.0]))) == {"contact.stiffness", "armature.inertia", "offset.imu_pitch"}
    assert not hiding(standing, np.array([1.0, 1.5])) and not hiding(held, np.array([9.0]))
