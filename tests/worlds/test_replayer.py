"""Replay: a robot's own log in its own twin leaves nothing, and real logs give the published figures."""

import json

import numpy as np
import pytest
from scipy.signal import savgol_coeffs

from gapless.errors import BadInput
from gapless.logs import Log, read
from gapless.twin import DC, Armature, Friction, Gains, Motor, Offset, Point, Twin
from gapless.worlds import Replayer, Worlds, replay
from gapless.worlds.initial_state import register_lag, trusted_velocity, velocity
from gapless.worlds.motions import plan
from gapless.worlds.recording import record
from gapless.worlds.standin import Spec, StandIn
from tests.data import DATA, needs_data
from tests.twin.models import pendulum, twin_of, wheel


def log_of(spec: Spec, seconds: float = 4.0, motion: str = "rich") -> tuple[StandIn, Log]:
    robot = StandIn(spec)
    return robot, record(robot, plan(motion, robot._twin, seconds, np.random.default_rng(1)), robot.signal)


SECRETS = {
    "friction.viscous/*": "x1.8",
    "friction.coulomb/*": "x1.5",
    "gains.kp/*": "x0.7",
    "latency.action": 0.0131,
    "latency.observation": 0.02,  # one period: samples fall on steps, so the start is known exactly
    "inertia.mass/*": "x1.1",
    "offset.encoder/*": 0.02,
    "motor.strength/*": "x0.9",
    "armature.inertia/*": "x1.3",
}


@pytest.mark.parametrize("robot", ["bench", "arm", "quadruped", "biped"])
def test_a_stand_ins_log_in_a_twin_that_has_its_secrets_leaves_no_error(robot):
    change = {k: v for k, v in SECRETS.items() if robot != "bench" or k != "armature.inertia/*"}
    hung = robot in ("quadruped", "biped")
    timestep = Twin.load(robot).model.opt.timestep
    stand_in, log = log_of(Spec(robot, in_air=hung, tolerance=0, timestep=timestep, change=change))
    twin = Twin.load(robot, in_air=hung)
    result = replay(twin, log, twin.space.values(stand_in.reveal()))
    for signal in ("q", "dq", "tau"):
        assert np.abs(result.error(signal)).max() < 1e-9, signal
    assert np.abs(replay(twin, log).error("q")).max() > 0.02


def log_with_base(values: np.ndarray, motion: str, seconds: float) -> Log:
    """What a quadruped on its feet reports, with its base as motion capture would see it."""
    twin = Twin.load("quadruped")
    worlds = Worlds(twin, 1, Point(twin.space, values), threads=1)
    commands = plan(motion, twin, seconds, np.random.default_rng(0))
    rows = {s: [] for s in ("q", "dq", "quat", "gyro", "base_pos", "base_vel")}
    for k in range(len(commands) + 1):
        for s in ("q", "dq", "quat", "gyro"):
            rows[s].append(worlds.readings[s][0].copy())
        rows["base_pos"].append(worlds.qpos[0, :3].copy())
        rows["base_vel"].append(worlds.qvel[0, :3].copy())
        if k < len(commands):
            worlds.step(commands[k : k + 1])
    told = np.concatenate([commands, commands[-1:]])
    signals = {k: np.array(v) for k, v in rows.items()} | {"q_cmd": told}
    return Log.from_arrays(twin.joints, np.arange(len(told)) * twin.control_dt, signals)


def test_a_floating_robot_whose_base_is_logged_leaves_no_error():
    twin = Twin.load("quadruped")
    values = twin.space.values({"friction.viscous/*": 0.2, "inertia.payload": 2.0, "latency.action": 0.01})
    log = log_with_base(values, "rich", 2.0)
    result = replay(twin, log, values)
    for signal in result.replayed:
        assert np.abs(result.error(signal)).max() < 1e-9, signal
    # windows start from states in mid-motion, whose contact forces the solver has to find anew
    assert replay(twin, log, values, window=0.2).rmse("q").max() < 2e-3


def test_a_base_that_is_not_logged_is_estimated_from_imu_and_legs():
    _, log = log_of(Spec("quadruped", tolerance=0, timestep=0.005), seconds=3.0)
    twin = Twin.load("quadruped")
    result = Replayer(twin, log, window=0.2)(twin.space.nominal)
    assert result.rmse("q").max() < 0.01
    assert np.degrees(result.rmse("quat")).max() < 1.0
    with pytest.raises(BadInput, match="orientation must be logged"):
        replay(twin, Log({k: s for k, s in log.signals.items() if k != "quat"}, log.joints))


