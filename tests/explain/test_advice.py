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


def test_drives_of_two_sizes_get_a_gain_each() -> None:
    """A user who sets one gain for both makes one of them four times as stiff."""
    found = {
        "gains.kp/a": (1600.0, 2000.0, "N m/rad"),
        "gains.kp/b": (1620.0, 2000.0, "N m/rad"),
        "gains.kp/c": (400.0, 500.0, "N m/rad"),
    }
    said = advice.sentence("gains.kp", (), found)
    assert "400 N m/rad where it is 500 and 1610 N m/rad where it is 2000" in said and "0.8 times" in said


def test_figures_in_a_sentence_are_those_of_the_table() -> None:
    said = advice.sentence("friction.coulomb", (), {"a": (0.1, 0.0, "N m"), "b": (0.3, 0.0, "N m")})
    assert "0.1 to 0.3 N m" in said
