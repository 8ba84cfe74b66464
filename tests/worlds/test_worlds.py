"""Worlds: the same bits from the same seed, each world on its own, failures kept to themselves."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from gapless.errors import BadInput
from gapless.twin import Box, Point, Sensors, Twin, within_tolerance
from gapless.worlds import Worlds
from tests.twin.models import one_world

EVERYTHING = """
import hashlib, numpy as np
from gapless.twin import Box, Twin
from gapless.worlds import Worlds
twin = Twin.load("quadruped")
belief = Box(twin.space, twin.space.low, twin.space.high).narrow(0.1)
worlds = Worlds(twin, 24, belief, np.random.default_rng(5), threads=THREADS)
digest = hashlib.sha256()
rng = np.random.default_rng(0)
for k in range(25):
    if k % 5 == 4:
        worlds.push(rng.normal(size=(3, 3)), [1, 4, 7])
        worlds.reset(rng.random(24) < 0.2)
    readings = worlds.step(worlds.home_command + 0.2 * rng.normal(size=(24, 12)))
    for signal in sorted(readings):
        digest.update(np.ascontiguousarray(readings[signal]))
    digest.update(np.ascontiguousarray(worlds.qpos))
print(digest.hexdigest())
"""


@pytest.fixture(scope="module")
def quadruped() -> Twin:
    return Twin.load("quadruped")


def test_the_same_seed_gives_the_same_bits_at_any_thread_count_and_in_a_new_process():
    seen = set()
    for threads in (1, 2, 2):
        code = EVERYTHING.replace("THREADS", str(threads))
        seen.add(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
    assert len(seen) == 1


def moving(worlds: Worlds, k: int) -> np.ndarray:
    return worlds.home_command + 0.2 * np.sin(0.3 * k + np.arange(len(worlds.home_command)))


def record(worlds: Worlds, periods: int, at: int = -1, do=None) -> dict[str, np.ndarray]:
    """Trajectories and readings; `do` happens before period `at`."""
    out: dict[str, list[np.ndarray]] = {"qpos": []}
    for k in range(periods):
        command = np.tile(moving(worlds, k), (worlds.n, 1))
        if k == at and do is not None:
            do(worlds, command)
        for s, v in worlds.step(command).items():
            out.setdefault(s, []).append(v.copy())
        out["qpos"].append(worlds.qpos.copy())
    return {s: np.array(v) for s, v in out.items()}


def fresh(quadruped: Twin) -> Worlds:
    space = quadruped.space
    return Worlds(quadruped, 6, Box(space, space.low, space.high).narrow(0.1), np.random.default_rng(3), threads=2)


def poison(worlds: Worlds, command: np.ndarray) -> None:
    command[2, 0] = np.nan


def explode(worlds: Worlds, command: np.ndarray) -> None:
    worlds.qvel[2] = 1e12


def restart(worlds: Worlds, command: np.ndarray) -> None:
    worlds.reset([2])


def rewrite(worlds: Worlds, command: np.ndarray) -> None:
    worlds.write(worlds.belief.mean(), [2])


def shove(worlds: Worlds, command: np.ndarray) -> None:
    worlds.push([1.0, 0, 0], [2])
    worlds.pull("base", [0, 0, 20.0], [2])


@pytest.mark.parametrize("happening", [poison, explode, restart, rewrite, shove])
def test_what_happens_to_one_world_never_changes_another(quadruped, happening):
    calm = record(fresh(quadruped), 20)
    struck = record(fresh(quadruped), 20, 8, happening)
    others = [0, 1, 3, 4, 5]
    for signal in calm:
        assert (calm[signal][:, others] == struck[signal][:, others]).all(), signal
    assert (calm["qpos"][8:, 2] != struck["qpos"][8:, 2]).any()


@settings(max_examples=20, deadline=None)
@given(st.sets(st.integers(0, 15)), st.integers(0, 2**31))
def test_writing_some_worlds_leaves_every_field_of_the_others(ids, seed):
    worlds = _BENCH
    before = {f: worlds.engine.field(f).copy() for f in worlds.engine._expanded}
    path = {f: v.copy() for f, v in worlds.path.items()}
    space = worlds.belief.space
    values = Box(space, space.low, space.high).sample(len(ids), np.random.default_rng(seed))
    worlds.write(values, sorted(ids))
    others = sorted(set(range(16)) - ids)
    for field, was in before.items():
        assert (worlds.engine.field(field)[others] == was[others]).all(), field
    for field, was in path.items():
        assert (worlds.path[field][others] == was[others]).all(), field
    np.testing.assert_array_equal(worlds.values[sorted(ids)], values)


_BENCH = Worlds(Twin.load("bench"), 16, within_tolerance(Twin.load("bench").space), np.random.default_rng(0))


def test_a_world_that_breaks_is_reported_once_and_draws_new_parameters_only_when_it_is_reset(quadruped):
    worlds = fresh(quadruped)
    values = worlds.values.copy()
    command = np.tile(worlds.home_command, (6, 1))
    worlds.step(command)
    command[4, 3] = np.inf
    worlds.qvel[1, 0] = 1e15
    worlds.step(command)
    assert [f.world for f in worlds.failures] == [1, 4]
    assert "velocities" in worlds.failures[0].reason
    assert worlds.failures[0].time == pytest.approx(quadruped.control_dt, abs=1e-9)
    assert "command was not finite" in worlds.failures[1].reason
    assert worlds.failed.tolist() == [False, True, False, False, True, False]
    assert (worlds.qpos[[1, 4]] == worlds.home).all()
    np.testing.assert_array_equal(worlds.values, values)
    worlds.reset(worlds.failed)
    drawn = fresh(quadruped)
    drawn.reset([1, 4])
    np.testing.assert_array_equal(worlds.values, drawn.values)
    assert (worlds.values[1] != values[1]).any()
    for _ in range(20):
        worlds.step(worlds.home_command)
        assert not worlds.failures


def test_readings_may_be_kept(quadruped):
    worlds = fresh(quadruped)
    kept = [worlds.readings]
    copies = [{s: v.copy() for s, v in worlds.readings.items()}]
    for k in range(5):
        for readings in (worlds.step(moving(worlds, k)), worlds.reset([k])):
            kept.append(readings)
            copies.append({s: v.copy() for s, v in readings.items()})
    for mine, copied in zip(kept, copies, strict=True):
        for signal in copied:
            np.testing.assert_array_equal(mine[signal], copied[signal])
    assert len({r["q"].tobytes() for r in kept}) == len(kept)


def test_nothing_is_printed_or_written_when_a_world_diverges(quadruped, capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    worlds = fresh(quadruped)
    worlds.qvel[1, 0] = 1e15
    worlds.step(worlds.home_command)
    assert worlds.failures
    assert capfd.readouterr() == ("", "")
    assert not list(tmp_path.iterdir())


def test_a_reset_robot_is_not_commanded_to_zero_while_its_first_command_is_under_way(quadruped):
    worlds = one_world(quadruped, {"latency.action": 0.06})
    for _ in range(3):
        worlds.step(worlds.home_command)
        assert (worlds.commands.control == worlds.home_command).all()
    worlds.reset(command=worlds.home_command + 0.1, redraw=False)
    worlds.step(worlds.home_command)
    np.testing.assert_allclose(worlds.commands.control[0], np.tile(worlds.home_command + 0.1, (quadruped.substeps, 1)))


def test_readings_after_a_reset_are_those_of_the_new_state(quadruped):
    worlds = one_world(quadruped, {"latency.observation": 0.05})
    for k in range(10):
        worlds.step(moving(worlds, k))
    qpos = worlds.home.copy()
    qpos[7:] += 0.1
    readings = worlds.reset(qpos=qpos, redraw=False)
    np.testing.assert_allclose(readings["q"][0], qpos[7:])
    np.testing.assert_allclose(readings["dq"][0], 0.0)


def test_a_push_changes_the_base_velocity_and_a_pull_accelerates_it(quadruped):
    worlds = Worlds(quadruped, 2)
    worlds.push([0.5, 0.0, 0.0], [1])
    assert worlds.qvel[:, 0].tolist() == [0.0, 0.5]
    worlds = Worlds(quadruped, 2)
    high = worlds.home.copy()
    high[2] += 5.0
    worlds.reset(qpos=high)
    mass = quadruped.model.body_subtreemass[1]
    worlds.pull("base", [mass * 2.0, 0, 0], [1])
    for _ in range(10):
        worlds.step(worlds.home_command)
    momentum = worlds.qvel[1, 0] - worlds.qvel[0, 0]
    assert momentum == pytest.approx(2.0 * 0.2, rel=0.1)


def test_a_slope_pulls_the_robot_downhill_and_its_imu_knows(quadruped):
    from gapless.rotations import rotate_back

    worlds = one_world(quadruped, {"contact.slope_pitch": 0.4, "contact.slope_roll": 0.3})
    gravity = rotate_back(worlds.readings["quat"], np.array([[0, 0, -1.0]]))[0]
    truth = worlds.engine.field("opt.gravity")[0] / 9.81
    np.testing.assert_allclose(gravity, truth, atol=1e-6)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda t: Worlds(t, 0), "at least one world"),
        (lambda t: Worlds(t, 10**9), "use at most"),
        (lambda t: Worlds(t, 2).step(np.zeros((3, 12))), r"expected commands of shape \(2, 12\), got \(3, 12\)"),
        (lambda t: Worlds(t, 2).reset([5]), "worlds 0 to 1, and no 5"),
        (lambda t: Worlds(t, 2).reset(np.array([True])), r"mask of worlds must have shape \(2,\)"),
        (lambda t: Worlds(t, 2).write(t.space.high * 2), "outside its bounds"),
        (lambda t: Worlds(t, 2).pull("bas", [0, 0, 1]), "did you mean 'base'"),
        (lambda t: Worlds(Twin.load("bench"), 2).push([1, 0, 0]), "fixed base"),
        (lambda t: Worlds(t, 2, Point(Twin.load("arm").space, Twin.load("arm").space.nominal)), "not about quadruped"),
    ],
)
def test_bad_input_is_one_sentence(quadruped, wrong, message):
    with pytest.raises(BadInput, match=message):
        wrong(quadruped)


def test_noise_differs_from_world_to_world_and_from_step_to_step():
    twin = Twin.load("bench", mechanisms=[Sensors()])
    worlds = Worlds(twin, 2, Point(twin.space, twin.space.values({"sensors.noise_q": 0.01})))
    first = worlds.step(worlds.home_command)["q"].copy()
    second = worlds.step(worlds.home_command)["q"].copy()
    assert len(np.unique(np.concatenate([first, second]))) == 4


def test_a_thing_without_joints_still_reports_its_own_orientation():
    import mujoco

    from tests.twin.models import twin_of

    spec = mujoco.MjSpec.from_string("""<mujoco><option gravity="0 0 0"/><worldbody><body name="box"><freejoint name="root"/>
      <geom size="0.1"/></body></worldbody></mujoco>""")
    worlds = one_world(twin_of(spec, Sensors()))
    worlds.reset(qvel=np.array([0, 0, 0, 0, 0, 1.0]), redraw=False)
    for _ in range(100):
        worlds.step(np.zeros((1, 0)))
    np.testing.assert_allclose(worlds.readings["quat"][0], worlds.qpos[0, 3:7], atol=1e-12)
    np.testing.assert_allclose(worlds.readings["gyro"][0], [0, 0, 1.0], atol=1e-12)