def test_many_vectors_and_windows_in_one_batch_equal_one_at_a_time():
    _, log = log_of(Spec("arm", tolerance=0))
    twin = Twin.load("arm")
    space = twin.space.select("friction.viscous/*", "gains.kp/*").tie("gains.kp/*")
    values = space.from_scaled(np.random.default_rng(0).normal(size=(3, len(space))) * 0.3)
    together = replay(twin, log, values, window=0.5, space=space)
    assert together.replayed["q"].shape[:2] == (3, 8)
    for i, v in enumerate(values):
        np.testing.assert_array_equal(replay(twin, log, v, window=0.5, space=space).replayed["q"][0], together.replayed["q"][i])
    log_half = log.slice(2.0, 2.51)
    np.testing.assert_allclose(
        replay(twin, log_half, values, space=space).replayed["q"][:, 0, :20], together.replayed["q"][:, 4, :20], atol=1e-3
    )


def constant(v: float, n: int) -> np.ndarray:
    return np.full((n, 1), v)


def test_torque_commands_at_uneven_times_act_exactly_when_the_clock_says():
    """A flywheel: velocity is the integral of the torque, whatever the clock."""
    twin = twin_of(wheel(timestep=0.001))
    rng = np.random.default_rng(0)
    sent = np.sort(rng.uniform(0, 1, 40))
    sent[0] = 0.0
    torque = rng.uniform(-1, 1, (40, 1))
    seen = np.linspace(0, 1, 57)
    edges = np.append(sent, 10.0)
    v = (
        np.array([sum(torque[k, 0] * max(0, min(edges[k + 1], t) - edges[k]) for k in range(40) if edges[k] < t) for t in seen])
        / 0.02
    )
    from gapless.logs import Signal

    log = Log(
        {
            "q": Signal("q", seen, np.zeros((57, 1)), ("axle",)),
            "dq": Signal("dq", seen, v[:, None], ("axle",)),
            "tau_cmd": Signal("tau_cmd", sent, torque, ("axle",)),
        },
        ("axle",),
    )
    replayer = Replayer(twin, log)
    replayer.velocity = log["dq"]
    result = replayer(twin.space.nominal)
    np.testing.assert_allclose(result.replayed["dq"][0, 0, :, 0], v, atol=0.03)
    inner = np.isin(np.round(seen, 9), np.round(np.arange(0, 1.0001, 0.001), 9))
    np.testing.assert_allclose(result.replayed["dq"][0, 0, inner, 0], v[inner], atol=1e-6)


def test_gains_and_switched_off_drives_are_those_of_the_log():
    servo = '<position name="pivot" joint="pivot" kp="50" kv="5"/>'
    twin = twin_of(pendulum(servo, timestep=0.001), Gains(), Motor())
    n = 3001
    time = np.arange(n) * 0.001
    gain = np.where(time < 1.5, 100.0, 25.0)[:, None]
    on = np.where(time < 2.5, 1.0, 0.0)[:, None]
    log = Log.from_arrays(
        ("pivot",), time, {"q": constant(0.9, n), "q_cmd": constant(1.0, n), "kp": gain, "kd": constant(6.0, n), "enabled": on}
    )
    q = replay(twin, log).replayed["q"][0, 0, :, 0]
    for at, kp in ((1490, 100.0), (2490, 25.0)):
        assert kp * (1.0 - q[at]) == pytest.approx(9.81 * 0.5 * np.sin(q[at]), rel=0.02)
    early = q[2500] - q[2600]
    assert early == pytest.approx(0.5 * 9.81 / 0.5 * np.sin(q[2500]) * 0.1**2, rel=0.05)  # it falls freely
    assert replay(twin, log, twin.space.values({"gains.kp/pivot": 40.0})).replayed["q"][0, 0, 1490, 0] < q[1490]


