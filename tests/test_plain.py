"""Plain data: a dataclass goes to JSON and comes back as it was; what another program wrote is refused in a sentence."""

import json
import math
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from gapless.arrays import Array
from gapless.errors import BadInput
from gapless.plain import NOT_SAVED, plain, read_json, typed, write_json


@dataclass(frozen=True)
class Part:
    name: str
    value: float


@dataclass(frozen=True)
class Whole:
    parts: dict[str, Part]
    pair: tuple[str, float]
    several: tuple[Part, ...]
    array: Array
    maybe: Part | None
    flag: bool
    count: int
    numbers: dict[int, Array]
    large: list[int] = field(default_factory=list, metadata=NOT_SAVED)


WHOLE = Whole(
    {"a": Part("one", math.inf)},
    ("x", 2.0),
    (Part("two", 2.5),),
    np.array([[1.0, math.nan]]),
    None,
    True,
    3,
    {4: np.ones(2)},
    [9],
)


def test_a_dataclass_comes_back_as_it_was_but_for_what_is_not_finite_or_not_saved(tmp_path):
    write_json(tmp_path / "x.json", WHOLE)
    back = typed(Whole, read_json(tmp_path / "x.json"))
    assert math.isnan(back.parts["a"].value)
    assert (back.pair, back.several, back.maybe, back.flag, back.count) == (("x", 2.0), (Part("two", 2.5),), None, True, 3)
    np.testing.assert_array_equal(back.array, WHOLE.array)
    np.testing.assert_array_equal(back.numbers[4], [1.0, 1.0])
    assert back.large == []


def test_numpy_and_paths_are_plain():
    assert plain({1: np.float64(2.0), "p": Path("a/b"), "n": np.bool_(True), "i": np.arange(2)}) == {
        "1": 2.0,
        "p": "a/b",
        "n": True,
        "i": [0, 1],
    }


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"parts": 3}, "parts"),
        ({"parts": {"a": {"name": "x"}}}, "it has no value"),
        ({"parts": {"a": {"name": 3, "value": 1}}}, "name: '3' is not of type str"),
        ({"pair": ["x", 2.0, 3.0]}, "pair"),
        ({"flag": 1}, "flag"),
        ({"count": True}, "count"),
        ({"count": 1.5}, "count"),
        ({"several": {}}, "several"),
    ],
)
def test_data_of_another_shape_is_refused(change, sentence):
    with pytest.raises(BadInput, match="is not of type|it has no") as caught:
        typed(Whole, plain(WHOLE) | change)
    assert sentence in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[1]", "[" * 100_000, '{"a": 1'])
def test_what_is_no_table_is_refused_by_name(text, tmp_path):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(BadInput, match="x.json"):
        read_json(tmp_path / "x.json")


def test_a_file_that_is_too_large_is_refused_unread(tmp_path):
    (tmp_path / "x.json").write_text(json.dumps({"a": "b" * 1000}))
    with pytest.raises(BadInput, match="at most 100 were expected"):
        read_json(tmp_path / "x.json", 100)
