"""What speaks against a fit, each alone."""

import numpy as np
import pytest

from gapless.identify.trust import _disagree, _weight, unlike
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