def test_velocity_from_positions_has_no_lag_and_the_noise_of_its_filter():
    rate, n = 200.0, 2000
    t = np.arange(n) / rate
    rng = np.random.default_rng(0)
    clean = np.sin(2 * np.pi * 1.5 * t)
    noisy = clean + 0.001 * rng.standard_normal(n)
    log = Log.from_arrays(("a",), t, {"q": noisy[:, None]})
    estimate = velocity(log)
    truth = 2 * np.pi * 1.5 * np.cos(2 * np.pi * 1.5 * t)
    inner = slice(50, -50)
    only_noise = velocity(Log.from_arrays(("a",), t, {"q": (noisy - clean)[:, None]})).values[inner, 0]
    taps = savgol_coeffs(13, 2, deriv=1, delta=1 / rate)
    assert only_noise.std() == pytest.approx(0.001 * np.linalg.norm(taps), rel=0.1)
    shift = np.sum((truth - estimate.values[:, 0])[inner] * np.gradient(truth, t)[inner]) / np.sum(
        np.gradient(truth, t)[inner] ** 2
    )
    assert abs(shift) < 1e-4
    assert estimate.values[inner, 0].std() == pytest.approx(truth[inner].std(), rel=0.02)


@needs_data
def test_velocity_registers_of_real_servos_are_found_to_lag():
    assert register_lag(read(DATA / "so101/motions/multisine", mapping="so101")) == pytest.approx(0.018, abs=0.004)
    assert register_lag(read(DATA / "double_pendulum/design_C.1/log_01.csv.gz", mapping="double_pendulum")) > 0.0005


def test_a_velocity_that_lags_is_not_started_from_and_one_that_does_not_is():
    t = np.arange(400) * 0.01
    q = np.sin(3 * t)[:, None]
    for lag, trusted in ((0.0, True), (0.015, False)):
        log = Log.from_arrays(("axle",), t, {"q": q, "dq": 3 * np.cos(3 * (t - lag))[:, None], "tau_cmd": q})
        assert register_lag(log) == pytest.approx(lag, abs=0.0005)
        assert (Replayer(twin_of(wheel(timestep=0.001)), log).velocity is log["dq"]) == trusted


@needs_data
def test_so101_command_and_model_as_published():
    twin = Twin.load(DATA / "so101/model/so101.xml", mechanisms=[])
    errors, commands = [], []
    for motion in json.loads((DATA / "so101/split.json").read_text())["validation"]:
        result = replay(twin, read(DATA / "so101/motions" / motion, mapping="so101"), end=60.0)
        errors.append(result.error("q")[0, 0])
        commands.append((result.command - result.measured["q"])[0])
    mean = [np.degrees(np.sqrt((np.concatenate(x) ** 2).mean(axis=0)))[:5].mean() for x in (commands, errors)]
    assert mean == pytest.approx([1.66, 1.59], rel=0.05)


