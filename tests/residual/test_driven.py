"""Drive networks in the worlds: better than any PD law for a drive that has none, and exactly what their ONNX files say."""

import dataclasses
import json
from pathlib import Path

import mujoco
import numpy as np
import onnxruntime
import pytest

from gapless.arrays import Array
from gapless.cli import main
from gapless.errors import BadInput
from gapless.identify import fit
from gapless.logs import Log, Signal, write
from gapless.residual import in_model, learn_actuator, load_drives, must_be_torque
from gapless.twin import DRIVE_LAGS, DriveLaw, DriveNet, Gains, Motor, Point, Twin, as_given, load_recipe, network_drives
from gapless.worlds import StandIn, StandInSpec, Worlds, build_standin, plan_motion, record, replay

pytestmark = pytest.mark.xdist_group("driven")  # one worker makes the fixture, once

SPEC = StandInSpec(
    "bench",
    seed=3,
    tolerance=0.0,
    control_dt=0.005,
    timestep=0.0025,
    add={"motor": {"no_load_speed": 4.0}, "hysteresis": {"windup": 0.05}},
    change={"hysteresis.torque/*": 0.15, "latency.action": 0.008},
)


def moved(seed: int, seconds: float) -> Log:
    return record(StandIn(SPEC), plan_motion("rich", build_standin(SPEC), seconds, np.random.default_rng(seed)))


def net(joint: str = "servo", drive: str = "q") -> DriveNet:
    rng = np.random.default_rng(0)
    sides = [tuple([v] * 6) for v in (0.0, 0.5, -2.0, 2.0)]
    inward, across = (tuple(tuple(row) for row in rng.normal(0, 0.2, shape).tolist()) for shape in ((32, 7), (32, 33)))
    return DriveNet(joint, drive, *sides, (0.1, 1.5), 2.0, inward, across, tuple(rng.normal(0, 0.2, 33).tolist()))


@pytest.fixture(scope="module")
def drives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("drives")
    write(moved(1, 16.0), folder / "log.npz")
    main(["actuator", str(folder / "log.npz"), "--robot", "bench", "--out", str(folder / "out"), "--json"])
    return folder / "out"


def test_a_drive_with_windup_delay_and_a_torque_speed_line_is_replayed_better_than_by_its_exact_pd_law(drives: Path) -> None:
    told = json.loads((drives / "actuator.json").read_text())
    assert "In the model unseen motion is predicted better" in told["verdict"]
    assert 0 < told["joints"]["servo"]["outside"] < 0.5 and 0 < told["model"]["servo"]["outside"] < 0.5
    unseen, given = moved(2, 8.0), as_given("bench")
    pd = given.space.values({"latency.action": 0.008})  # its gains are the model's
    twin = Twin.load(drives / "twin.xml")
    replays = [replay(given, unseen, pd), replay(twin, unseen)]
    for signal in ("q", "tau"):
        plain, network = (np.sqrt(np.nanmean(r.error(signal) ** 2)) for r in replays)
        assert network < 0.4 * plain


def test_the_belief_remakes_the_twin_from_the_robots_own_model_and_the_weights_survive_their_file(drives: Path) -> None:
    made, saved = load_recipe("bench", drives / "belief.json"), Twin.load(drives / "twin.xml")
    numbers = made.model.numeric_data  # a saved model has the gains that logs state besides, behind them
    assert np.array_equal(numbers, saved.model.numeric_data[: len(numbers)]) and list(network_drives(saved.model)) == ["servo"]
    assert "A plain MuJoCo has the plain law instead" in (drives / "twin.xml").read_text()
    (kept,) = load_drives(drives / "actuator.npz")
    assert made.mechanisms[-1] == DriveLaw((kept,))


