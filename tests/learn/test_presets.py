"""What worlds are drawn from."""

import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.learn.presets import draw_from
from gapless.twin import Friction, Particles, Point, Twin, defaults, within_tolerance


@pytest.fixture(scope="module")
def twin():
    return Twin.load("quadruped")


def test_wide_has_the_published_ranges(twin):
    drawn = draw_from("wide", twin)
    values = dict(zip(drawn.space.names, drawn.sample(4000, np.random.default_rng(0)).T, strict=True))
    grip = values["contact.friction"]
    assert grip.min() >= 0.5
    assert grip.max() <= 1.25
    assert np.ptp(grip) > 0.7
    calf = values["inertia.mass/FL_calf"] / 0.26  # calf and foot [kg]
    assert calf.min() == pytest.approx(0.8, abs=0.01)
    assert calf.max() == pytest.approx(1.2, abs=0.01)
    loop = values["latency.action"] + values["latency.observation"]
    assert 0.036 < loop.max() <= 0.04
    assert values["inertia.payload"].max() == pytest.approx(0.2 * 13.04, rel=0.01)


def test_every_built_in_robot_has_a_wide_preset():
    for name in ("bench", "arm", "rover", "biped"):
        assert len(draw_from("wide", Twin.load(name)).space) > 5


def test_models30_are_thirty_robots_and_the_same_ones_each_time(twin):
    first, again = draw_from("models30", twin), draw_from("models30", twin)
    assert isinstance(first, Particles)
    assert len(np.unique(first.values, axis=0)) == 30
    np.testing.assert_array_equal(first.values, again.values)


def test_none_is_the_nominal_robot_or_the_mean_of_what_is_believed(twin):
    assert draw_from("none", twin) is None
    believed = within_tolerance(twin.space.select("contact.friction"))
    mean = draw_from("none", twin, believed)
    assert isinstance(mean, Point)
    np.testing.assert_allclose(mean.values, believed.mean())
    assert draw_from("narrow", twin, believed) is believed


def test_informed_is_the_belief_and_the_ranges_of_the_field_for_the_rest_and_draws_nothing_twice(twin):
    believed = within_tolerance(twin.space.select("gains.kp/*_hip", "latency.action").tie("gains.kp/*_hip"))
    drawn, wide = draw_from("informed", twin, believed), draw_from("wide", twin)
    names = set(drawn.space.names)
    assert {"gains.kp/*_hip", "gains.kp/FL_calf", "latency.action", "contact.friction"} <= names
    # a fitted gain has the motor's strength in it, and a fitted delay all delays
    assert not {"gains.kp/FL_hip", "motor.strength/FL_hip", "latency.observation"} & names
    assert {"motor.strength/FL_calf"} <= names
    sample = dict(zip(drawn.space.names, drawn.sample(500, np.random.default_rng(0)).T, strict=True))
    assert np.ptp(sample["gains.kp/*_hip"]) < 0.11 * sample["gains.kp/*_hip"].mean()
    low, high = (side[wide.space.names.index("contact.friction")] for side in (wide.low, wide.high))
    assert low <= sample["contact.friction"].min() < sample["contact.friction"].max() <= high
    assert len(drawn.mean()) == len(names)
    twin.accepts(drawn.space)
    with pytest.raises(BadInput, match="informed draws from a belief"):
        draw_from("informed", twin)


def test_bad_input_is_one_sentence(twin):
    with pytest.raises(BadInput, match="narrow draws from a belief: give one with --belief"):
        draw_from("narrow", twin)
    with pytest.raises(BadInput, match="unknown preset 'widest': did you mean 'wide'"):
        draw_from("widest", twin)
    other = within_tolerance(Twin.load("bench").space)
    with pytest.raises(BadInput, match="in a belief that is not about quadruped"):
        draw_from("narrow", twin, other)


def test_the_thirty_robots_of_a_judgement_are_others_than_those_of_a_training(twin):
    seen, unseen = (draw_from("models30", twin, lot=lot) for lot in (0, 1))
    assert len(np.unique(np.concatenate([seen.values, unseen.values]), axis=0)) == 60


def test_friction_that_a_model_leaves_out_is_drawn_from_none_to_a_real_mismatch(twin):
    spec = twin.spec.copy()
    for joint in spec.joints:
        joint.frictionloss = 0.0
    drawn = draw_from("wide", Twin.build(spec, defaults(), 0.02, "smooth"))
    at = drawn.space.names.index("friction.coulomb/FL_calf")
    assert drawn.low[at] == 0.0
    assert drawn.high[at] == drawn.space.parameters[at].scale > 0
    full = [Friction(full=True) if isinstance(m, Friction) else m for m in defaults()]
    fitted = draw_from("wide", Twin.build(spec, full, 0.02, "fitted"))
    assert fitted.high[at] == pytest.approx(drawn.high[at])
