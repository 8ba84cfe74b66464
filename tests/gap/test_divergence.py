"""Replay experiments: growth rates against eigenvalues, robots that do not diverge, and which experiment the logs allow."""

import dataclasses

import mujoco
import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.gap import experiment
from gapless.gap.growth import growth
from gapless.logs import Log, read
from gapless.twin import Twin
from gapless.worlds import StandInSpec as Spec
from tests.data import DATA, needs_data
from tests.measure.made import lagging, log_of, recorded, smooth

LINK = '<body pos="0 0 {up}"><joint name="{name}" axis="0 1 0" damping="{damping}"/><inertial pos="0 0 0.3" mass="1" \
diaginertia="0.01 0.01 0.01"/>{rest}</body>'


def upright(links: int, damping: float) -> mujoco.MjModel:
    """One or two torque-driven links that stand on their joint."""
    body = ""
    for k in reversed(range(links)):
        body = LINK.format(up=0.6 if k else 0, name=f"j{k}", damping=damping, rest=body)
    motors = "".join(f'<motor joint="j{k}"/>' for k in range(links))
    option = '<option timestep="0.001" integrator="RK4"><flag contact="disable"/></option>'
    return mujoco.MjModel.from_xml_string(
        f"<mujoco>{option}<worldbody>{body}</worldbody><actuator>{motors}</actuator></mujoco>"
    )


def fall(model: mujoco.MjModel, lean: float, seed: int, seconds: float = 4.0, noise: float = 2e-5) -> Log:
    """What a robot logs that falls under small torques, always the same ones."""
    data = mujoco.MjData(model)
    data.qpos[:] = lean
    rng = np.random.default_rng(seed)
    torque = 1e-3 * smooth(seconds, np.random.default_rng(7), period=0.005, joints=model.nq)
    rows = []
    for u in torque:
        rows.append(data.qpos.copy())
        data.ctrl[:] = u
        mujoco.mj_step(model, data, 5)
    q = np.array(rows) + noise * rng.standard_normal((len(rows), model.nq))
    return log_of(torque, q, period=0.005, signal="tau_cmd")


def fastest(model: mujoco.MjModel) -> float:
    """The largest growth rate of the linearised motion, from mass matrix, gravity's stiffness and damping."""
    data = mujoco.MjData(model)
    mass, stiffness, n = np.zeros((model.nv, model.nv)), np.zeros((model.nv, model.nv)), model.nv
    mujoco.mj_forward(model, data)
    mujoco.mj_fullM(model, data, mass)
    for k in range(n):
        for sign in (1, -1):
            data.qpos[:] = 0
            data.qpos[k] = sign * 1e-5
            mujoco.mj_forward(model, data)
            stiffness[:, k] -= sign * data.qfrc_bias / 2e-5
    system = np.block(
        [[np.zeros((n, n)), np.eye(n)], [np.linalg.solve(mass, stiffness), -np.linalg.solve(mass, np.diag(model.dof_damping))]]
    )
    return float(np.linalg.eigvals(system).real.max())


@pytest.mark.parametrize(("links", "damping"), [(1, 0.0), (1, 0.2), (2, 0.05)])
def test_runs_of_an_unstable_robot_part_at_the_rate_of_its_fastest_mode(links, damping):
    model = upright(links, damping)
    exact = fastest(model)
    if links == 1:  # I = 0.01 + 1 * 0.3 ** 2, and gravity pulls with m g l
        own = damping / 0.2
        assert exact == pytest.approx(-own + np.sqrt(own**2 + 9.81 * 0.3 / 0.1), rel=1e-4)
    found = experiment([fall(model, 0.0, 1), fall(model, 2e-4, 2)]).itself
    assert found is not None
    assert found.growth.rate == pytest.approx(exact, rel=0.06)
    assert found.growth.low < found.growth.rate < found.growth.high
    assert found.growth.high - found.growth.low < 0.4 * exact
    assert found.growth.end > 0.5  # they end as far apart as can be
    # the horizon is where an exponential of that rate gets from where it starts to the stated share
    share = np.interp(found.growth.horizon, found.curve.time, found.curve.middle)
    assert share == pytest.approx(0.1, rel=0.3)