def rolled(twin: Twin, threads: int) -> tuple[Array, Array, Array, Array]:
    """Commands, positions and velocities before each of 400 steps of four worlds, and torque in it."""
    worlds = Worlds(twin, 4, Point(twin.space, twin.space.nominal), threads=threads)
    start = np.array([[-0.4], [0.0], [0.3], [0.6]])
    worlds.reset(qpos=start, qvel=0.5 * start, redraw=False)
    rng = np.random.default_rng(0)
    told = start[:, None] + np.repeat(np.cumsum(rng.normal(0, 0.1, (4, 50, 1)), axis=1), 8, axis=1)
    out = {f: np.zeros((4, 400, 1)) for f in ("qpos", "qvel", "qfrc_actuator")}
    assert not worlds.engine.roll(told, out)
    before = [np.concatenate([first[:, None], out[f][:, :-1]], axis=1) for f, first in (("qpos", start), ("qvel", 0.5 * start))]
    return told[..., 0], before[0][..., 0], before[1][..., 0], out["qfrc_actuator"][..., 0]


@pytest.mark.parametrize("step", [0.0025, 0.002])
def test_the_step_gives_the_torque_of_the_onnx_file_with_a_history_for_each_world_at_any_number_of_threads(
    drives: Path, step: float
) -> None:
    twin = Twin.load("bench", add=[DriveLaw(load_drives(drives / "actuator.npz"))], timestep=step)
    told, q, dq, torque = rolled(twin, 1)
    for one, two in zip((told, q, dq, torque), rolled(twin, 2), strict=True):
        assert np.array_equal(one, two)
    session, times = onnxruntime.InferenceSession(drives / "servo.onnx"), step * np.arange(400)
    limit = float(twin.model.actuator_forcerange[0, 1])
    for world in range(4):
        # np.interp holds the first value before the first step: as if it had always been so
        parts = [np.interp(times - lag, times, v) for lag in DRIVE_LAGS for v in (told[world] - q[world], dq[world])]
        (exact,) = session.run(None, {"inputs": np.column_stack(parts).astype(np.float32)})
        assert torque[world] == pytest.approx(np.clip(exact, -limit, limit), abs=1e-5)
    assert (np.ptp(torque, axis=1) > 0.5).all()


def test_a_world_that_starts_anew_forgets_its_history_and_no_other_does() -> None:
    twin = Twin.load("bench", add=[DriveLaw((net(),))])
    worlds = [Worlds(twin, 2, Point(twin.space, twin.space.nominal), threads=1, signals=("q", "dq", "tau")) for _ in range(2)]
    for w in worlds:
        for target in (0.3, -0.2, 0.4):
            w.step(np.full((2, 1), target))
    worlds[0].reset([0], redraw=False)
    after = [w.step(np.full((2, 1), 0.1))["tau"] for w in worlds]
    fresh = Worlds(twin, 2, Point(twin.space, twin.space.nominal), threads=1, signals=("q", "dq", "tau"))
    assert after[0][0] == fresh.step(np.full((2, 1), 0.1))["tau"][0] != after[1][0]
    assert after[0][1] == after[1][1]


def test_strength_scales_what_a_network_gives_and_the_command_survives_where_it_is_set_once() -> None:
    twin = Twin.load("bench", add=[DriveLaw((net(),))])
    torque = []
    for strength in (1.0, 0.5):
        worlds = Worlds(twin, 1, Point(twin.space, twin.space.values({"motor.strength/*": strength})), threads=1)
        out = {"qfrc_actuator": np.zeros((1, 1, 1))}
        worlds.engine.roll(np.full((1, 1, 1), 0.05), out)
        torque.append(out["qfrc_actuator"].item())
    assert torque[1] == pytest.approx(torque[0] / 2)
    data, ends = mujoco.MjData(twin.model), []
    for again in (False, True):
        mujoco.mj_resetData(twin.model, data)
        data.ctrl[:] = 0.2
        for _ in range(50):
            data.ctrl[:] = 0.2 if again else data.ctrl
            mujoco.mj_step(twin.model, data)
        ends.append(data.qpos[0])
    assert ends[0] == ends[1]


