"""What drives were told: every signal that a log may have, by joint, on the clock that it was sent on."""

from dataclasses import replace

import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.logs import Log, Signal
from gapless.twin import Gains, Latency, Twin
from gapless.worlds.drive_commands import DriveCommands, drive_commands
from tests.twin.models import pendulum, twin_of, wheel

SERVO = '<position name="pivot" joint="pivot" kp="50" kv="5"/>'
TIME = np.arange(5) * 0.1


def servo() -> Twin:
    return twin_of(pendulum(SERVO, timestep=0.001), Latency(), Gains())


def log_of(joint: str = "pivot", meta: dict | None = None, **signals: object) -> Log:
    """A log of one joint at rest; each signal is a number, values at TIME, or (times, values)."""
    made = {"q": Signal("q", TIME, np.zeros((5, 1)), (joint,))}
    for name, given in signals.items():
        time, values = given if isinstance(given, tuple) else (TIME, np.broadcast_to(given, 5))
        made[name] = Signal(name, np.asarray(time, float), np.asarray(values, float)[:, None], (joint,))
    return Log(made, (joint,), meta=meta or {})


def test_every_signal_is_read_on_its_own_clock_and_held():
    log = log_of(
        q_cmd=([0.0, 0.2], [1.0, 2.0]),
        dq_cmd=([0.1], [0.5]),
        tau_ff=([0.0, 0.3], [3.0, np.nan]),
        kp=([0.0, 0.25], [100.0, 25.0]),
        kd=7.5,
        enabled=([0.0, 0.35], [1.0, 0.0]),
    )
    now = drive_commands(servo(), log).at(np.array([0.05, 0.15, 0.22, 0.27, 0.32, 0.4]))
    columns = {name: getattr(now, name)[:, 0].tolist() for name in ("target", "velocity", "torque", "kp", "kd")}
    assert columns == {
        "target": [1.0, 1.0, 2.0, 2.0, 2.0, 2.0],
        "velocity": [0.5] * 6,  # the first message stands before it was sent
        "torque": [3.0, 3.0, 3.0, 3.0, 0.0, 0.0],
        "kp": [2.0, 2.0, 2.0, 0.5, 0.5, 0.0],
        "kd": [1.5, 1.5, 1.5, 1.5, 1.5, 0.0],
    }


@pytest.mark.parametrize(
    ("signals", "meta", "kp", "kd"),
    [
        ({}, {}, 1.0, 1.0),
        ({}, {"kp": 100.0, "kd": 10}, 2.0, 2.0),
        ({}, {"kp": {"pivot": 25.0, "other": 1.0}, "kd": {"other": 1.0}}, 0.5, 1.0),
        ({"kp": 75.0}, {"kp": 100.0}, 1.5, 1.0),
        ({"kp": 0.0}, {}, 1e-6, 1.0),
        ({"enabled": 0.0}, {"kp": 100.0}, 0.0, 0.0),
    ],
    ids=["none", "meta", "meta by joint", "signal before meta", "damping only", "off"],
)
def test_gains_are_signals_constants_or_constants_by_joint(signals, meta, kp, kd):
    read = drive_commands(servo(), log_of(meta=meta, q_cmd=1.0, **signals))
    assert (read.kp == kp).all()
    assert (read.kd == kd).all()


def test_a_torque_drive_takes_torque_and_no_feed_forward():
    read = drive_commands(twin_of(wheel()), log_of("axle", tau_cmd=2.0, tau_ff=3.0, dq_cmd=1.0, enabled=[1, 1, 0, 0, 1]))
    assert (read.target == 2.0).all()
    assert not read.velocity.any()
    assert not read.torque.any()
    assert read.kp[:, 0].tolist() == [1, 1, 0, 0, 1]


def test_the_damping_of_a_velocity_servo_is_its_gain():
    twin = twin_of(wheel('<velocity name="axle" joint="axle" kv="2"/>'), Gains())
    read = drive_commands(twin, log_of("axle", dq_cmd=1.0, kd=3.0))
    assert (read.target == 1.0).all()
    assert (read.kp == 1.5).all()
    assert (read.kd == 1.5).all()


def test_messages_keep_the_order_of_the_joints():
    twin = Twin.load("arm")
    names = twin.joints[::-1]
    log = Log.from_arrays(names, TIME, {"q": np.zeros((5, 6)), "q_cmd": np.tile(np.arange(6.0), (5, 1))})
    read = drive_commands(twin, log)
    assert isinstance(read, DriveCommands)
    assert read.time is log["q_cmd"].time
    assert read.target[0].tolist() == [5, 4, 3, 2, 1, 0]


@pytest.mark.parametrize(
    ("twin", "log", "message"),
    [
        (servo, log_of(), "pivot is driven by q_cmd in test, but the log has no commands at all"),
        (lambda: twin_of(pendulum()), log_of(q_cmd=1.0), "driven by tau_cmd .* has q_cmd; state the drive's gains"),
        (servo, log_of(q_cmd=[0, 1, np.nan, 1, 1]), "a command at 0.200 s is not a number"),
        (servo, log_of(q_cmd=1.0, kd=[1, np.nan, 1, 1, 1]), "a gain at 0.100 s is not a number"),
        (servo, log_of(q_cmd=([9.0], [1.0])), "not logged at the same time"),
        (servo, log_of(q_cmd=([0.1, 0.0], [1.0, 1.0])), "runs backwards"),
        (lambda: twin_of(pendulum(SERVO)), log_of(q_cmd=1.0, tau_ff=1.0), "needs its gains: add Gains"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(twin, log, message):
    with pytest.raises(BadInput, match=message):
        drive_commands(twin(), replace(log))
