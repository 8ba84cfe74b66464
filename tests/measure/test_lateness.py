"""Commands that come unevenly late or are lost are told by joints that agree, and nothing else is taken for that."""

import pytest

from gapless.gap import measure
from gapless.measure import uneven
from gapless.twin import as_given
from gapless.worlds import StandInSpec as Spec
from tests.measure.made import recorded

NOISE = {"noise_q": 0.0005}
STEP = 0.0025  # s, of the arm's twin


def traced(change, robot="arm", **more):
    _, log = recorded(Spec(robot, 3, change=change, sensors=NOISE, **{"tolerance": 0.0} | more), 8.0)
    return measure(as_given(robot, log), [log]).traces


def judged(change, robot="arm", **more):
    return uneven(traced(change, robot, **more), STEP)


@pytest.mark.parametrize(
    ("change", "spread"),
    [({"latency.jitter": "+0.012"}, 0.012 / 12**0.5), ({"latency.drop": "+0.08"}, 0.02 * (0.08 * 0.92) ** 0.5)],
)
def test_commands_that_come_unevenly_late_are_seen_and_measured(change, spread):
    found = judged(change)
    assert found is not None
    assert found.share > 0.2
    assert 0.3 * spread < found.spread < 1.5 * spread
    assert f"{1e3 * found.spread:.2g} ms" in found.sentence


def test_what_lateness_explains_is_taken_off_the_errors():
    before = traced({"latency.drop": "+0.08"})
    found = uneven(before, STEP)
    assert found is not None
    left, error = ((t[0].error("twin") ** 2).mean(axis=0) for t in (found.traces, before))
    assert (left < 0.8 * error).all()


@pytest.mark.parametrize(
    ("change", "more"),
    [
        ({}, {}),
        ({"latency.action": "+0.02"}, {}),
        ({"gains.kp/*": "x0.7", "friction.coulomb/*": "+0.05"}, {"tolerance": 1.0}),
        ({"inertia.payload": "+0.02"}, {}),
    ],
)
def test_other_mismatches_are_not_taken_for_it(change, more):
    assert judged(change, **more) is None


def test_one_joint_alone_says_nothing():
    assert judged({"latency.drop": "+0.08"}, robot="bench") is None


def test_torque_drives_have_no_commanded_position_to_be_late():
    assert judged({}, robot="pendulum") is None
