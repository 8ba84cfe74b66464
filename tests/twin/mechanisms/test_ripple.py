"""Ripple, a mechanism of one file: it moves a joint as a closed form says, and the whole program knows it."""

import mujoco
import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.explain import explain
from gapless.identify import fit
from gapless.learn import draw_from
from gapless.logs import Log
from gapless.twin import Friction, Gaussian, Point, Twin, export_settings, load_recipe, recipe_of, save_belief
from gapless.twin.mechanisms.ripple import Ripple
from gapless.worlds import StandIn, StandInSpec as Spec, build_standin as build, plan_motion as plan, record
from tests.twin.models import INERTIA, one_world, run, twin_of, wheel

TRUTH = {"ripple.sine/servo": 0.3, "ripple.cosine/servo": -0.2}


def test_a_free_wheel_exchanges_energy_with_the_ripple():
    """On its way over half a period the sine part gives a wheel 2 sine / n of work."""
    worlds = one_world(twin_of(wheel(), Ripple({"axle": 8.0})), {"ripple.sine/axle": 0.05})
    worlds.reset(qvel=np.array([1.0]), redraw=False)
    q, v = run(worlds, 0.0, 1.0).T[:2]
    work = 0.05 / 8.0 * (1 - np.cos(8.0 * q))
    np.testing.assert_allclose(0.5 * INERTIA * (v**2 - 1.0), work, atol=0.02 * 0.05 / 8.0)


def test_its_place_is_a_driven_joint_and_its_periods_are_positive():
    with pytest.raises(BadInput, match="wheel is none"):
        twin_of(wheel(), Ripple({"wheel": 8.0}))
    with pytest.raises(BadInput, match="positive number of periods"):
        twin_of(wheel(), Ripple({"axle": 0.0}))


@pytest.fixture(scope="module")
def log() -> Log:
    sensors = {"noise_q": 0.0003, "noise_dq": 0.01}
    spec = Spec("bench", tolerance=0, change=TRUTH, add={"ripple": {"periods": {"servo": 20.0}}}, sensors=sensors)
    stand_in = StandIn(spec)
    return record(stand_in, plan("rich", build(spec), 8.0, np.random.default_rng(0)), stand_in.signal)


def test_it_is_named_as_a_cause_though_the_twin_lacks_it(log):
    found = explain(Twin.load("bench", add=[Friction(full=True)]), [log])
    assert [c.name for c in found.mechanisms] == ["ripple.torque"]
    for name, value in TRUTH.items():
        assert found.mechanisms[0].parameters[name].value == pytest.approx(value, rel=0.2)


def test_it_is_fitted_saved_and_made_again_though_the_twin_lacks_it(log, tmp_path):
    found = fit(Twin.load("bench", add=[Friction(full=True)]), [log])
    assert next(r for r in found.ladder if r.name == "+ torque ripple").added
    values = dict(zip(found.twin.space.names, found.values, strict=True))
    assert values["ripple.periods/servo"] == pytest.approx(20.0, abs=0.3)
    for name, value in TRUTH.items():
        assert values[name] == pytest.approx(value, abs=0.05)
        assert name in found.belief.space.names
    found.twin.save(tmp_path / "twin.xml", found.values)
    mujoco.MjModel.from_xml_path(str(tmp_path / "twin.xml"))
    assert "the torque of ripple" in (tmp_path / "twin.xml").read_text()
    save_belief(found.belief, tmp_path / "belief.json", recipe_of(found.twin))
    assert load_recipe("bench", tmp_path / "belief.json").space.names == found.twin.space.names


def test_it_is_not_tried_where_errors_do_not_repeat_over_the_angle():
    spec = Spec("bench", seed=1, change={"gains.kp/*": "x0.7", "friction.coulomb/*": "x2"}, sensors={"noise_q": 0.0003})
    stand_in = StandIn(spec)
    log = record(stand_in, plan("rich", build(spec), 12.0, np.random.default_rng(0)), stand_in.signal)
    found = fit(Twin.load("bench", add=[Friction(full=True)]), [log])
    assert "+ torque ripple" not in [r.name for r in found.ladder]


def test_wide_draws_it_and_exports_say_that_they_lack_it():
    twin = Twin.load("bench", add=[Ripple({"servo": 20.0})])
    drawn = draw_from("wide", twin)
    assert drawn is not None and {"ripple.sine/servo", "ripple.cosine/servo"} <= set(drawn.space.names)
    space = twin.space.select("ripple.*")
    belief = Gaussian(space, np.zeros(len(space)), 0.01 * np.eye(len(space)))
    entry = {"value": 0.0, "low": -0.1, "high": 0.1}
    entries = {p.name: entry | {"value": p.nominal, "low": p.nominal - 0.1, "high": p.nominal + 0.1} for p in space.parameters}
    assert "ripple.sine" in export_settings("mjlab", twin.model, belief, {"parameters": entries})
    assert Point(space, space.nominal)
