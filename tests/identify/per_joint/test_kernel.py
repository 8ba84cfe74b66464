"""One joint alone against the full model: the same parameters give the same motion."""

from dataclasses import replace

import mujoco
import numpy as np
import pytest

from gapless.identify.least_squares import least_squares
from gapless.identify.per_joint.inverse_dynamics import trajectory_of
from gapless.identify.per_joint.kernel import (
    PLACE,
    QUANTITIES,
    STOP_DEEP,
    STOP_FIRM,
    STOP_FIRMEST,
    STOP_TIME,
    Data,
    gather,
    residuals,
)
from gapless.identify.per_joint.problem import problem
from gapless.logs import Log
from gapless.twin import Armature, Backlash, Flex, Friction, Latency, Motor, Twin
from gapless.worlds import StandIn, StandInSpec as Spec, build_standin as build, plan_motion as plan, record
from tests.twin.models import one_world, pendulum, twin_of

FRICTION = {
    "friction.viscous/*": "x1.5",
    "friction.coulomb/*": "x2.0",
    "friction.stribeck/*": 0.05,
    "friction.load/*": 0.1,
    "friction.angle/*": 0.02,
    "latency.action": 0.013,
    "gains.kp/*": "x0.8",
}


def alone(robot: str, change: dict[str, float | str], motion: str = "rich") -> tuple[np.ndarray, np.ndarray]:
    """Errors of joints simulated alone at the true parameters and at the nominal ones: (joints,) each [rad]."""
    timestep = Twin.load(robot).model.opt.timestep
    spec = Spec(robot, tolerance=0, timestep=timestep, change=change, add={"friction": {"full": True}})
    stand_in = StandIn(spec)
    log = record(stand_in, plan(motion, build(spec), 8.0, np.random.default_rng(0)), stand_in.signal)
    twin = Twin.load(robot, add=[Friction(full=True)])
    truth = stand_in.reveal()
    c = trajectory_of(twin, log)
    qpos, _ = twin.home, twin.home_command
    errors = []
    for j, d in enumerate(twin.drives):
        p = problem(twin, d.name, gather([c], j, float(qpos[d.qpos]), True, twin.model.opt.timestep))
        right = p.base.copy()
        for quantity in QUANTITIES:
            for full in (quantity, f"{quantity}/{d.name}"):
                if full in truth:
                    right[PLACE[quantity]] = truth[full]
        both = residuals(p.data, np.stack([right, p.base]))
        errors.append(np.sqrt((both**2).mean(axis=1)))
    return tuple(np.array(errors).T)


def test_a_single_joint_moves_as_in_the_full_model():
    right, nominal = alone("bench", FRICTION)
    assert np.degrees(right[0]) < 0.05
    assert right[0] < 0.05 * nominal[0]


def test_joints_of_an_arm_alone_along_the_measured_trajectory_move_nearly_as_together():
    """Nearly: what the others do to a joint comes from accelerations estimated at 50 Hz."""
    right, nominal = alone("arm", FRICTION, "prbs")
    assert (right < 0.15 * nominal).all()


@pytest.mark.parametrize("delay", [0.0, 0.0033, 0.02])
def test_a_delay_shifts_the_motion(delay):
    right, nominal = alone("bench", {"latency.action": delay})
    assert np.degrees(right[0]) < 0.05
    assert delay < 0.01 or right[0] < 0.1 * nominal[0]


LINE, PLAY, FLEX = {"no_load_speed": 4.7}, {"width": 0.02}, {"stiffness": 30.0, "damping": 0.05}


def logged(add: dict, change: dict[str, float | str], timestep: float | None, **more) -> tuple[Log, dict[str, float]]:
    """A log of a `bench` with more mechanisms, and what it really is; a longer one where it has noise."""
    spec = Spec("bench", seed=1, tolerance=0, timestep=timestep, change=change, add={"friction": {"full": True}} | add, **more)
    stand_in = StandIn(spec)
    seconds = 20.0 if more else 8.0
    return record(stand_in, plan("rich", build(spec), seconds, np.random.default_rng(0)), stand_in.signal), stand_in.reveal()


def samples(log: Log, timestep: float | None = None) -> Data:
    """A log of `bench` for the simulation of its one joint, along the rigid twin."""
    twin = Twin.load("bench", add=[Friction(full=True)], timestep=timestep)
    return gather([trajectory_of(twin, log)], 0, 0.0, True, twin.model.opt.timestep)


def vector(truth: dict[str, float], other: dict[str, float] | None = None, joint: str = "servo") -> np.ndarray:
    """What the simulation takes, from the twin's parameters by name."""
    neutral = {"friction.stribeck_speed": 0.1, "motor.limit": 1e9, "motor.strength": 1.0}
    known = {q: truth[n] for q in QUANTITIES for n in (q, f"{q}/{joint}") if n in truth}
    return np.array([(neutral | known | (other or {})).get(q, 0.0) for q in QUANTITIES])


