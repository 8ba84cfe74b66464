"""What fails, alone and together, and what the robot is told then."""

import sys
import threading

import numpy as np
import pytest

from gapless.deploy.emulated import Emulated
from gapless.deploy.ladder import WHY, Ladder, Rung
from gapless.deploy.limits import limits_of
from gapless.deploy.link import Link
from gapless.deploy.plausible import Plausible
from gapless.deploy.safety import Safety
from gapless.robots import load_robot
from gapless.worlds import StandInSpec

pytestmark = pytest.mark.xdist_group("deploy")
QUADRUPED = load_robot("quadruped")
HOME = np.array([QUADRUPED.home[d.qpos] for d in QUADRUPED.drives])


def ends(fault, seconds=0.6):
    """Rung and reason of a standing robot whose readings a fault changes from 0.1 s on, and the layer itself."""
    limits, rng = limits_of(QUADRUPED), np.random.default_rng(0)
    safety, wanted = Safety(limits, QUADRUPED, 0.001), np.stack([HOME, 0 * HOME, limits.kp, limits.kd, 0 * HOME])
    frozen = None
    for i in range(round(1000 * seconds)):
        reading = {"q": HOME + 1e-4 * rng.normal(size=12), "dq": 0.01 * rng.normal(size=12), "time": 0.001 * i}
        reading |= {"imu": np.concatenate([[1, 0, 0, 0], 1e-3 * rng.normal(size=3)]), "temperature": np.full(12, 30.0)}
        if i >= 100:
            frozen = frozen or reading
            fault(reading, i, frozen)
        safety.see(reading["q"], reading["dq"], reading["imu"], reading["time"], 0.001 * i)
        safety.supply(reading["temperature"], 25.0, 0.001 * i)
        wanted[0] = HOME + 0.2 * np.sin(0.01 * i)
        safety.answer(wanted, True, 0.001 * i)
    return safety.rung, safety.ladder.reason, safety


def test_joints_count_more_than_an_imu_that_fails_with_them():
    def both(reading, i, frozen):
        reading["imu"][0] = np.nan
        reading["q"][3] += 1.0
        reading["dq"][3] = 1e6

    rung, reason, safety = ends(both)
    assert (rung, reason) == WHY["joints"]
    assert np.abs(safety.plausible.q - HOME).max() < 0.01 and np.abs(safety.plausible.dq).max() < 1.0


def test_a_robot_that_comes_down_without_its_imu_is_not_dropped_for_one_reading_that_is_late():
    def no_imu(reading, i, frozen):
        reading["imu"][:4] = np.nan

    rung, _, safety = ends(no_imu)
    safety.unseen(0.602)
    assert safety.rung is rung is Rung.CROUCH
    safety.unseen(0.75)
    assert safety.rung is Rung.CUT


def test_readings_that_are_mostly_wrong_are_a_fault_although_good_ones_come_between():
    def flaky(reading, i, frozen):
        if i % 10:
            reading["q"][1] = np.nan

    assert ends(flaky)[:2] == WHY["joints"]


def test_a_clock_that_leaps_or_runs_ahead_is_a_fault():
    def leaps(reading, i, frozen):
        reading["time"] += 100.0

    def ahead(reading, i, frozen):
        reading["time"] += 0.02 * (i - 100)

    assert ends(leaps)[:2] == ends(ahead)[:2] == WHY["clock"]


def test_one_wrong_stamp_is_left_out():
    def once(reading, i, frozen):
        reading["time"] = 0.0 if i == 200 else 7.0 if i == 300 else reading["time"]

    rung, _, safety = ends(once)
    assert rung is Rung.RUN and safety.plausible.left_out == 2


def test_joints_that_do_not_follow_their_targets_are_frozen_although_the_imu_lives():
    def frozen_joints(reading, i, frozen):
        reading["q"], reading["dq"] = frozen["q"].copy(), frozen["dq"].copy()

    assert ends(frozen_joints)[:2] == WHY["joints"]


def test_a_temperature_that_is_no_number_is_too_hot():
    def nothing(reading, i, frozen):
        reading["temperature"][2] = np.nan

    assert ends(nothing)[1] == WHY["heat"][1]


