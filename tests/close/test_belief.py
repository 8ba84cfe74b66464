"""What a policy may be trained in: no wider than the field, and lopsided where left and right differ."""

import dataclasses

import numpy as np
import pytest

from gapless.close.belief import NINETY, is_lopsided, no_wider
from gapless.learn import box_belief
from gapless.twin import Gaussian, Twin, quantities


@pytest.fixture(scope="module")
def twin():
    return Twin.load("quadruped")


def gaussian(twin, *patterns, spread=0.1, **moved):
    space = twin.space.select(*patterns)
    by = [moved.get(name.replace("/", "_").replace(".", "_"), 0.0) for name in space.names]
    centre = space.to_scaled(space.nominal) + np.array(by)
    return Gaussian(space, centre, np.eye(len(space)) * spread**2)


def test_a_belief_is_no_wider_than_the_field_and_keeps_its_centre_and_correlations(twin):
    belief = gaussian(twin, "gains.kp/*", "latency.action")
    k = len(belief.space)
    belief = dataclasses.replace(belief, covariance=np.full((k, k), 1.9) + 0.1 * np.eye(k))
    field = box_belief(twin, quantities.ranges("wide"))
    narrow = no_wider(belief, field)
    i = belief.space.names.index("gains.kp/FL_hip")
    assert np.exp(NINETY * np.sqrt(narrow.covariance[i, i]) * belief.space.parameters[i].scale) == pytest.approx(1.25, rel=0.02)
    np.testing.assert_array_equal(narrow.centre, belief.centre)
    before, after = (c / np.sqrt(np.outer(np.diag(c), np.diag(c))) for c in (belief.covariance, narrow.covariance))
    np.testing.assert_allclose(after, before)


def test_a_belief_that_is_surer_than_the_field_stays(twin):
    belief = gaussian(twin, "gains.kp/*", spread=0.01)
    narrow = no_wider(belief, box_belief(twin, quantities.ranges("wide")))
    np.testing.assert_allclose(narrow.covariance, belief.covariance)


def test_left_and_right_that_differ_make_a_belief_lopsided_unless_by_chance(twin):
    assert not is_lopsided(twin, gaussian(twin, "gains.kp/*", "inertia.com_y/base"))
    assert is_lopsided(twin, gaussian(twin, "gains.kp/*", gains_kp_FL_hip=1.0))
    assert not is_lopsided(twin, gaussian(twin, "gains.kp/*", gains_kp_FL_hip=1.0, gains_kp_FR_hip=1.0))
    assert not is_lopsided(twin, gaussian(twin, "gains.kp/*", spread=1.0, gains_kp_FL_hip=1.0))
    assert is_lopsided(twin, gaussian(twin, "inertia.com_y/base", inertia_com_y_base=1.0))
    assert not is_lopsided(twin, gaussian(twin, "inertia.com_x/base", inertia_com_x_base=1.0))