def test_growth_of_a_curve_that_is_known():
    time = np.arange(0, 10, 0.01)
    rng = np.random.default_rng(0)
    exact = 1e-4 * np.exp(1.2 * time)
    curve = np.minimum(exact, 0.8) * np.exp(0.1 * rng.standard_normal((3, len(time))))
    found = growth(time, curve)
    assert found.rate == pytest.approx(1.2, rel=0.02)
    assert found.low < 1.2 < found.high
    assert found.horizon == pytest.approx(np.log(1e3) / 1.2, abs=0.1)
    assert found.end == pytest.approx(0.8, rel=0.1)
    flat = growth(time, 0.02 * np.exp(0.2 * rng.standard_normal((2, len(time)))))
    assert np.isnan(flat.rate)
    assert flat.horizon == np.inf
    far = growth(time, np.full((1, len(time)), 0.3))
    assert far.horizon == 0.0


def twice(jitter: float, meta: tuple = ({}, {})) -> list[Log]:
    rng = np.random.default_rng(3)
    command = smooth(12.0, rng)
    return [log_of(command, lagging(command) + jitter * rng.standard_normal(command.shape), meta=m) for m in meta]


def test_a_servo_told_the_same_twice_differs_from_itself_by_its_noise_and_no_more():
    logs = twice(1e-3)
    found = experiment(logs)
    assert found.twin is None
    assert found.itself is not None
    assert np.isnan(found.itself.growth.rate)
    assert found.itself.growth.horizon == np.inf
    np.testing.assert_allclose(found.itself.size, np.sqrt(2) * 1e-3, rtol=0.1)
    moves = np.concatenate([log["q"].values - log["q"].values.mean(axis=0) for log in logs]).std(axis=0)
    assert found.itself.growth.end == pytest.approx(np.sqrt(np.mean((np.sqrt(2) * 1e-3 / moves) ** 2)), rel=0.15)


def test_the_logs_say_which_experiment_it_is():
    both = experiment(twice(1e-3, ({"twin": True}, {})))
    assert both.itself is None
    assert both.twin is not None
    _, log = recorded(Spec("arm", change={"gains.kp/*": "x0.7"}), 6.0)
    _, again = recorded(Spec("arm", change={"gains.kp/*": "x0.7"}), 6.0)
    played = experiment([log, again], Twin.load("arm"))
    assert played.itself is not None
    assert played.twin is not None
    assert len(played.itself.pairs) == 1
    assert len(played.twin.pairs) == 2
    assert played.itself.growth.end < 1e-6  # the same seed
    assert played.twin.growth.end > 0.01
    said = played.json()
    assert said["twin"]["growth"]["rate"] is None or said["twin"]["growth"]["rate"] > 0


def test_other_commands_are_compared_by_their_states_and_other_gains_are_named():
    rng = np.random.default_rng(4)
    one, two = smooth(20.0, rng), smooth(20.0, rng)
    found = experiment([log_of(one, lagging(one)), log_of(two, lagging(two))])
    assert found.itself is None
    assert found.distances is not None
    assert found.note == "nothing was commanded twice from the same state"
    gains = experiment(twice(1e-3, ({"kp": 10.0}, {"kp": 20.0})))
    assert "drives with other gains" in gains.note


def test_torque_that_is_repeated_from_another_state_is_no_repeat():
    model = upright(1, 0.1)
    apart = experiment([fall(model, 0.0, 1), fall(model, 1.0, 2)])
    assert apart.itself is None
    assert apart.distances is not None


def test_bad_input_is_one_sentence():
    command = smooth(8.0, np.random.default_rng(5))
    log = log_of(command, lagging(command))
    with pytest.raises(BadInput, match="name a second log of the same commands"):
        experiment([log])
    with pytest.raises(BadInput, match="name at least one log"):
        experiment([])
    without = dataclasses.replace(log, signals={"q_cmd": log["q_cmd"]})
    with pytest.raises(BadInput, match="no joint positions"):
        experiment([without])
    with pytest.raises(BadInput, match="different robots"):
        experiment([log, log.rename({"j0": "knee"})])


@needs_data
def test_a_real_arm_differs_from_itself_by_a_few_percent_and_does_not_diverge():
    found = experiment([read(DATA / "so101/motions/actuator_bandwidth", "so101")]).itself
    assert found is not None
    assert len(found.pairs) >= 10
    assert np.isnan(found.growth.rate)
    assert 0.002 < found.growth.end < 0.05
    assert (np.degrees(found.size)[:5] < 0.3).all()


@needs_data
def test_a_real_double_pendulum_leaves_its_model_within_a_second():
    logs = [read(f, "double_pendulum") for f in sorted((DATA / "double_pendulum/design_C.1").glob("*.csv.gz"))[:3]]
    found = experiment(logs, Twin.load(DATA / "double_pendulum/model/double_pendulum.xml")).twin
    assert found is not None
    assert found.growth.horizon < 2.0
