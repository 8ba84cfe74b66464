"""What explain looks at: whole blocks of both halves, spread over the logs, and errors that stay finite."""

import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.explain.physics import FARTHEST, errors_of, noise_of, observed
from gapless.measure import BLOCK
from gapless.twin import Twin
from gapless.worlds import StandInSpec as Spec
from tests.measure.made import recorded


def test_a_long_log_is_looked_at_all_along_in_both_halves():
    twin = Twin.load("quadruped", in_air=True)
    log = recorded(Spec("quadruped", in_air=True, tolerance=0), 30.0)[1]
    data = observed(twin, [log])
    assert data.length == BLOCK
    assert data.clock.min() < 6 and data.clock.max() > 24
    assert 0.3 < data.split.first[np.unique(data.block)].mean() < 0.7
    errors = errors_of(data, twin.space.nominal[None])
    assert errors.shape == (1, len(data.clock), len(twin.joints))
    assert np.abs(errors).max() <= FARTHEST


def test_the_tilt_of_a_free_base_counts_beside_its_joints():
    twin = Twin.load("quadruped")
    data = observed(twin, [recorded(Spec("quadruped", tolerance=0), 6.0)[1]])
    assert errors_of(data, twin.space.nominal[None]).shape[2] == len(twin.joints) + 2 == len(noise_of(data))


def test_half_the_time_step_predicts_the_same_windows():
    twin = Twin.load("bench")
    data = observed(twin, [recorded(Spec("bench", tolerance=0), 6.0)[1]])
    finer = data.halved()
    assert finer.twin.model.opt.timestep == twin.model.opt.timestep / 2
    np.testing.assert_array_equal(finer.clock, data.clock)


def test_too_little_to_hold_anything_out_is_refused():
    with pytest.raises(BadInput, match="usable data"):
        observed(Twin.load("bench"), [recorded(Spec("bench", tolerance=0), 3.0)[1]])
