"""Checks: a value in its plain form, or one sentence that names it."""

from dataclasses import dataclass

import numpy as np
import pytest

from gapless.checks import Checked, bounds, checked, flag, listed, number, part_of, parts_of, text, whole
from gapless.errors import BadInput


@dataclass(frozen=True)
class Wheel(Checked, where="wheel."):
    radius: float = checked(number, low=0.0)
    name: str = checked(text, "")
    spokes: int | None = checked(whole, None, low=1, high=99)


def test_fields_take_their_plain_form():
    wheel = Wheel(np.float32(0.5), spokes=np.int64(6))
    assert type(wheel.radius) is float
    assert type(wheel.spokes) is int
    assert Wheel(1).spokes is None  # a default of None may stay
    assert part_of({"radius": 2}, "front", Wheel) == Wheel(2.0) == part_of(Wheel(2.0), "front", Wheel)
    assert parts_of([{"radius": 2}, Wheel(3)], "wheels", Wheel) == (Wheel(2.0), Wheel(3.0))
    assert bounds((1, [2, 3]), "range", 2) == (1.0, (2.0, 3.0))
    assert listed(np.arange(2), "list") == [0, 1]


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda: Wheel(-1), "wheel.radius: -1 is not from 0 to inf"),
        (lambda: Wheel(float("nan")), "wheel.radius: a finite number was expected, not nan"),
        (lambda: Wheel(None), "wheel.radius: a finite number was expected, not None"),
        (lambda: Wheel(1, spokes=True), "wheel.spokes: a whole number from 1 to 99 was expected, not True"),
        (lambda: Wheel(1, name=3), "wheel.name: a text was expected, not 3"),
        (lambda: part_of({"radius": 1, "colour": "red"}, "front", Wheel), "unknown entry of front 'colour'"),
        (lambda: part_of({}, "front", Wheel), "front: radius is missing"),
        (lambda: part_of([], "front", Wheel), r"front: a table was expected, not \[\]"),
        (lambda: parts_of([{"radius": 1}, 5], "wheels", Wheel), r"wheels\[1\]: a table was expected, not 5"),
        (lambda: parts_of([{}] * 1001, "wheels", Wheel), "wheels: 1001 entries, but at most 1000"),
        (lambda: bounds((2, 1), "range"), "range: the lowest value is above the highest"),
        (lambda: bounds((-1, 1), "range", low=0.0), "range: -1 is not from 0"),
        (lambda: flag(1, "on"), "on: true or false was expected, not 1"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(wrong, sentence):
    with pytest.raises(BadInput, match=sentence) as error:
        wrong()
    assert "\n" not in str(error.value)
