"""Contract: what it says survives text bit by bit, and what it must not say is refused in one sentence."""

import dataclasses
import json
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from gapless.errors import BadInput
from gapless.policy.contract import Contract, parse_contract
from gapless.policy.parts import Action, Joints, Observation, Recurrent, Reference, Term, Timing
from tests.policy import made

finite = st.floats(-1e6, 1e6)


def test_a_contract_survives_its_text_bit_by_bit():
    whole = dataclasses.replace(made.contract(), recurrent=Recurrent(("h_in",), ("h_out",)), normalizer="baked")
    assert parse_contract(whole.json()) == whole
    assert parse_contract(json.loads(whole.json())) == whole
    assert pickle.loads(pickle.dumps(whole)) == whole  # noqa: S301  worker processes send contracts
    residual = made.residual()
    assert parse_contract(residual.json()) == residual
    assert max(map(len, residual.json().splitlines())) < 400  # a row of the gait a line


def test_a_contract_that_was_written_before_there_were_residuals_is_read():
    table = json.loads(made.contract().json())
    del table["action"]["reference"]
    assert parse_contract(table) == made.contract()


@settings(max_examples=100, deadline=None)
@given(st.lists(finite, min_size=12, max_size=12), st.lists(finite, min_size=12, max_size=12), finite)
def test_every_float_comes_back_exactly(default, scale, gyro):
    told = made.contract((Term("gyro", "gyro", 3, gyro),), Action("position", made.JOINTS, tuple(scale), default))
    back = parse_contract(told.json())
    assert back.action.scale == tuple(scale)
    assert back.action.offset == tuple(default)
    assert back.observation.terms[0].scale == gyro


def test_arrays_become_plain_numbers():
    told = Joints(list("ab"), np.array([0.1, 0.2], np.float64), np.float32([1, 2]))
    assert told.default_pos == (0.1, 0.2)
    assert told.kp == (1.0, 2.0)
    assert Term("q", "q", np.int64(2), np.array([1, 2])).scale == (1.0, 2.0)


def test_width_counts_history():
    assert made.contract().width == 3 + 3 + 3 + 12 * 3
    assert made.contract(made.terms(history=5)).width == 225


def test_what_is_not_known_is_none_and_listed():
    bare = Contract(Joints(("a", "b")), Action("position", ("a",)), commands={"vx": None})
    assert bare.timing.control_dt is None
    for name in ("observation.terms", "timing.control_dt", "joints.default_pos", "joints.kp", "action.scale", "commands.vx"):
        assert name in bare.unknown
    assert parse_contract(bare.json()) == bare
    assert made.contract().unknown == ()  # and no clip, filter or gait is nothing unknown


def test_columns_map_a_robots_joints_by_name():
    order = tuple(reversed(made.JOINTS))
    assert [order[i] for i in made.contract().columns(order)] == list(made.JOINTS)


def test_joints_of_another_robot_are_refused_by_name():
    with pytest.raises(BadInput, match="no FL_hip, FL_thigh, FL_calf"):
        made.contract().columns(("left_knee", "right_knee"))


