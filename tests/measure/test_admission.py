"""Admission: good logs pass as they are, what is damaged is cut out, and what is false is refused."""

import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.logs import Log, Signal, find, read
from gapless.measure import admit, admitted_part, usable
from gapless.twin import Friction, Twin, as_given
from tests.data import DATA, needs_data

TIME = np.arange(600) * 0.02
MOTION = 0.5 * np.sin(3 * TIME)[:, None]
TOLD = {"q_cmd": ["servo"]}


@pytest.fixture(scope="module")
def bench() -> Twin:
    return Twin.load("bench", add=[Friction(full=True)])


def a_log(**signals: np.ndarray) -> Log:
    return Log.from_arrays(["servo"], TIME, {"q": 0.95 * MOTION, "q_cmd": MOTION} | signals)


def changed(values: np.ndarray, rows: slice, to: float) -> np.ndarray:
    out = values.copy()
    out[rows] = to
    return out


@needs_data
@pytest.mark.parametrize(
    ("mapping", "logs", "model", "gains"),
    [
        ("so101", "so101/motions", "so101/model/so101.xml", (None, None)),
        ("go2_inair", "go2_inair/go2_inair.npz", "go2_inair/model/go2_fixed_base.xml", (20.0, 1.5)),
        ("double_pendulum", "double_pendulum/design_C.1", "double_pendulum/model/double_pendulum.xml", (None, None)),
        ("xl330", "xl330/logs", "xl330/model/xl330_bench.xml", (None, None)),
    ],
)
def test_every_real_log_passes_untouched(mapping, logs, model, gains):
    given = [read(path, mapping) for path in find(DATA / logs)[:12]]
    admitted = admit(as_given(DATA / model, given[0], *gains), given)
    assert all(one is other for one, other in zip(admitted.logs, given, strict=True))
    assert admitted.notes == []


def test_a_drive_that_the_log_says_is_off_need_not_follow(bench):
    stands = np.full((600, 1), 0.1)
    with pytest.raises(BadInput, match="told to move"):
        admit(bench, [a_log(q=stands)])
    half = np.where(TIME[:, None] < 6, 0.95 * MOTION, stands)
    admit(bench, [a_log(q=half, enabled=(TIME[:, None] < 6).astype(float))])


def test_a_range_that_is_left_by_a_little_is_noted_and_by_much_refused(bench):
    noted = admit(bench, [a_log(q=0.95 * MOTION + 3.1, q_cmd=MOTION + 3.1)])
    assert "widen its range" in noted.notes[0]
    with pytest.raises(BadInput, match=r"encoder's zero \(off by about 5 rad"):
        admit(bench, [a_log(q=0.95 * MOTION + 5, q_cmd=MOTION + 5)])


def test_a_lost_command_is_the_one_before_and_a_long_hole_is_cut_out():
    lost = changed(MOTION, slice(100, 105), np.nan)
    kept, notes = usable(a_log(q_cmd=lost), ["servo"], TOLD)
    assert notes == []
    assert (kept["q_cmd"].values[100:105] == MOTION[99]).all()
    kept, notes = usable(a_log(q_cmd=changed(MOTION, slice(100, 200), np.nan)), ["servo"], TOLD)
    assert "q_cmd is not readable" in notes[0]
    assert kept["q"].time[0] == pytest.approx(TIME[200], abs=0.021)
    assert np.isfinite(kept["q_cmd"].values).all()


def test_the_command_in_force_where_a_cut_begins_stays():
    slow = Log(
        {
            "q": a_log(q=changed(0.95 * MOTION, slice(0, 150), np.nan))["q"],
            "q_cmd": Log.from_arrays(["servo"], np.arange(12.0), {"q_cmd": np.arange(12.0)[:, None] / 10})["q_cmd"],
        },
        ("servo",),
    )
    kept, _ = usable(slow, ["servo"], TOLD)
    assert kept["q"].time[0] == pytest.approx(3.0)
    assert kept.at("q_cmd", np.array([3.5]))[0, 0] == pytest.approx(0.3)