def rms(error: np.ndarray) -> np.ndarray:
    return np.degrees(np.sqrt((error**2).mean(axis=-1)))


@pytest.mark.parametrize("timestep", [0.005, 0.002])
@pytest.mark.parametrize(
    ("add", "change", "gone", "share"),
    [
        ({"motor": LINE}, {}, {"motor.no_load_speed": 0.0}, 0.02),
        ({"backlash": PLAY}, {}, {"backlash.width": 0.0}, 0.08),
        ({"backlash": PLAY}, {"armature.inertia/*": "x0.1", "gains.kd/*": "x4"}, {"backlash.width": 0.0}, 0.08),
        ({"flex": FLEX}, {}, {"flex.stiffness": 0.0}, 0.04),
        ({"flex": {"stiffness": 50.0, "damping": 1.0}}, {"friction.coulomb/*": "x2.0"}, {"flex.stiffness": 0.0}, 0.04),
    ],
    ids=["line", "play", "play on a light rotor", "flex", "damped flex"],
)
def test_a_mechanism_moves_the_joint_as_it_moves_the_twin(add, change, gone, share, timestep):
    log, truth = logged(add, change, timestep)
    data = samples(log, timestep)
    right, without = rms(residuals(data, np.stack([vector(truth), vector(truth, gone)])))
    assert right < share * without
    assert without > 0.03  # deg: the mechanism is seen at all


@pytest.mark.parametrize("mechanism", [Backlash(width=0.1), Flex(stiffness=15.0, damping=0.05)], ids=["play", "flex"])
def test_a_torque_drive_without_rotor_inertia_moves_its_link_as_in_the_twin(mechanism):
    """Where a model has no rotor inertia the twin puts a little, as nothing can part without it; so does the simulation."""
    usual = (Latency(), Motor(), Friction(), Armature())
    twin = twin_of(pendulum(timestep=0.0025), *usual, mechanism, control_dt=0.01)
    rigid = twin_of(pendulum(timestep=0.0025), *usual, control_dt=0.01)
    t = np.arange(400) * 0.01
    torque = np.where(t < 0.3, 0.0, np.sin(2 * np.pi * t / 1.3) + 0.5 * np.sign(np.sin(2 * np.pi * t / 0.37)))
    world, q = one_world(twin), [0.0]
    for u in torque:
        world.step(np.full((1, 1), u))
        q.append(float(world.qpos[0, twin.drives[0].qpos]))
    told = np.append(torque, torque[-1])
    log = Log.from_arrays(twin.joints, np.arange(len(q)) * 0.01, {"q": np.array(q)[:, None], "tau_cmd": told[:, None]})
    data = gather([trajectory_of(rigid, log)], 0, 0.0, False, 0.0025)
    data = replace(data, starts=data.logs)  # from rest: the link's state at later windows was not measured
    truth = dict(zip(twin.space.names, twin.space.nominal, strict=True))
    vectors = [
        vector(truth, other, "pivot") for other in ({"armature.inertia": 0.0}, {"backlash.width": 0.0, "flex.stiffness": 0.0})
    ]
    right, without = rms(residuals(data, np.stack(vectors)))
    assert right < 0.03 * without


def test_what_is_not_there_does_nothing():
    log, truth = logged({}, FRICTION, None)
    data = samples(log)
    bare = vector(truth)
    nothing = [vector(truth, other) for other in ({"motor.no_load_speed": -1.0}, {"flex.damping": 5.0})]
    assert (residuals(data, np.stack(nothing)) == residuals(data, bare[None])).all()
    others = ({"motor.no_load_speed": 1e9}, {"backlash.width": 1e-9}, {"flex.stiffness": 1e6, "flex.damping": 0.1})
    hardly = [vector(truth, other) for other in others]
    line, play, flex = rms(residuals(data, np.stack(hardly)) - residuals(data, bare[None]))
    assert line < 1e-6
    assert max(play, flex) < 0.02  # deg: the twin's dry friction, with a joint more, sticks a little differently


def test_a_stop_is_as_hard_as_the_twins():
    model = Twin.load("bench", add=[Backlash()]).model
    play = model.joint("servo_play").id
    assert model.jnt_solref[play].tolist() == [
        STOP_TIME,
        1.0,
    ]  # the engine and the kernel make it as soft as their step asks for
    assert not model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_REFSAFE
    assert model.jnt_solimp[play].tolist() == [STOP_FIRM, STOP_FIRMEST, STOP_DEEP, 0.5, 2.0]


@pytest.mark.parametrize("stiffness", [1.0, 1e3, 1e7])
@pytest.mark.parametrize("flex_damping", [0.0, 100.0])
@pytest.mark.parametrize("armature", [1e-5, 1e-2])
def test_no_spring_is_too_stiff_for_the_step(stiffness, flex_damping, armature):
    log, truth = logged({}, {}, None)
    spring = {"flex.stiffness": stiffness, "flex.damping": flex_damping}
    wild = vector(truth, spring | {"armature.inertia": armature, "friction.viscous": 2.0})
    assert np.abs(residuals(samples(log), wild[None])).max() < 1.0


