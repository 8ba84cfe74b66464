"""Advice has the figures it was found from."""

from gapless.explain import advice


def test_a_gain_that_is_too_stiff_is_told_by_its_factor() -> None:
    said = advice.sentence("gains.kp", (), {"gains.kp/a": (14.5, 998.0, "N m/rad")})
    assert "14.5 N m/rad" in said and "0.015 times" in said


def test_joints_are_named_where_only_some_are_wrong() -> None:
    said = advice.sentence("backlash.width", ("knee",), {"backlash.width/knee": (0.03, 0.0, "rad")})
    assert "of knee" in said and "0.03 rad" in said


def test_what_separates_a_known_pair_is_said_either_way() -> None:
    pair = ("gains.kd", "friction.viscous")
    for one, other in (pair, pair[::-1]):
        assert any("torque" in s for s in advice.separating(one, [other]))
