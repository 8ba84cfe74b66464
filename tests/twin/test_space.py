"""Space: names, patterns, ties, fixing, bounds, and the way to the scaled space and back."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from gapless.errors import BadInput
from gapless.twin.space import Parameter, Space, amount, factor


@st.composite
def parameters(draw, name: str) -> Parameter:
    if draw(st.booleans()):
        return factor(name, draw(st.floats(1e-6, 1e6)), draw(st.floats(1.01, 10)), 0.05, span=draw(st.floats(1.1, 1000)))
    nominal = draw(st.floats(-1e3, 1e3))
    width = draw(st.floats(1e-3, 1e3))
    return amount(name, nominal, draw(st.floats(1e-4, 1e2)), 0.0, "", nominal - width, nominal + width)


@st.composite
def spaces(draw) -> Space:
    k = draw(st.integers(1, 12))
    return Space(tuple(draw(parameters(f"m.q/{i}")) for i in range(k)))


@settings(max_examples=200, deadline=None)
@given(spaces(), st.data())
def test_any_space_goes_to_the_scaled_space_and_back(space, data):
    u = np.array(data.draw(st.lists(st.floats(0, 1), min_size=len(space), max_size=len(space))))
    values = space.low + u * (space.high - space.low)
    back = space.from_scaled(space.to_scaled(values))
    np.testing.assert_allclose(back, values, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(space.to_scaled(space.nominal), 0.0, atol=1e-12)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(0.5, 2.0), min_size=2, max_size=6), st.floats(0.6, 1.5))
def test_tied_parameters_stay_tied(nominals, value):
    free = Space(
        tuple(factor(f"friction.viscous/{i}", v, 2.0, 0.1) for i, v in enumerate(nominals)) + (factor("x.y", 1.0, 2, 0.1),)
    )
    tied = free.tie("friction.viscous/*")
    assert tied.names == ("friction.viscous/*", "x.y")
    spread = tied.spread([[value, 1.5]])
    assert {float(spread[f"friction.viscous/{i}"][0]) for i in range(len(nominals))} == {value}
    assert float(spread["x.y"][0]) == 1.5


def make() -> Space:
    return Space(
        (
            factor("gains.kp/knee", 50.0, 1.5, 0.05, "Nm/rad"),
            factor("gains.kp/hip", 40.0, 1.5, 0.05, "Nm/rad"),
            amount("friction.coulomb/knee", 0.2, 0.2, 0.02, "Nm", 0.0, 2.0),
            amount("latency.action", 0.0, 0.01, 0.001, "s", 0.0, 0.1),
        )
    )


def test_a_factor_of_the_stated_mismatch_is_one_unit():
    space = make()
    assert space.to_scaled(space.values({"gains.kp/knee": 75.0}))[0] == pytest.approx(1.0)
    assert space.to_scaled(space.values({"latency.action": 0.02}))[3] == pytest.approx(2.0)


def test_patterns_select_fix_and_set():
    space = make()
    assert space.match("gains.*") == ("gains.kp/knee", "gains.kp/hip")
    assert space.select("*knee").names == ("gains.kp/knee", "friction.coulomb/knee")
    fixed = space.fix({"gains.kp/*": 45.0})
    assert fixed.names == ("friction.coulomb/knee", "latency.action")
    assert fixed.spread(fixed.nominal)["gains.kp/hip"].tolist() == [45.0]


def test_fixing_a_tied_parameter_fixes_all_of_it():
    fixed = make().tie("gains.kp/*").fix({"gains.kp/*": 44.0})
    spread = fixed.spread(fixed.nominal)
    assert spread["gains.kp/knee"].tolist() == spread["gains.kp/hip"].tolist() == [44.0]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda s: s.match("gain.kp/knee"), "unknown parameter 'gain.kp/knee': did you mean 'gains.kp/knee'"),
        (lambda s: s.values({"friction.coulomb/knee": 3.0}), r"friction.coulomb/knee = 3 Nm is outside its bounds \[0, 2\]"),
        (lambda s: s.values({"latency.action": math.nan}), "latency.action = nan"),
        (lambda s: s.check([1.0, 2.0]), "expected 4 parameter values, got 2"),
        (lambda s: s.fix({"latency.action": -1.0}), "outside its bounds"),
        (lambda s: s.tie("*"), "different quantities"),
        (lambda s: Space(s.parameters + s.parameters[:1]), "named twice"),
        (lambda s: Parameter("a.b", 1.0, 2.0, 3.0, 0.0, 1.0), "outside its bounds"),
        (lambda s: Parameter("a.b", 1.0, 0.0, 3.0, 0.0, 1.0, log=True), "positive lower bound"),
        (lambda s: Parameter("a.b", 1.0, 0.0, 3.0, 0.0, 0.0), "scale must be positive"),
    ],
)
def test_bad_input_is_one_sentence(wrong, message):
    with pytest.raises(BadInput, match=message):
        wrong(make())


def test_parameters_that_share_no_value_cannot_be_tied():
    space = Space((amount("a.b/1", 0.0, 1, 0, "", -1, 1), amount("a.b/2", 5.0, 1, 0, "", 4, 6)))
    with pytest.raises(BadInput, match="no value is within the bounds"):
        space.tie("a.b/*")