def test_a_spike_is_a_missing_sample_and_fast_motion_is_none():
    kept, _ = usable(a_log(q=changed(0.95 * MOTION, slice(300, 301), 40.0)), ["servo"], TOLD)
    assert np.isnan(kept["q"].values[300, 0])
    assert np.isfinite(kept["q"].values).sum() == 599
    shaking = a_log(q=0.3 * np.sin(2 * np.pi * 9 * TIME)[:, None])  # 9 Hz: 17 rad/s
    assert usable(shaking, ["servo"], TOLD) == (shaking, [])


def test_clocks_that_lie_are_refused(bench):
    log = a_log()
    back = Log.from_arrays(["servo"], np.where(TIME > 6, TIME - 3, TIME), {k: log[k].values for k in ("q", "q_cmd")})
    with pytest.raises(BadInput, match="backwards"):
        admit(bench, [back])
    late = Log({"q": log["q"], "q_cmd": Log.from_arrays(["servo"], TIME + 100, {"q_cmd": MOTION})["q_cmd"]}, ("servo",))
    with pytest.raises(BadInput, match="not one clock"):
        admit(bench, [late])


def test_no_log_at_all_is_refused(bench):
    with pytest.raises(BadInput, match="no log"):
        admit(bench, [])


@needs_data
def test_the_gripper_of_the_z1_closes_before_its_range_ends_and_no_other_joint_stops():
    log = read(DATA / "z1/traj_0.pt", "z1")
    (said,) = admit(as_given(DATA / "z1/model/z1.xml", log), [log]).notes
    assert "q of jointGripper stops at about -0.0" in said and "the model's range ends at 0.050 rad" in said


def test_replay_lets_in_what_stands_still_and_fit_does_not(bench):
    still = a_log(q=0 * MOTION, q_cmd=0 * MOTION)
    part, (said,) = admitted_part(bench, still)
    assert part == still
    assert "no joint moves, so it says little" in said
    with pytest.raises(BadInput, match="no joint moves"):
        admit(bench, [still])


def test_a_zero_that_is_off_is_noted(bench):
    _, (said,) = admitted_part(bench, a_log(q=0.95 * MOTION + 0.3))
    assert "q of servo is +0.299 rad" in said and "check its zero" in said


def test_milliseconds_are_not_seconds_at_any_rate_of_a_logger(bench):
    for rate in (50, 200, 500, 1000, 2000):
        log = Log.from_arrays(["servo"], np.arange(600) * 1e3 / rate, {"q": 0.95 * MOTION, "q_cmd": MOTION})
        with pytest.raises(BadInput, match="is the time in ms"):
            admitted_part(bench, log)


def test_joints_that_carry_others_and_were_not_measured_are_named(tmp_path):
    path = tmp_path / "cart.xml"
    path.write_text(
        '<mujoco><worldbody><body name="cart"><joint name="rail" type="slide" axis="1 0 0"/><geom size=".1"/><body name="link">'
        '<joint name="servo"/><geom size=".05" pos="0 0 -.2"/><body><joint name="tip"/><geom size=".01" pos="0 0 -.3"/></body>'
        '</body></body></worldbody><actuator><position joint="servo" kp="5" kv=".3"/></actuator></mujoco>'
    )
    (note,) = admit(as_given(path), [a_log()]).notes
    assert "rail of cart move by themselves" in note and "tip" not in note
    rail = np.zeros((600, 1))
    logged = Log.from_arrays(
        ["servo", "rail"], TIME, {"q": np.hstack([0.95 * MOTION, rail]), "q_cmd": np.hstack([MOTION, rail])}
    )
    assert not [n for n in admit(as_given(path, logged), [logged]).notes if "rail" in n]


def test_a_pause_in_which_nobody_knows_what_was_told_is_left_out_and_seldom_commands_are_none(bench):
    during = (TIME < 8) | (TIME > 10)
    log = Log.from_arrays(["servo"], TIME[during], {"q": 0.95 * MOTION[during], "q_cmd": MOTION[during]})
    admitted = admit(bench, [log])
    assert admitted.logs[0]["q"].time[-1] < 8.1 and "elsewhere nothing was recorded" in admitted.notes[0]
    steps = Log({"q": Signal("q", TIME, 0.3 * np.sign(MOTION), ("servo",)),
                 "q_cmd": Signal("q_cmd", TIME[::52], 0.3 * np.sign(MOTION)[::52], ("servo",))}, ("servo",))  # fmt: skip
    assert usable(steps, ["servo"], TOLD)[0]["q"].time[-1] == TIME[-1]