@needs_data
def test_go2_command_and_model_as_published():
    twin = Twin.load(DATA / "go2_inair/model/go2_fixed_base.xml", mechanisms=[Gains(kp={"*": 20.0}, kd={"*": 1.5})])
    for file in ("go2_inair.npz", "traj_0.pt"):
        result = replay(twin, read(DATA / "go2_inair" / file, mapping="go2_inair"))
        odd = (result.time[0] // 2).astype(int) % 2 == 1
        pooled = [
            np.degrees(np.sqrt((e[odd] ** 2).mean()))
            for e in ((result.command - result.measured["q"])[0], result.error("q")[0, 0])
        ]
        assert pooled == pytest.approx([5.6, 0.84], rel=0.05), file


@needs_data
def test_double_pendulum_as_published_and_without_friction():
    twin = Twin.load(DATA / "double_pendulum/model/double_pendulum.xml")
    free = twin.space.values({"friction.coulomb/*": 0.0, "friction.viscous/*": 1e-5})
    errors = []
    for file in sorted((DATA / "double_pendulum/design_C.1").glob("*[13579].csv.gz")):
        result = replay(twin, read(file, mapping="double_pendulum"), np.stack([twin.space.nominal, free]), window=0.5)
        errors.append(result.error("q").reshape(2, -1, 2))
    rmse = np.degrees(np.sqrt(np.nanmean(np.concatenate(errors, axis=1) ** 2, axis=1)))
    assert rmse[0] == pytest.approx([5.65, 11.0], rel=0.05)
    assert rmse[1] == pytest.approx([14.7, 25.7], rel=0.05)


@needs_data
def test_xl330_as_published():
    m1 = json.loads((DATA / "xl330/published/m1.json").read_text())
    errors = []
    for file in sorted((DATA / "xl330/logs").glob("kp200_*.json")):
        log = read(file, mapping="xl330")
        gain = log.meta["firmware"]["P"] * log.meta["duty_per_P"]
        motor = Motor(dc=DC(m1["kt"], m1["R"], log.meta["vin"], voltage_control=True))
        twin = Twin.load(
            DATA / "xl330/model/xl330_bench.xml",
            mechanisms=[Gains(kp={"*": gain}, kd={"*": 0.0}), motor, Friction(), Armature(), Offset()],
        )
        values = twin.space.values(
            {
                "friction.coulomb/servo": m1["friction_base"],
                "friction.viscous/servo": m1["friction_viscous"],
                "armature.inertia/servo": m1["armature"],
                "offset.encoder/servo": -m1["q_offset"],
            }
        )
        errors.append(np.nanmean(np.abs(replay(twin, log, values).error("q"))))
    assert np.mean(errors) == pytest.approx(0.078, rel=0.05)


@needs_data
def test_simple_pendulum_replays():
    import mujoco

    # AK80-6, 0.57 kg on 0.5 m: the design of the recording (torque-limited simple pendulum, DFKI 2022)
    spec = mujoco.MjSpec.from_string("""<mujoco><option timestep="0.001" integrator="implicitfast"/><worldbody><body name="rod">
      <joint name="pivot" axis="0 1 0" damping="0.1" frictionloss="0.1" armature="0.003"/>
      <inertial pos="0 0 -0.5" mass="0.57" diaginertia="1e-3 1e-3 1e-3"/></body></worldbody>
      <actuator><motor name="pivot" joint="pivot"/></actuator></mujoco>""")
    twin = twin_of(spec, Friction())
    for name in ("gravity_compensation", "energy_shaping", "pd_chatter"):
        log = read(DATA / "simple_pendulum/logs" / name, mapping="simple_pendulum")
        result = replay(twin, log, window=0.2)
        assert np.isfinite(result.rmse("q")).all(), name


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: {"q": s["q"]}, "is driven by q_cmd in arm, but the log has no commands at all"),
        (lambda s: {"q_cmd": s["q_cmd"]}, "no joint positions"),
        (lambda s: {**s, "q": s["q"][:1]}, "do not fit|at least two samples"),
        (lambda s: {**s, "q_cmd": s["q_cmd"] * np.nan}, "a command at 0.000 s is not a number"),
        (lambda s: {**s, "q": s["q"] * np.nan}, "no sample has a position of every joint"),
    ],
)
def test_a_log_that_cannot_be_replayed_says_why(change, message):
    twin = Twin.load("arm")
    n = 50
    signals = {"q": np.zeros((n, 6)), "q_cmd": np.zeros((n, 6)), "dq": np.zeros((n, 6))}
    with pytest.raises(BadInput, match=message):
        replay(twin, Log.from_arrays(twin.joints, np.arange(n) * 0.02, change(signals)))


def test_joints_of_another_robot_are_named():
    twin = Twin.load("arm")
    log = Log.from_arrays(("shoulder_pam",), np.arange(50) * 0.02, {"q": np.zeros((50, 1)), "q_cmd": np.zeros((50, 1))})
    with pytest.raises(BadInput, match="is not in the log"):
        replay(twin, log)


def test_a_replay_that_diverges_is_infinite_and_the_others_are_not():
    n = 200
    log = Log.from_arrays(("axle",), np.arange(n) * 0.02, {"q": constant(0.0, n), "q_cmd": constant(0.5, n)})
    # explicit stiffness: a servo of 90 000 Nm/rad on 0.02 kg m2 at steps of 2 ms blows up, one of 300 does not
    twin = twin_of(wheel('<position name="axle" joint="axle" kp="300" kv="1"/>', timestep=0.002), Gains())
    result = replay(twin, log, np.array([twin.space.nominal, twin.space.nominal * [299, 1]]))
    assert result.failed.tolist() == [[False], [True]]
    assert np.isfinite(result.rmse("q")[0]).all()
    assert np.isinf(result.rmse("q")[1]).all()


@pytest.mark.parametrize(
    "given",
    [{}, {"offset.imu_pitch": 0.05, "offset.imu_roll": -0.03}, {"contact.slope_pitch": 0.05}, {"sensors.bias_gyro_x": 0.2}],
)
def test_what_sits_between_base_and_imu_is_taken_off_at_the_start_and_put_on_again(given):
    twin = Twin.load("quadruped")
    values = twin.space.values(given)
    result = replay(twin, log_with_base(values, "steps", 1.0), values)
    assert set(result.replayed) == {"q", "dq", "quat", "gyro", "base_pos", "base_vel"}
    for signal in result.replayed:
        assert np.abs(result.error(signal)).max() < 1e-9, signal


def arm_log(n: int = 400, **signals: np.ndarray) -> Log:
    twin = Twin.load("arm")
    t = np.arange(n) * 0.02
    return Log.from_arrays(twin.joints, t, {"q": np.full((n, 6), 0.5), "q_cmd": np.full((n, 6), 0.5)} | signals)


