"""Fits: a stand-in's secrets, the rung that it needs, and a real robot's figure."""

import re
from dataclasses import replace

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from gapless.errors import BadInput
from gapless.identify import Fit, fit, fit_admitted
from gapless.logs import Log, read
from gapless.twin import DC, Armature, Friction, Gains, Latency, Motor, Offset, Twin
from gapless.worlds import StandIn, StandInSpec as Spec, build_standin as build, plan_motion as plan, record
from tests.data import DATA, needs_data
from tests.twin.models import pendulum, twin_of

pytestmark = pytest.mark.xdist_group("fitting")  # one worker makes the fixtures, once

NOISE = {"noise_q": 0.0003, "noise_dq": 0.01}


def fitted(robot: str, change: dict[str, float | str], seconds: float = 20.0) -> tuple[Fit, dict[str, float]]:
    spec = Spec(robot, seed=1, tolerance=0, change=change, add={"friction": {"full": True}}, sensors=NOISE)
    stand_in = StandIn(spec)
    log = record(stand_in, plan("rich", build(spec), seconds, np.random.default_rng(0)), stand_in.signal)
    return fit(Twin.load(robot, add=[Friction(full=True)]), [log]), stand_in.named()


@pytest.fixture(scope="module")
def bench() -> tuple[Fit, dict[str, float]]:
    return fitted(
        "bench", {"gains.kp/*": "x0.6", "friction.coulomb/*": "x2.5", "friction.viscous/*": "x1.4", "latency.action": 0.012}
    )


def test_the_secrets_of_a_servo_are_found(bench):
    found, secrets = bench
    values = dict(zip(found.twin.space.names, found.values, strict=True))
    for name, truth in secrets.items():
        tolerance = 0.004 if name == "latency.action" else 0.15 * truth
        assert values[name] == pytest.approx(truth, abs=tolerance), name


def test_the_fit_predicts_what_it_has_not_seen_and_beats_every_baseline(bench):
    found, _ = bench
    e = found.heldout
    assert e.fit < 0.2 * min(e.command, e.delay, e.given)
    assert np.degrees(e.fit) < 0.15


def test_a_rung_that_is_not_needed_is_not_climbed(bench):
    found, _ = bench
    climbed = {r.name for r in found.ladder if r.added}
    assert "+ viscous and Coulomb friction" in climbed
    assert not climbed & {"+ friction with angle", "+ torque limit"}


def test_a_rung_that_is_needed_is_climbed():
    found, _ = fitted("bench", {"friction.angle2/*": 0.3})
    assert "+ friction with angle" in {r.name for r in found.ladder if r.added}


def test_a_known_parameter_is_not_fitted():
    spec = Spec("bench", tolerance=0, change={"gains.kp/*": "x0.6"}, sensors=NOISE)
    stand_in = StandIn(spec)
    log = record(stand_in, plan("rich", build(spec), 12.0, np.random.default_rng(0)), stand_in.signal)
    twin = Twin.load("bench", add=[Friction(full=True)])
    known = {"armature.inertia/*": 0.004}
    found = fit(twin, [log], fixed=known)
    name = twin.space.match("armature.inertia/*")[0]
    assert found.values[twin.space.names.index(name)] == 0.004
    assert name not in found.belief.space.names


@needs_data
def test_a_log_that_chatters_is_not_trusted_and_it_says_why():
    twin = twin_of(pendulum(timestep=0.001), Latency(), Motor(), Friction(full=True), Armature(), Offset(), control_dt=0.002)
    found = fit_admitted(twin, [read(DATA / "simple_pendulum/logs/pd_chatter_measured.csv.gz", mapping="simple_pendulum")])
    assert not found.predicts
    assert "from sample to sample" in " ".join(found.against)


@needs_data
def test_a_servo_with_one_known_mass_says_that_kt_and_friction_are_coupled():
    logs = [read(p, mapping="xl330") for p in sorted((DATA / "xl330/logs").glob("kp[18]00_up*"))]
    motor = Motor(dc=DC(0.74, 2.7, logs[0].meta["vin"], voltage_control=True))
    gains = Gains(kp={"*": logs[0].meta["kp"]}, kd={"*": 0.0})
    found = fit(Twin.load(DATA / "xl330/model/xl330_bench.xml", add=[Friction(full=True), gains, motor]), logs)
    assert any("kt and friction are coupled" in u.meaning for u in found.undetermined)
    assert found.heldout.fit < 0.2 * found.heldout.given