def test_networks_of_other_drives_steps_and_shapes_are_refused(tmp_path: Path) -> None:
    twin = Twin.load("bench")
    for wrong, says in ((net("elbow"), "joints with a drive here: servo"), (net(drive="tau"), "another law")):
        with pytest.raises(BadInput, match=says):
            twin.plus(DriveLaw((wrong,)))
    with pytest.raises(BadInput, match="two are for the same joint"):
        twin.plus(DriveLaw((net(), net())))
    with pytest.raises(BadInput, match="another law"):
        Twin.load("bench", add=[Motor(no_load_speed=20.0), DriveLaw((net(),))])
    with pytest.raises(BadInput, match="time steps from 0.0025 to 0.0075 s, and it has 0.01 s"):
        Twin.load("bench", add=[DriveLaw((net(),))], timestep=0.01)
    grown = twin.plus(DriveLaw((net(),)))
    with pytest.raises(BadInput, match="already"):
        grown.plus(DriveLaw((net(),)))
    grown.save(tmp_path / "twin.xml")
    text = (tmp_path / "twin.xml").read_text()
    for old, new, says in (
        ('timestep="0.005"', 'timestep="0.0005"', "time steps from"),
        ('integrator="implicitfast"', 'integrator="RK4"', "RK4"),
        ('data="32 14 ', 'data="64 14 ', "not as it was written"),
        ('user="1 0.23606', 'user="7 0.23606', "not as it was written"),
    ):
        assert old in text
        (tmp_path / "cut.xml").write_text(text.replace(old, new))
        with pytest.raises(BadInput, match=says):
            Twin.load(tmp_path / "cut.xml")
    with pytest.raises(BadInput, match="two hidden layers of 32"):
        dataclasses.replace(net(), across=net().across[:2])
    np.savez(tmp_path / "actuator.npz", joints=np.array(["servo"]))
    with pytest.raises(BadInput, match="not a file of learned torque"):
        load_drives(tmp_path / "actuator.npz")


def test_torque_drives_take_networks_too_and_get_the_limit_that_their_model_lacks() -> None:
    model = Twin.load("bench", add=[Gains(commanded={"servo": "tau"})])
    twin = model.plus(DriveLaw((net(drive="tau"),)))
    assert twin.model.actuator_forcelimited[0] and twin.drives[0].signal == "tau"


def test_a_fit_keeps_the_law_that_was_learned_and_finds_what_is_around_it(drives: Path) -> None:
    twin, log = as_given(drives / "twin.xml"), moved(3, 5.0)
    found = fit(twin, [log])
    assert found.heldout.fit < 0.9 * found.heldout.given
    values = dict(zip(found.twin.space.names, found.values, strict=True))
    assert values["gains.kp/servo"] == pytest.approx(17.8) and values["motor.strength/servo"] == 1.0


def test_torque_that_the_drive_cannot_give_is_a_current_or_a_count() -> None:
    twin, log = Twin.load("bench"), moved(1, 3.0)
    must_be_torque(twin, [log])
    milliamps = dataclasses.replace(log["tau"], values=1000 * log["tau"].values)
    with pytest.raises(BadInput, match="is it a current or a count"):
        must_be_torque(twin, [dataclasses.replace(log, signals={**log.signals, "tau": milliamps})])


def test_torque_that_is_fed_forward_is_a_shift_of_the_target_in_learning_and_in_the_model() -> None:
    whole = moved(1, 8.0)
    told = whole["q_cmd"]
    fed = 2.0 * np.sin(9.0 * told.time)[:, None]
    parts = {"q_cmd": told.values - fed / 17.8, "tau_ff": fed, "kp": 17.8 + 0 * fed, "kd": 0.05 + 0 * fed}
    apart = {name: Signal(name, told.time, values, told.columns) for name, values in parts.items()}
    logs = [whole, dataclasses.replace(whole, signals={**whole.signals, **apart})]
    one, other = (in_model(learn_actuator([log]), as_given("bench", log), [log]) for log in logs)
    assert other.joints["servo"].network == pytest.approx(one.joints["servo"].network, rel=1e-3)
    assert other.model["servo"].network == pytest.approx(one.model["servo"].network, rel=1e-3)
    assert other.model["servo"].outside == pytest.approx(one.model["servo"].outside, abs=0.01)