def test_a_lost_frame_is_bridged_and_costs_no_window():
    q = np.full((400, 6), 0.5)
    q[101] = np.nan
    q[50] = np.nan
    replayer = Replayer(Twin.load("arm"), arm_log(q=q), window=1.0)
    assert len(replayer.starts) == 8
    assert np.abs(replayer.velocity.values).max() < 1e-9
    assert 1.0 not in replayer.starts  # sample 50 was lost, so that window starts one later
    assert np.isfinite(replayer(Twin.load("arm").space.nominal).rmse("q")).all()


def test_windows_do_not_span_a_gap():
    log = arm_log()
    keep = (log["q"].time < 1.0) | (log["q"].time > 4.0)
    cut = Log.from_arrays(log.joints, log["q"].time[keep], {k: s.values[keep] for k, s in log.signals.items()})
    starts = Replayer(Twin.load("arm"), cut, window=0.5).starts
    assert len(np.unique(starts)) == len(starts)
    assert not ((starts > 0.75) & (starts < 4.0)).any()


def test_feed_forward_torque_and_velocity_act_on_a_servo():
    servo = '<position name="axle" joint="axle" kp="20" kv="2"/>'
    twin = twin_of(wheel(servo, timestep=0.001), Gains())
    n = 3000
    t = np.arange(n) * 0.001
    log = Log.from_arrays(
        ("axle",), t, {"q": constant(0.0, n), "q_cmd": constant(0.1, n), "tau_ff": constant(1.0, n), "dq_cmd": constant(0.5, n)}
    )
    q = replay(twin, log).replayed["q"][0, 0, -1, 0]
    assert q == pytest.approx(0.1 + (1.0 + 2 * 0.5) / 20, abs=1e-4)


def test_a_drive_in_damping_mode_only_damps():
    servo = '<position name="axle" joint="axle" kp="20" kv="0.1"/>'
    twin = twin_of(wheel(servo, timestep=0.001), Gains())
    n = 1000
    told = {"q_cmd": constant(0.0, n), "kp": constant(0.0, n), "kd": constant(0.05, n)}
    seen = {"q": np.arange(n)[:, None] * 0.002, "dq": constant(2.0, n)}
    log = Log.from_arrays(("axle",), np.arange(n) * 0.001, seen | told)
    v = replay(twin, log).replayed["dq"][0, 0, :, 0]
    np.testing.assert_allclose(v, 2.0 * np.exp(-0.05 / 0.02 * np.arange(n) * 0.001), rtol=0.01)


def test_clocks_that_do_not_meet_are_refused():
    from dataclasses import replace

    log = arm_log()
    late = {**log.signals, "q_cmd": replace(log["q_cmd"], time=log["q_cmd"].time + 1000)}
    with pytest.raises(BadInput, match="not logged at the same time"):
        replay(Twin.load("arm"), Log(late, log.joints))


def test_windows_do_not_start_from_a_velocity_that_was_never_measured():
    """A register that reads 0 throughout while its joint moves: its column alone is estimated from the positions."""
    time = np.arange(400) * 0.005
    q, dq = np.sin(3 * time[:, None] + [0.0, 1.0]), 3 * np.cos(3 * time[:, None] + [0.0, 1.0])
    log = Log.from_arrays(("arm", "grip"), time, {"q": q, "dq": dq * [1.0, 0.0]})
    speed = trusted_velocity(log, ("arm", "grip"))
    assert np.array_equal(speed.column("arm"), dq[:, 0])
    np.testing.assert_allclose(speed.column("grip")[20:-20], dq[20:-20, 1], atol=0.02)


def test_a_sample_that_repeats_the_time_of_the_one_before_is_left_out_and_time_that_runs_back_is_refused():
    time = np.arange(100) * 0.01
    q = np.sin(3 * time)[:, None]
    twin = twin_of(wheel(timestep=0.001))
    whole, again = (Log.from_arrays(("axle",), t, {"q": q, "tau_cmd": q}) for t in (time, np.r_[time[:50], time[49:-1]]))
    assert replay(twin, again).time.shape == (1, 99) and replay(twin, whole).time.shape == (1, 100)
    with pytest.raises(BadInput, match="rising time"):
        replay(twin, Log.from_arrays(("axle",), np.r_[time[:50], time[40:-10]], {"q": q, "tau_cmd": q}))