@needs_data
def test_go2_in_the_air_on_the_blocks_it_was_not_fitted_to():
    model = DATA / "go2_inair/model/go2_fixed_base.xml"
    twin = Twin.load(model, add=[Gains(kp={"*": 20.0}, kd={"*": 1.5}), Friction(full=True)])
    log = read(DATA / "go2_inair/go2_inair.npz", mapping="go2_inair")
    found = fit(twin, [log.slice(log.start, log.start + 0.5 * log.duration)])  # the whole log is for bench.identify
    assert np.degrees(found.heldout.fit) < 0.15
    assert "+ friction with angle" in {r.name for r in found.ladder if r.added}


def test_a_log_too_short_or_without_commands_is_refused():
    twin = Twin.load("bench", add=[Friction(full=True)])
    for count, signals, reason in ((10, ("q", "q_cmd"), "too few"), (100, ("q",), "driven by q_cmd")):
        t = np.arange(count) * 0.02
        log = Log.from_arrays(twin.joints, t, dict.fromkeys(signals, np.sin(t)[:, None]))
        with pytest.raises(BadInput, match=reason):
            fit_admitted(twin, [log])


class Exact(Armature):
    """An armature that cannot be wrong."""

    def bind(self, model):
        bound = super().bind(model)
        return replace(bound, parameters=tuple(replace(p, tolerance=0.0) for p in bound.parameters))


def test_a_number_that_cannot_be_wrong_must_be_fixed():
    twin = Twin.load("bench", mechanisms=[Gains(), Exact(), Latency()])
    t = np.arange(400) * 0.02
    log = Log.from_arrays(twin.joints, t, dict.fromkeys(("q", "q_cmd"), 0.1 * np.sin(t)[:, None]))
    (name,) = [n for n in twin.space.names if n.startswith("armature")]
    with pytest.raises(BadInput, match=f"{name} has a tolerance of zero.*--fix {name}="):
        fit_admitted(twin, [log])


def test_a_fit_has_the_same_bits_whatever_threads_numpy_was_loaded_with():
    class Seen(Exception):
        pass

    def tick(text: str) -> None:
        raise Seen({p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"})

    twin = Twin.load("bench")
    t = np.arange(400) * 0.02
    log = Log.from_arrays(twin.joints, t, {"q_cmd": 0.3 * np.sin(t)[:, None], "q": 0.3 * np.sin(t - 0.05)[:, None]})
    with threadpool_limits(2, "blas"), pytest.raises(Seen, match=re.escape("{1}")):
        fit_admitted(twin, [log], tick)


def test_lost_frames_neither_count_as_errors_nor_move_the_held_out_blocks():
    spec = Spec("bench", tolerance=0, change={"gains.kp/*": "x0.6"}, sensors=NOISE)
    stand_in = StandIn(spec)
    log = record(stand_in, plan("rich", build(spec), 8.0, np.random.default_rng(0)), stand_in.signal)
    holes = np.array(log["q"].values)
    holes[100:103] = np.nan
    broken = Log.from_arrays(log.joints, log["q"].time, {"q": holes, "q_cmd": log["q_cmd"].values})
    found = fit(Twin.load("bench", add=[Friction(full=True)]), [broken, log])
    for value in vars(found.heldout).values():
        assert np.isfinite(value)
    assert found.heldout.fit < 0.3 * found.heldout.given


def test_logged_torque_settles_the_scale_that_positions_leave_free():
    spec = Spec("bench", seed=1, tolerance=0, change={"gains.kp/*": "x0.7", "latency.action": 0.008}, sensors=NOISE)
    stand_in = StandIn(spec)
    log = record(stand_in, plan("rich", build(spec), 12.0, np.random.default_rng(0)), stand_in.signal)
    found = fit(Twin.load("bench", add=[Friction(full=True)]), [log], signals=("q", "tau"))
    assert not any("one free scale" in u.meaning for u in found.undetermined)
    assert found.values[found.twin.space.names.index("gains.kp/servo")] == pytest.approx(
        stand_in.named()["gains.kp/servo"], rel=0.03
    )
    assert np.degrees(found.heldout.fit) < 0.05


def test_delays_of_command_and_reading_are_said_to_be_a_sum(bench):
    found, _ = bench
    assert any("only the total delay" in u.meaning for u in found.undetermined)
