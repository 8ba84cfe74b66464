"""Advice has the figures it was found from."""

from gapless.explain import advice
from gapless.explain.contest import cause_of
from gapless.twin import Backlash, Friction, Twin


def test_a_gain_that_is_too_stiff_is_told_by_its_factor() -> None:
    said = advice.sentence("gains.kp", (), {"gains.kp/a": (14.5, 998.0, "Nm/rad")})
    assert "14.5 Nm/rad" in said and "0.015 times" in said


def test_joints_are_named_where_only_some_are_wrong() -> None:
    said = advice.sentence("backlash.width", ("knee",), {"backlash.width/knee": (0.03, 0.0, "rad")})
    assert "of knee" in said and "0.03 rad" in said


def test_every_cause_of_a_twin_has_advice() -> None:
    twin = Twin.load("quadruped", add=[Friction(full=True), Backlash()])
    causes = {cause_of(p) for p in twin.space.parameters if not p.name.startswith("sensors.")} - {None, "latency.drop"}
    assert causes <= set(advice.DO), causes - set(advice.DO)


def test_what_separates_a_known_pair_is_said() -> None:
    assert any("torque" in s for s in advice.separating("gains.kd", ["friction.viscous"]))
