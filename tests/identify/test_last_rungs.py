"""The last rungs on a linear model whose answer is known."""

from dataclasses import replace

import numpy as np

from gapless.identify.full_model.rungs import State
from gapless.identify.last_rungs import probable, weighed
from gapless.identify.sensitivity import Sensitivity
from gapless.twin import Twin

TWIN = Twin.load("bench")
SPACE = TWIN.space.select("gains.kp/*", "inertia.mass/*")


def test_all_numbers_go_to_the_most_probable_ones_and_those_not_fitted_stay_within_their_tolerances():
    rng = np.random.default_rng(0)
    slopes = rng.normal(size=(4000, 2)) * 3
    low, high = SPACE.tolerated
    fitted, other = (SPACE.names.index(n) for n in ("gains.kp/servo", "inertia.mass/arm"))
    truth = np.zeros(2)
    truth[fitted], truth[other] = 0.3, 0.5 * high[other]
    errors = -slopes @ truth + 0.1 * rng.normal(size=4000)
    half, none = np.arange(4000) % 2 == 0, np.zeros(4000)
    every = Sensitivity(SPACE, errors, none.astype(int), half, slopes, np.empty((4000, 0)), none[:1])
    start = TWIN.space.nominal
    state = State(TWIN, start, np.stack([start, start]), TWIN.space.select("gains.kp/*"), {}, [])

    def scaled(values: np.ndarray) -> np.ndarray:
        return SPACE.to_scaled(values[..., [TWIN.space.names.index(n) for n in SPACE.names]])

    whole, part = probable(state, every, {})
    np.testing.assert_allclose(scaled(whole.values), truth, atol=0.02)
    np.testing.assert_allclose(scaled(whole.halves), [truth, truth], atol=0.02)
    np.testing.assert_allclose(scaled(part.values), truth / 2, atol=0.02)
    far = replace(every, residual=-slopes @ (truth + 10 * (np.arange(2) == other) * high[other]))
    assert low[other] <= scaled(probable(state, far, {})[0].values)[other] <= high[other]
    stated = probable(state, every, {"gains.kp/servo": 20.0})[0]
    assert stated.values[TWIN.space.names.index("gains.kp/servo")] == 20.0


def test_a_factor_that_no_position_shows_is_that_of_measured_torque_or_that_of_the_model():
    space = TWIN.space.select("gains.kp/*", "friction.viscous/*")
    logarithm, scale = (np.array([getattr(p, name) for p in space.parameters]) for name in ("log", "scale"))
    places = [TWIN.space.names.index(n) for n in space.names]
    start = TWIN.space.nominal.copy()
    start[places] *= 1.5  # what a fit to positions may end at
    along = (np.where(logarithm, 1.0, start[places]) / scale)[:, None]
    rng, none = np.random.default_rng(0), np.zeros(400)
    slopes = rng.normal(size=(400, 2)) * 5
    slopes -= (slopes @ along) @ along.T / (along.T @ along)  # no position shows the factor
    state = State(TWIN, start, np.stack([start, start]), space, {}, [])
    silent = Sensitivity(
        space, rng.normal(size=400), none.astype(int), none > 0, slopes, np.empty((400, 0)), none[:1], factors=along
    )
    [stated] = weighed(state, silent, {})
    np.testing.assert_allclose(stated.values[places] / TWIN.space.nominal[places], 1.0, atol=0.1)
    # torque is 0.8 of what the twin needs, to 1 %: what is needed grows by 1 a unit of the factor's logarithm
    torque = Sensitivity(
        space, np.array([0.2]) / 0.01, none[:1].astype(int), none[:1] > 0, along.T / (along.T @ along) / 0.01, np.empty((1, 0)),
        none[:1],
    )  # fmt: skip
    [measured] = weighed(state, replace(silent, torque=torque), {})
    np.testing.assert_allclose(measured.values[places] / start[places], np.exp(-0.2), rtol=0.02)
    np.testing.assert_allclose(measured.halves[:, places], np.tile(measured.values[places], (2, 1)))
