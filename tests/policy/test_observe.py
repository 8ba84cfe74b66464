"""Observer: each term against its definition, each history layout against the framework that has it."""

import dataclasses
from collections import deque

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.spatial.transform import Rotation

from gapless.errors import BadInput
from gapless.policy.contract import Contract
from gapless.policy.gait import Gait
from gapless.policy.observe import Observer
from gapless.policy.parts import Action, Conventions, Joints, Observation, Term
from tests.policy import made


def shown(term: Term, n: int = 4, **changes) -> tuple[np.ndarray, dict, np.ndarray, np.ndarray]:
    contract = dataclasses.replace(made.contract((term,)), **changes)
    readings, command, action = made.frame(n, np.random.default_rng(1))
    return Observer(contract, n)(readings, command, action), readings, command, action


def test_an_observation_is_the_terms_one_after_the_other():
    readings, command, action = made.frame(5, np.random.default_rng(0))
    found = Observer(made.contract(), 5)(readings, command, action)
    gravity = Rotation.from_quat(readings["quat"], scalar_first=True).inv().apply([0, 0, -1])
    expected = np.concatenate(
        [
            0.25 * readings["gyro"],
            gravity,
            command * [2, 2, 0.25],
            readings["q"] - made.DEFAULT,
            0.05 * np.clip(readings["dq"], -20, 20),
            action,
        ],
        axis=1,
    )
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_an_upright_robot_sees_gravity_down():
    contract = made.contract((Term("gravity", "gravity", 3),))
    readings, command, action = made.frame(1, np.random.default_rng(0))
    readings["quat"] = np.array([[1.0, 0, 0, 0]])
    np.testing.assert_allclose(Observer(contract, 1)(readings, command, action), [[0, 0, -1]])
    upward = dataclasses.replace(contract, conventions=Conventions(gravity=(0, 0, 1)))
    np.testing.assert_allclose(Observer(upward, 1)(readings, command, action), [[0, 0, 1]])


def test_joints_and_commands_go_by_name():
    found, readings, _, _ = shown(Term("knees", "dq", 2, joints=("RR_calf", "FL_calf")))
    np.testing.assert_allclose(found, readings["dq"][:, [11, 2]], rtol=1e-6)
    found, readings, _, _ = shown(Term("hip", "q", 1, joints=("FR_thigh",)))
    np.testing.assert_allclose(found, readings["q"][:, [4]] - 0.8, atol=1e-6)
    found, _, command, _ = shown(Term("turn", "command", 2, commands=("yaw_rate", "vx")))
    np.testing.assert_allclose(found, command[:, [2, 0]], rtol=1e-6)
    found, _, _, action = shown(Term("a", "last_action", 2, joints=("FR_hip", "FL_hip")))
    np.testing.assert_allclose(found, action[:, [3, 0]])


def test_a_quaternion_is_shown_in_the_contracts_order():
    found, readings, _, _ = shown(Term("quat", "quat", 4), conventions=Conventions("xyzw"))
    np.testing.assert_allclose(found, readings["quat"][:, [1, 2, 3, 0]], rtol=1e-6)


def test_a_users_own_term_is_read_as_it_is():
    contract = made.contract((Term("feet", "load", 4, 0.1, provenance="estimated"),))
    readings, command, action = made.frame(3, np.random.default_rng(0))
    load = np.arange(12.0).reshape(3, 4)
    np.testing.assert_allclose(Observer(contract, 3)(readings | {"load": load}, command, action), 0.1 * load, rtol=1e-6)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("raw", lambda a: a),
        ("clipped", lambda a: np.clip(a, -0.5, 0.5)),
        ("processed", lambda a: 0.3 * np.clip(a, -0.5, 0.5) + made.DEFAULT),
    ],
)
def test_the_last_action_is_shown_as_the_contract_says(kind, expected):
    action = Action("position", made.JOINTS, 0.3, made.DEFAULT, (-0.5, 0.5))
    contract = made.contract((Term("a", "last_action", 12),), action, last_action=kind)
    readings, command, given_ = made.frame(4, np.random.default_rng(2))
    np.testing.assert_allclose(Observer(contract, 4)(readings, command, given_), expected(given_), atol=1e-6)


def test_a_clock_is_shown_by_the_gait():
    term = Term("clock", "clock", 2, frequency=2.5)
    observer, gait = Observer(made.contract((term,)), 3), Gait(made.contract((term,)), 3)
    readings, command, action = made.frame(3, np.random.default_rng(0))
    for _ in range(7):
        np.testing.assert_allclose(observer(readings, command, action, gait), gait.clock(term, command), atol=1e-6)
        gait.advance(command, {})
    with pytest.raises(BadInput, match="term 'clock': a clock is shown by the robots' Gait, which is missing"):
        observer(readings, command, action)


