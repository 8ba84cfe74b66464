"""A saved twin that is loaded again moves as it did, whatever gains a log states and wherever its encoders have their zeros."""

from dataclasses import replace

import numpy as np
import pytest

from gapless.twin import DC, Motor, Twin, as_given
from gapless.worlds import StandIn, StandInSpec as Spec, build_standin as build, plan_motion as plan, record, replay as replayed


@pytest.fixture(scope="module")
def log():
    spec = Spec("arm")
    stand_in = StandIn(spec)
    return record(stand_in, plan("rich", build(spec), 2.0, np.random.default_rng(0)), stand_in.signal)


def errors(twin, log, values):
    return replayed(twin, log, values[None]).error("q")[0, 0]


def nominal(twin, name):
    return twin.space.nominal[twin.space.names.index(name)]


def fitted(twin):
    """Values that a fit may end at, one of everything that a file must carry."""
    factor = {"gains.kp": 1.4, "gains.kd": 1.2, "armature.inertia": 1.3, "motor.kt": 1.2}
    values = {p.name: p.nominal * factor[p.quantity] for p in twin.space.parameters if p.quantity in factor}
    values |= {p.name: 0.03 for p in twin.space.parameters if p.quantity == "offset.encoder"}
    return twin.space.values(values | {"latency.action": 0.012})


@pytest.mark.parametrize("meta", [{}, {"kp": 12.0, "kd": 0.4}, {"kp": {"shoulder_lift": 30.0}}])
def test_a_saved_twin_moves_as_the_one_that_was_saved(log, meta, tmp_path):
    log = replace(log, meta=log.meta | meta)
    twin = as_given("arm", log)
    values = fitted(twin)
    twin.save(tmp_path / "twin.xml", values)
    back = as_given(tmp_path / "twin.xml", log)
    back.save(tmp_path / "again.xml")
    for again in (back, Twin.load(tmp_path / "twin.xml"), as_given(tmp_path / "again.xml", log)):
        np.testing.assert_allclose(errors(again, log, again.space.nominal), errors(twin, log, values), atol=1e-9)


def test_a_log_with_other_gains_moves_a_saved_twin_by_as_much(log, tmp_path):
    one, two = (replace(log, meta=log.meta | {"kp": kp}) for kp in (10.0, 20.0))
    twin = as_given("arm", one)
    twin.save(tmp_path / "twin.xml", fitted(twin))
    back = as_given(tmp_path / "twin.xml", two)
    ours = errors(twin, two, fitted(twin))
    np.testing.assert_allclose(errors(back, two, back.space.nominal), ours, atol=1e-9)
    assert np.abs(ours - errors(twin, one, fitted(twin))).max() > 0.01


def test_what_the_user_states_takes_the_place_of_what_was_fitted(log, tmp_path):
    twin = as_given("arm", replace(log, meta=log.meta | {"kp": 10.0}))
    twin.save(tmp_path / "twin.xml", fitted(twin))
    stated = as_given(tmp_path / "twin.xml", log, kp=5.0)
    assert nominal(stated, "gains.kp/elbow_flex") == 5.0
    assert nominal(stated, "offset.encoder/elbow_flex") == pytest.approx(0.03)


def test_zeros_of_electric_motors_are_carried_too(tmp_path):
    twin = Twin.load("bench", add=[Motor(dc=DC(0.5, 2.0, 12.0, voltage_control=True))])
    twin.save(tmp_path / "twin.xml", fitted(twin))
    assert nominal(Twin.load(tmp_path / "twin.xml"), "offset.encoder/servo") == pytest.approx(0.03)


def test_the_seat_of_an_imu_is_carried_though_mjcf_has_no_place_for_it(tmp_path):
    twin = Twin.load("quadruped")
    twin.save(tmp_path / "twin.xml", twin.space.values({"offset.imu_pitch": 0.02}))
    back = Twin.load(tmp_path / "twin.xml")
    assert [nominal(back, f"offset.imu_{axis}") for axis in ("roll", "pitch")] == [0.0, pytest.approx(0.02)]
    assert "imu_pitch" in (tmp_path / "twin.xml").read_text()  # said to be lacking in a plain MuJoCo
