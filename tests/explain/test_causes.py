"""Explain names the secrets of stand-ins, and refuses what it cannot explain."""

from dataclasses import replace

import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.explain.causes import Explanation, explain
from gapless.logs import Log
from gapless.plain import plain
from gapless.twin import Flex, Friction, Twin
from gapless.worlds import StandIn, StandInSpec as Spec, plan_motion as plan, record

pytestmark = pytest.mark.xdist_group("causes")  # one worker makes the fixtures, once

SENSORS = {"noise_q": 0.0005, "noise_dq": 0.02, "quantum_q": 0.0004}


def twin_of(robot: str = "bench") -> Twin:
    return Twin.load(robot, add=[Friction(full=True)])


def log_of(seed: int, seconds: float = 20.0, **secrets: object) -> Log:
    stand_in = StandIn(Spec("bench", seed, sensors=SENSORS, **secrets))  # type: ignore[arg-type]
    return record(stand_in, plan("rich", twin_of(), seconds, np.random.default_rng(seed)))


@pytest.fixture(scope="module")
def stiff() -> Explanation:
    task = {"gains.kp": 0.1, "latency.action": 0.4}
    return explain(twin_of(), [log_of(11, change={"gains.kp/*": "x0.5"})], task=task)


def test_a_gain_that_is_half_is_named_with_its_value(stiff: Explanation) -> None:
    first = stiff.mechanisms[0]
    assert stiff.verdict == "explained" and first.name == "gains.kp"
    kp = first.parameters["gains.kp/servo"]
    assert kp.value == pytest.approx(kp.nominal / 2, rel=0.1)
    assert kp.unit == "N m/rad"
    assert first.low <= first.share <= first.high and first.share > 0.5


def test_shares_and_remainder_make_up_the_gap(stiff: Explanation) -> None:
    total = sum(c.share for c in stiff.mechanisms) + stiff.tolerances + stiff.remainder.share
    assert total == pytest.approx(1.0, abs=0.02)


def test_the_result_is_plain_data(stiff: Explanation) -> None:
    import json

    data = json.loads(json.dumps(plain(stiff), allow_nan=False))
    assert set(data) >= {"verdict", "mechanisms", "remainder", "next", "seconds_used"}
    assert set(data["mechanisms"][0]) >= {"name", "share", "low", "high", "group"}
    assert set(data["remainder"]) >= {"share", "where"}


def test_a_robot_within_its_tolerances_has_no_gap() -> None:
    found = explain(twin_of(), [log_of(12)])
    assert found.verdict == "none" and not found.mechanisms


def test_play_that_the_twin_lacks_is_named() -> None:
    found = explain(twin_of(), [log_of(13, add={"backlash": {"joints": "*", "width": 0.04}})])
    assert found.mechanisms[0].name == "backlash.width"


def test_a_soft_gear_is_named_with_its_stiffness_where_the_twin_has_one() -> None:
    found = explain(
        Twin.load("bench", add=[Friction(full=True), Flex(stiffness=40.0, damping=0.05)]),
        [log_of(14, add={"flex": {"stiffness": 12.0, "damping": 0.05}})],
    )
    first = found.mechanisms[0]
    assert first.name == "flex.stiffness"
    assert first.parameters["flex.stiffness/servo"].value == pytest.approx(12.0, rel=0.1)


def test_what_mechanisms_cost_the_task_is_ranked_beside(stiff: Explanation) -> None:
    assert list(stiff.task) == ["latency.action", "gains.kp"]


def test_the_same_logs_give_the_same_answer() -> None:
    log = log_of(15, seconds=8.0, change={"latency.action": 0.02})
    first, second = (explain(twin_of(), [log]) for _ in range(2))
    assert plain(replace(first, seconds=0.0)) == plain(replace(second, seconds=0.0))
    assert (first.seconds_used, first.seconds_given) == pytest.approx((8.0, 8.0), abs=0.1)


def test_a_log_too_short_to_hold_anything_out_is_refused() -> None:
    with pytest.raises(BadInput, match="usable data: record at least 4 s"):
        explain(twin_of(), [log_of(1, seconds=1.0)])


def test_a_log_of_another_robot_is_refused_by_the_joint_it_lacks() -> None:
    with pytest.raises(BadInput, match="servo|shoulder_pan"):
        explain(twin_of("arm"), [log_of(1, seconds=6.0)])


def test_no_log_is_refused() -> None:
    with pytest.raises(BadInput, match="at least one log"):
        explain(twin_of(), [])