@pytest.mark.parametrize("order", ["oldest_first", "newest_first"])
@pytest.mark.parametrize("warmup", ["repeat", "zeros"])
def test_a_look_that_is_not_kept_shows_the_same_and_leaves_no_trace(order, warmup):
    contract = made.contract(made.terms(history=4), order=order, warmup=warmup)
    rng = np.random.default_rng(0)
    plain, looked = Observer(contract, 3), Observer(contract, 3)
    for period in range(12):
        if period in (0, 6):
            for observer in (plain, looked):
                observer.reset(np.array([True, False, True]))
        looked(*made.frame(3, rng), keep=False)
        frame = made.frame(3, rng)
        seen = looked(*frame, keep=False)
        np.testing.assert_array_equal(seen, looked(*frame))
        np.testing.assert_array_equal(seen, plain(*frame))


# the frameworks' history buffers, written out as they keep them for one robot

NAMES = ("actions", "base_ang_vel", "dof_pos")
KINDS = {"actions": "a", "base_ang_vel": "w", "dof_pos": "p"}
SIZES = {"actions": 2, "base_ang_vel": 3, "dof_pos": 4}
LENGTH = 3


def isaac_lab(frames: list[dict]) -> np.ndarray:
    """CircularBuffer a term: the first frame fills it, oldest first, term by term in the order of the configuration."""
    order = ("dof_pos", "base_ang_vel", "actions")
    buffers = {k: deque([frames[0][k]] * LENGTH, maxlen=LENGTH) for k in order}
    for frame in frames:
        for k in order:
            buffers[k].append(frame[k])
    return np.concatenate([np.concatenate(list(buffers[k])) for k in order])


def holosoma(frames: list[dict]) -> np.ndarray:
    """A buffer of zeros a term, oldest first, terms sorted by name."""
    buffers = {k: deque([np.zeros(SIZES[k])] * LENGTH, maxlen=LENGTH) for k in NAMES}
    for frame in frames:
        for k in NAMES:
            buffers[k].append(frame[k])
    return np.concatenate([np.concatenate(list(buffers[k])) for k in sorted(NAMES)])


def humanoidverse(frames: list[dict]) -> np.ndarray:
    """The present frame's terms and "history_actor" among them, all sorted; the past is asked before the present joins it."""
    history = {k: np.zeros((LENGTH, SIZES[k])) for k in NAMES}
    for frame in frames:
        past = np.concatenate([history[k].ravel() for k in sorted(NAMES)])
        parts = frame | {"history_actor": past}
        found = np.concatenate([parts[k] for k in sorted(parts)])
        for k in NAMES:
            history[k] = np.concatenate([frame[k][None], history[k][:-1]])
    return found


def falcon(frames: list[dict]) -> np.ndarray:
    """One row of frames, each sorted by name; a new frame pushes the oldest out at the front."""
    size = sum(SIZES.values())
    row = np.zeros(size * LENGTH)
    for frame in frames:
        row = np.concatenate([row[size:], np.concatenate([frame[k] for k in sorted(NAMES)])])
    return row


def term(name: str, history: int = LENGTH, lag: int = 0) -> Term:
    return Term(name if not lag else f"history_{name}", KINDS[name], SIZES[name], history=history, lag=lag)


LAYOUTS = {
    "isaac_lab": (isaac_lab, Observation((term("dof_pos"), term("base_ang_vel"), term("actions")))),
    "holosoma": (holosoma, Observation(tuple(term(k) for k in NAMES), warmup="zeros")),
    "humanoidverse": (
        humanoidverse,
        Observation(
            (*(term(k, 1) for k in NAMES), *(term(k, lag=1) for k in NAMES)),
            order="newest_first",
            warmup="zeros",
        ),
    ),
    "falcon": (falcon, Observation(tuple(term(k) for k in NAMES), "frame", warmup="zeros")),
}


