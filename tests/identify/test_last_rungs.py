"""The last rungs on a linear model whose answer is known."""

from dataclasses import replace

import numpy as np

from gapless.identify.full_model.rungs import State
from gapless.identify.last_rungs import probable
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
    every = Sensitivity(SPACE, errors, none, none.astype(int), half, slopes, np.empty((4000, 0)), none[:1])
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
