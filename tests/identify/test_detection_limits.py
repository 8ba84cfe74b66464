"""What logs cannot show, on sensitivities whose answer is known."""

import numpy as np
import pytest

from gapless.identify.detection_limits import CERTAIN, DetectionLimit, detection_limits, hidden, hidden_section
from gapless.identify.sensitivity import Sensitivity
from gapless.twin import Twin

SPACE = Twin.load("bench").space.select("gains.kp/*", "friction.viscous/*", "friction.coulomb/*", "contact.friction")
KP, VISCOUS, COULOMB, CONTACT = (
    SPACE.names.index("gains.kp/servo"),
    *(SPACE.names.index(n) for n in ("friction.viscous/servo", "friction.coulomb/servo", "contact.friction")),
)


def of(slopes: np.ndarray) -> dict[str, DetectionLimit]:
    n = len(slopes)
    none = np.zeros(n)
    every = Sensitivity(SPACE, none, np.zeros(n, dtype=int), none > 0, slopes, np.empty((n, 0)), np.zeros(1))
    return {each.cause: each for each in detection_limits(every, {"gains.kp/servo"})}


def test_a_limit_is_three_standard_deviations_of_what_the_fit_could_not_absorb():
    rng = np.random.default_rng(0)
    slopes = np.zeros((2000, 4))
    slopes[:, [KP, COULOMB]] = rng.normal(size=(2000, 2))
    slopes[:, VISCOUS] = slopes[:, KP] + 0.1 * rng.normal(size=2000)  # nearly what the gain does, which is free
    seen = of(slopes)
    assert "gains.kp" not in seen  # it was fitted
    coulomb = SPACE.parameters[COULOMB]
    assert seen["friction.coulomb"].smallest == pytest.approx(coulomb.scale * CERTAIN / np.sqrt(2000), rel=0.1)
    viscous = SPACE.parameters[VISCOUS]
    assert np.log(seen["friction.viscous"].smallest) / viscous.scale == pytest.approx(CERTAIN / 0.1 / np.sqrt(2000), rel=0.2)


def test_what_moves_nothing_is_not_shown_at_all_and_it_says_what_would():
    slopes = np.random.default_rng(0).normal(size=(500, 4))
    slopes[:, CONTACT] = 0.0
    contact = of(slopes)["contact.friction"]
    assert contact.smallest is None
    assert contact.size == "not at all"
    assert "on its feet" in contact.shown_by
    assert hidden([contact]).startswith("These logs would not show contact.friction at any size")
    assert hidden_section([]) is None