class Hangs:
    """A robot whose line works and whose controller sends the same state for ever."""

    joints, period, realtime = QUADRUPED.joints, 0.001, True

    def poll(self):
        return True

    def latest(self):
        return {"time": 5.0, "q": HOME, "dq": 0 * HOME, "quat": np.array([1.0, 0, 0, 0]), "gyro": np.zeros(3)}


def test_the_same_state_sent_again_is_no_reading():
    link = Link(Hangs(), QUADRUPED)
    assert link.look() and not link.look()


@pytest.mark.parametrize(("name", "air"), [("quadruped", True), ("arm", False)])
def test_a_robot_whose_joints_are_not_known_is_told_to_stand_still_and_nothing_else(name, air):
    """Not to go on at the speed that was measured last, which drives a joint into its end."""
    model = load_robot(name)
    limits = limits_of(model)
    for seed in range(4):
        rng, robot = np.random.default_rng(seed), Emulated(StandInSpec(name, in_air=air, seed=seed))
        safety, n, lost = Safety(limits, model, 0.001), len(limits.joints), 100 + 70 * seed
        safety.plausible = Plausible(limits, "quat" in robot.readings())
        home = robot.twin.home[robot._qpos]
        wanted = np.stack([home, 0 * home, limits.kp, limits.kd, 0 * home])
        for i in range(lost + 400):
            reading = robot.readings()
            imu = np.concatenate([reading["quat"], reading["gyro"]]) if "quat" in reading else np.zeros(0)
            q = reading["q"].copy()
            q[0] = np.nan if i >= lost else q[0]
            safety.see(q, reading["dq"], imu, float(reading["time"]), robot.time)
            if i % 60 == 0:
                wanted[0] = home + rng.choice([-2.0, 2.0], n)
            command = safety.answer(wanted, True, robot.time)
            robot.take(command)
            robot.step()
        assert not command[[1, 2, 4]].any() and command[3].all()
        assert not robot.counts[:6].any()


def test_a_rung_that_one_thread_climbed_to_is_not_left_by_another():
    limits, before = limits_of(QUADRUPED), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(200):
            ladder, start = Ladder(limits), threading.Barrier(3)

            def climb(why, ladder=ladder, start=start):
                start.wait()
                ladder.climb(why, 0.0, HOME, HOME)

            threads = [threading.Thread(target=climb, args=(why,)) for why in ("watch", "silent", "emergency")]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert ladder.rung is Rung.CUT
            assert [rung for _, rung, _ in ladder.events] == sorted((r for _, r, _ in ladder.events), key=lambda r: Rung[r])
    finally:
        sys.setswitchinterval(before)


TWO_ARMS = """
<mujoco><compiler angle="radian"/><worldbody>
  <body pos="-0.2 0 1"><joint name="left" axis="0 1 0" range="-2 2" armature="0.01"/>
    <geom type="capsule" fromto="0 0 0 0 0 0.5" size="0.04"/></body>
  <body pos="0.2 0 1"><joint name="right" axis="0 1 0" range="-2 2" armature="0.01"/>
    <geom type="capsule" fromto="0 0 0 0 0 0.5" size="0.04"/></body>
</worldbody><actuator>
  <position name="left" joint="left" kp="60" kv="2" forcerange="-30 30"/>
  <position name="right" joint="right" kp="60" kv="2" forcerange="-30 30"/>
</actuator></mujoco>
"""


def test_targets_that_lead_links_into_each_other_are_not_followed_between_two_answers_either(tmp_path):
    (tmp_path / "two.xml").write_text(TWO_ARMS)
    model, robot = load_robot(str(tmp_path / "two.xml")), Emulated(StandInSpec(str(tmp_path / "two.xml")))
    limits = limits_of(model)
    safety, wanted = Safety(limits, model, 0.001), np.stack([np.zeros(2), np.zeros(2), limits.kp, limits.kd, np.zeros(2)])
    for i in range(1500):
        reading = robot.readings()
        safety.see(reading["q"], reading["dq"], np.zeros(0), float(reading["time"]), robot.time)
        wanted[0] = (0.1, -0.1) if i < 500 else (0.9, -0.9)  # they cross: the links would touch at 0.33 rad
        robot.take(safety.answer(wanted, i % 20 == 0, robot.time))
        robot.step()
        assert not robot.data.ncon
    assert robot.data.qpos == pytest.approx([0.1, -0.1], abs=0.05)
    assert safety.collisions.refused == 50
