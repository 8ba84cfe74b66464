"""The safety layer: whatever is asked for, the robot's own auditor finds no limit exceeded, and faults end on their rungs."""

import numpy as np
import pytest

from bench.safety import RIGHT, adversarial, faults
from gapless.deploy.emulated import Emulated
from gapless.deploy.ladder import HELD, SINKS, WHY, Ladder, Rung
from gapless.deploy.limits import limits_of
from gapless.deploy.plausible import Fault, Plausible
from gapless.deploy.safety import Safety
from gapless.errors import BadInput
from gapless.robots import load_robot
from gapless.worlds import StandInSpec


def test_no_attack_exceeds_a_limit_at_the_robots_side_and_the_same_attacks_do_without_the_layer():
    attacked, bare = adversarial(12_000, seed=11), adversarial(3_000, protected=False, seed=11)
    assert attacked["exceeded"] == 0
    assert bare["exceeded"] > 1000


@pytest.mark.parametrize("tighter", [{"torque": 2.0}, {"velocity": 6.0}, {"scale": 0.3}], ids=str)
def test_limits_that_are_tighter_are_kept_as_well(tighter):
    assert adversarial(9_000, seed=3, tighter=tighter)["exceeded"] == 0


def test_limits_are_kept_for_robots_that_are_commanded_less_often():
    assert adversarial(9_000, seed=3, period=0.005)["exceeded"] == 0


def test_faults_end_on_their_rungs():
    kinds = ("nan_q", "nan_quat", "policy_late", "silent")  # one a rung and cause; bench.safety has all
    told = faults(len(kinds), seed=4, kinds=kinds)
    assert {WHY[RIGHT[kind][0]][0] for kind in kinds} >= {Rung.HOLD, Rung.CROUCH, Rung.DAMP}
    assert told["wrong"] == []
    assert told["exceeded"] == 0


@pytest.fixture(scope="module")
def arm():
    return load_robot("arm")


def test_limits_can_only_be_made_tighter(arm):
    limits = limits_of(arm)
    assert (limits.tighter({"torque": 1.0}).torque <= 1.0).all()
    assert (limits.tighter({"scale": 0.5}).velocity == 0.5 * limits.velocity).all()
    for wider in ({"torque": 1e6}, {"scale": 2.0}, {"tilt": 3.0}, {"torque": -1.0}, {"torq": 1.0}):
        with pytest.raises(BadInput):
            limits.tighter(wider)


def test_a_stop_is_latched_climbs_only_and_is_released_by_a_person(arm):
    ladder, out = Ladder(limits_of(arm)), np.zeros((5, 6))
    ladder.climb("policy late", 1.0, np.ones(6), np.full(6, 10.0))
    ladder.command(1.1, out)
    assert (out[0] == 1.0).all() and (out[2] == 10.0).all()
    ladder.command(1.0 + HELD + 0.01, out)
    assert ladder.rung is Rung.CROUCH
    ladder.command(1.0 + HELD + 0.01 + 0.5 * SINKS, out)
    assert np.allclose(out[2], 5.0)
    ladder.climb("tilt", 3.0, np.zeros(6), np.zeros(6))
    ladder.climb("policy late", 3.1, np.zeros(6), np.zeros(6))
    ladder.command(3.2, out)
    assert ladder.rung is Rung.DAMP and not out[2].any() and out[3].all()
    assert ladder.reason == WHY["policy late"][1] and ladder.latched
    ladder.release()
    assert ladder.rung is Rung.RUN


def test_a_glitch_is_left_out_and_a_lasting_fault_is_named(arm):
    limits = limits_of(arm)
    good, q, rng = Plausible(limits, False), np.zeros(6), np.random.default_rng(0)
    for i in range(50):
        assert (
            good.take(q + 1e-4 * rng.normal(size=6), 1e-3 * rng.normal(size=6), np.zeros(0), 0.001 * i, 0.001 * i) is Fault.NONE
        )
    bad = q.copy()
    bad[2] = np.nan
    assert good.take(bad, q, np.zeros(0), 0.05, 0.05) is Fault.NONE
    assert good.left_out == 1 and np.isfinite(good.q).all()
    named = [good.take(bad, q, np.zeros(0), 0.001 * i, 0.001 * i) for i in range(51, 70)]
    assert named[-1] is Fault.JOINT_NAN


def test_the_drives_own_loop_stays_below_the_torque_limit_whatever_the_target():
    spec = StandInSpec("bench", seed=1)
    robot, model = Emulated(spec), load_robot("bench")
    limits = limits_of(model).tighter({"torque": 1.0})
    safety, wanted = Safety(limits, model, 0.001), np.array([[9.0], [0.0], [50.0], [1.0], [0.0]])
    most = 0.0
    for i in range(400):
        reading = robot.readings()
        safety.see(reading["q"], reading["dq"], np.zeros(0), float(reading["time"]), robot.time)
        wanted[0] = 9.0 if i // 40 % 2 else -9.0
        robot.take(safety.answer(wanted, True, robot.time))
        robot.step()
        most = max(most, float(np.abs(robot._asked).max()) if i > 2 else 0.0)
    assert 0.3 < most <= 1.0


def test_links_are_not_driven_into_each_other():
    model = load_robot("arm")
    safety = Safety(limits_of(model), model, 0.001)
    assert safety.collisions.clear(np.zeros(6), np.zeros(6), safety.limits)
    assert np.array_equal(safety.collisions.last, np.zeros(6))