@pytest.mark.parametrize("framework", LAYOUTS)
@settings(max_examples=25, deadline=None)
@given(periods=st.integers(1, 12), restart=st.integers(0, 8), seed=st.integers(0, 2**31))
def test_history_is_laid_out_as_in(framework, periods, restart, seed):
    reference, observation = LAYOUTS[framework]
    contract = Contract(Joints(("a",)), Action("position", ("a",)), observation)
    rng = np.random.default_rng(seed)
    n = 3
    frames = [{k: rng.normal(size=(n, SIZES[k])).astype(np.float32) for k in NAMES} for _ in range(periods)]
    observer = Observer(contract, n)
    since = 0
    for i, frame in enumerate(frames):
        if i == restart:
            observer.reset(np.array([False, True, False]))
            since = i
        found = observer({KINDS[k]: v for k, v in frame.items()}, np.zeros((n, 0)), np.zeros((n, 1)))
    for robot, start in ((0, 0), (1, since), (2, 0)):
        expected = reference([{k: v[robot] for k, v in f.items()} for f in frames[start:]])
        np.testing.assert_array_equal(found[robot], expected.astype(np.float32))


def test_layouts_of_equal_width_differ():
    """What the contract is for: the same numbers in another order."""
    rng = np.random.default_rng(0)
    frames = [{k: rng.normal(size=SIZES[k]) for k in NAMES} for _ in range(2)]
    found = [isaac_lab(frames), holosoma(frames), falcon(frames)]
    assert len({len(f) for f in found}) == 1
    assert all(not np.allclose(a, b) for i, a in enumerate(found) for b in found[:i])


def test_terms_may_have_histories_of_their_own():
    observed = (Term("gyro", "gyro", 3, history=2), Term("command", "command", 3), Term("q", "q", 12, history=4))
    contract = made.contract(observed)
    rng = np.random.default_rng(0)
    observer, frames = Observer(contract, 2), [made.frame(2, rng) for _ in range(5)]
    for readings, command, action in frames:
        found = observer(readings, command, action)
    expected = np.concatenate(
        [*(f[0]["gyro"] for f in frames[-2:]), frames[-1][1], *(f[0]["q"] - made.DEFAULT for f in frames[-4:])], axis=1
    )
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_observations_that_were_given_out_do_not_change():
    for history in (1, 3):
        observer, rng = Observer(made.contract(made.terms(history)), 2), np.random.default_rng(0)
        first = observer(*made.frame(2, rng))
        kept = first.copy()
        for _ in range(4):
            observer(*made.frame(2, rng))
        np.testing.assert_array_equal(first, kept)


def test_n_robots_see_what_each_would_see_alone():
    contract = made.contract((*made.terms(history=3), Term("clock", "clock", 2, frequency=2.0)))
    rng = np.random.default_rng(0)
    together, alone = (Observer(contract, 4), Gait(contract, 4)), [(Observer(contract, 1), Gait(contract, 1)) for _ in range(4)]
    for period in range(6):
        readings, command, action = made.frame(4, rng)
        command[rng.random(4) < 0.3] = 0.0
        if period == 3:
            for which, robots in (([True, False, False, True], together), ([True], alone[0]), ([True], alone[3])):
                for part in robots:
                    part.reset(np.array(which))
        found = together[0](readings, command, action, together[1])
        together[1].advance(command, {})
        for i, (observer, gait) in enumerate(alone):
            one = slice(i, i + 1)
            mine = observer({k: v[one] for k, v in readings.items()}, command[one], action[one], gait)
            gait.advance(command[one], {})
            np.testing.assert_array_equal(found[one], mine)


def test_what_does_not_fit_is_refused_with_its_name():
    readings, command, action = made.frame(2, np.random.default_rng(0))
    observer = Observer(made.contract(), 2)
    with pytest.raises(BadInput, match="term 'q': reading 'q' has shape"):
        observer(readings | {"q": readings["q"][:, :11]}, command, action)
    with pytest.raises(BadInput, match="term 'gyro': unknown reading 'gyro'"):
        observer({k: v for k, v in readings.items() if k != "gyro"}, command, action)
    with pytest.raises(BadInput, match="command and last action have shapes"):
        observer(readings, command[:, :2], action)
    with pytest.raises(BadInput, match="a mask of robots must be bool"):
        observer.reset([0, 1])
    with pytest.raises(BadInput, match="at least one robot"):
        Observer(made.contract(), 0)
    with pytest.raises(BadInput, match="does not say what goes into the network"):
        Observer(made.contract(()), 1)
    bare = Contract(Joints(("a",)), Action("position", ("a",)), Observation((Term("q", "q", 1),)))
    with pytest.raises(BadInput, match="does not say the default position"):
        Observer(bare, 1)
    clock = Contract(Joints(("a",)), Action("position", ("a",)), Observation((Term("c", "clock", 2, frequency=1.0),)))
    with pytest.raises(BadInput, match="control_dt"):
        Observer(clock, 1)