def test_a_privileged_term_is_refused():
    with pytest.raises(BadInput, match="'height' is privileged.*critic"):
        made.contract((Term("height", "height", 1, provenance="privileged"),))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: Term("gyro", "gyro", 3, float("nan")), "term 'gyro': scale: a finite number was expected, not nan"),
        (lambda: Term("gyro", "gyro", 3, (1.0, float("inf"), 1.0)), "scale: a finite number"),
        (lambda: Term("gyro", "gyro", 3, (1.0, 1.0)), "2 numbers for 3 columns"),
        (lambda: Term("gyro", "gyro", 4), "gyro has 3 columns, not 4"),
        (lambda: Term("gyro", "gyro", 3, provenance="guessed"), "'guessed' is not one of sensed, estimated, privileged"),
        (lambda: Term("gyro", "gyro", 3, history=0), "history: a whole number from 1"),
        (lambda: Term("gyro", "gyro", 3, history=10**9), "history: a whole number"),
        (lambda: Term("gyro", "gyro", 3, clip=(1.0, -1.0)), "the lowest value is above the highest"),
        (lambda: Term("gyro", "gyro", 3, clip=(1.0,)), "a lowest and a highest"),
        (lambda: Term("clock", "clock", 2), "a clock needs its frequency"),
        (lambda: Term("clock", "clock", 2, frequency=2.0, phases=(0.0, 3.14)), "clock has 4 columns, not 2"),
        (lambda: Observation((Term("a", "x", 1), Term("a", "y", 1))), "'a' occurs twice"),
        (lambda: Observation(major="column"), "'column' is not one of term, frame"),
        (lambda: Observation(tuple(Term(f"t{i}", "x", 1000, history=100) for i in range(2))), "at most 100000"),
        (lambda: Observation((Term("a", "x", 50_000), Term("b", "y", 1, history=1000))), "a history of 50001000 numbers"),
        (lambda: Action("speed", ("a",)), "'speed' is not one of position, velocity, torque"),
        (lambda: Action("position", ("a",), filter=1.5), "1.5 is not from 0 to 1"),
        (lambda: Reference(2.5, ()), "from 1 to 1000 rows were expected, not 0"),
        (lambda: Reference(2.5, ((0.0,),) * 1001), "from 1 to 1000 rows were expected, not 1001"),
        (lambda: Reference(2.5, ((0.0,) * 1001,)), "at most 1000 numbers"),
        (lambda: Reference(2.5, ((0.0, 1.0), (0.0,))), "rows of one length"),
        (lambda: Reference(2.5, ((0.0, float("nan")),)), "action.reference.table: a finite number was expected, not nan"),
        (lambda: Reference(-1.0, ((0.0,),)), "frequency: -1 is not from 0"),
        (lambda: Action("position", ("a",), reference=Reference(1.0, ((0.0, 1.0),))), "2 columns for 1 driven joints"),
        (lambda: Action("position", ("a",), reference={"frequency": 1.0}), "action.reference: table is missing"),
        (lambda: Action("position", ("a",), reference=1.0), "action.reference: a table was expected, not 1.0"),
        (lambda: made.residual(commands=("vz",)), "unknown command in action.reference 'vz'"),
        (lambda: Joints(("a", "b"), kp=(1.0,)), "1 values for 2 joints"),
        (lambda: Joints(("a", "b"), kp=(1.0, -1.0)), "joints.kp of b: -1 is not from 0"),
        (lambda: Joints(("a", "a")), "'a' occurs twice"),
        (lambda: Joints(()), "at least one joint"),
        (lambda: Timing(0.02, 0.005, 5), "5 steps of 0.005 s make 0.025 s"),
        (lambda: Timing(0.0), "timing.control_dt"),
        (lambda: Recurrent(("h",), ()), "do not make pairs"),
        (lambda: made.contract(action=Action("position", ("FL_hop",))), "did you mean 'FL_hip'"),
        (lambda: made.contract((Term("q", "q", 1, joints=("FL_hop",)),)), "did you mean 'FL_hip'"),
        (lambda: made.contract((Term("q", "q", 11),)), "11 columns for 12 joints"),
        (lambda: made.contract((Term("c", "command", 2),)), "names 3 commands"),
        (lambda: made.contract((Term("c", "command", 1, commands=("vz",)),)), "unknown command"),
    ],
)
def test_a_wrong_contract_is_refused_in_one_sentence(wrong, says):
    with pytest.raises(BadInput, match=says) as error:
        wrong()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "a table was expected"),
        ("{}", "not of version 1"),
        ('{"version": 1}', "the contract: joints is missing"),
        ('{"version": 1, "joints": {"names": ["a"], "speed": 1}, "action": {}}', "unknown entry of joints 'speed'"),
        ('{"version": 1, "joints": {}, "action": {}}', "joints: names is missing"),
        (made.contract().json().replace('"version": 1', '"version": 2'), "another version"),
        (made.contract().json().replace("0.25", "NaN", 1), "a finite number was expected, not nan"),
        (made.contract().json().replace("0.25", "1" + "0" * 400, 1), "a finite number was expected"),
        (made.contract().json().replace('"sensed"', '"guessed"', 1), "'guessed' is not one of"),
        (made.residual().json().replace('"frequency": 2.5', '"speed": 2.5', 1), "unknown entry of action.reference 'speed'"),
        (made.contract().json().replace('"reference": null', '"reference": [1]'), "action.reference: a table was expected"),
    ],
)
def test_a_hostile_text_is_refused_in_one_sentence(text, says):
    with pytest.raises(BadInput, match=says):
        parse_contract(text)


def leaves(value: Any, path: tuple = ()) -> list[tuple]:
    if isinstance(value, dict):
        return [path, *(p for k, v in value.items() for p in leaves(v, (*path, k)))]
    if isinstance(value, list):
        return [path, *(p for i, v in enumerate(value) for p in leaves(v, (*path, i)))]
    return [path]


PLACES = leaves(json.loads(made.residual().json()))[1:]
junk = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.just([]),
    st.just({}),
    st.just([[1]]),
    st.just({"a": []}),
)


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(PLACES), junk)
def test_whatever_a_text_holds_it_is_a_contract_or_bad_input(place, value):
    table = json.loads(made.residual().json())
    at = table
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = value
    try:
        found = parse_contract(json.dumps(table))
    except BadInput as error:
        assert str(error)
    else:
        assert parse_contract(found.json()) == found