@pytest.mark.parametrize("add", [{"backlash": {"width": 0.1}}, {"flex": {"stiffness": 10.0}}], ids=["play", "flex"])
def test_a_link_starts_where_its_load_leaves_it(add):
    """Held still against gravity it stays still, though the simulation starts in the middle of a log."""
    stand_in = StandIn(Spec("bench", tolerance=0, timestep=0.005, change={"friction.coulomb/*": 0.0}, add=add))
    log = record(stand_in, np.full((300, 1), 1.2), stand_in.signal)
    held = Log.from_arrays(log.joints, log["q"].time[200:], {s: log[s].values[200:] for s in ("q", "q_cmd")})
    error = residuals(samples(held), vector(stand_in.reveal())[None])
    assert np.degrees(np.abs(error)).max() < 0.01


NOISE = {"noise_q": 0.0003, "noise_dq": 0.01}
PLAIN = ("gains.kp", "armature.inertia", "friction.viscous", "friction.coulomb", "latency.action")


def found(log: Log, twin: Twin, quantities: tuple[str, ...], starts: list[dict[str, float]]) -> dict[str, float]:
    """The best of several fits of some of a twin's quantities, each from a fit without those that are new, as on the ladder."""
    data = samples(log)
    named = {n: n if n == "latency.action" else f"{n}/servo" for n in (*PLAIN, *quantities)}
    nominal = dict(zip(twin.space.names, twin.space.nominal, strict=True))
    absent = {"backlash.width": 0.0, "flex.stiffness": 0.0, "motor.no_load_speed": 0.0}

    def fit(of: tuple[str, ...], base: np.ndarray, start: dict[str, float]):
        space = twin.space.select(*(named[n] for n in of))
        places = [PLACE[p.quantity] for p in space.parameters]

        def at(scaled: np.ndarray) -> np.ndarray:
            vectors = np.tile(base, (len(scaled), 1))
            vectors[:, places] = space.clip(space.from_scaled(scaled))
            return vectors

        begin = space.to_scaled([start.get(p.quantity, p.nominal) for p in space.parameters])
        low, high = space.to_scaled(space.low), space.to_scaled(space.high)
        end = least_squares(lambda scaled: residuals(data, at(scaled)), begin, low, high, iterations=40)
        values = dict(zip((p.quantity for p in space.parameters), space.from_scaled(end.x).tolist(), strict=True))
        return end.cost, values

    plain = fit(PLAIN, vector(nominal, absent), {})
    held = {q: v for q, v in absent.items() if q not in quantities}
    ends = [fit((*PLAIN, *quantities), vector(nominal, held), plain[1] | start) for start in starts]
    cost, values = min(ends, key=lambda e: e[0])
    assert cost < 0.5 * plain[0]
    return values


SECRETS = {"gains.kp/*": "x0.8", "friction.coulomb/*": "x1.5", "latency.action": 0.012}


@pytest.mark.parametrize(("timestep", "within"), [(0.005, 0.0005), (None, 0.004)], ids=["same steps", "half steps"])
def test_a_play_is_found_from_a_log(timestep, within):
    """Less sharply where the robot's own steps differ: part of a play looks like a shorter delay, which steps shift too."""
    log, truth = logged({"backlash": PLAY}, SECRETS, timestep, sensors=NOISE)
    twin = Twin.load("bench", add=[Friction(full=True), Backlash()])
    values = found(log, twin, ("backlash.width",), [{"backlash.width": w} for w in (0.005, 0.01, 0.03)])
    assert values["backlash.width"] == pytest.approx(truth["backlash.width/servo"], abs=within)


def test_a_spring_is_found_from_a_log():
    log, truth = logged({"flex": FLEX}, SECRETS, None, sensors=NOISE)
    twin = Twin.load("bench", add=[Friction(full=True), Flex(stiffness=60.0, damping=0.05)])
    values = found(log, twin, ("flex.stiffness", "flex.damping"), [{"flex.stiffness": k} for k in (15.0, 60.0)])
    assert values["flex.stiffness"] == pytest.approx(truth["flex.stiffness/servo"], rel=0.03)
    assert values["flex.damping"] == pytest.approx(truth["flex.damping/servo"], rel=0.3)


def test_a_no_load_speed_is_found_from_a_log():
    """With the drive's damping known: freed, it takes what it likes from the line and from viscous friction."""
    log, truth = logged({"motor": LINE}, SECRETS, None, sensors=NOISE)
    twin = Twin.load("bench", add=[Friction(full=True), Motor(no_load_speed=9.0)])
    values = found(log, twin, ("motor.no_load_speed",), [{}])
    assert values["motor.no_load_speed"] == pytest.approx(truth["motor.no_load_speed/servo"], rel=0.03)
