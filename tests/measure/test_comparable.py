"""Logs that cannot be compared with a model: one sentence each, which says what would be needed."""

import dataclasses

import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.logs import Log, Provenance
from gapless.measure import fall, long_enough, moving, must_compare
from gapless.twin import Twin


def log_of(name: str, joints: tuple[str, ...], tilt: float = 0.0, command: str = "q_cmd", quat: bool = True) -> Log:
    n = 200
    still = np.zeros((n, len(joints)))
    angle = tilt * np.sin(np.arange(n) * 0.1)
    signals = {"q": still, command: still}
    if quat:
        signals["quat"] = np.stack([np.cos(angle / 2), np.sin(angle / 2), 0 * angle, 0 * angle], axis=1)
    return Log.from_arrays(joints, np.arange(n) * 0.02, signals, provenance=Provenance(source=f"/logs/{name}"))


def refused(twin: Twin, *logs: Log) -> str:
    with pytest.raises(BadInput) as caught:
        must_compare(twin, logs)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_logs_of_different_robots_are_not_mixed():
    twin = Twin.load("arm")
    ours, theirs = log_of("ours.npz", twin.joints), log_of("theirs.npz", (*twin.joints[:-1], "tail"))
    assert "/logs/ours.npz and /logs/theirs.npz are of different robots" in refused(twin, ours, theirs)
    torque = log_of("torque.npz", twin.joints, command="tau_cmd")
    assert "/logs/ours.npz has q_cmd and /logs/torque.npz has tau_cmd" in refused(twin, ours, torque)
    must_compare(twin, [ours, ours])


def test_a_fall_is_told_with_the_part_that_came_before():
    twin = Twin.load("quadruped")
    assert "fell over 0.1 s after the start, and no replay follows a fall: record it again" in refused(
        twin, log_of("fell.npz", twin.joints, tilt=3.0)
    )
    late = log_of("late.npz", twin.joints)
    quat = late["quat"].values.copy()
    quat[150:] = [np.sqrt(0.5), np.sqrt(0.5), 0.0, 0.0]
    late = dataclasses.replace(late, signals=late.signals | {"quat": dataclasses.replace(late["quat"], values=quat)})
    assert "/logs/late.npz@0:2.0" in refused(twin, late)
    assert fall(twin, late) == pytest.approx(3.0)
    assert fall(Twin.load("quadruped", in_air=True), late) is None
    must_compare(twin, [log_of("swaying.npz", twin.joints, tilt=0.5)])


def test_a_base_that_is_free_in_one_and_held_in_the_other():
    free, held = Twin.load("quadruped"), Twin.load("quadruped", in_air=True)
    blind = log_of("blind.npz", free.joints, quat=False)
    assert "no orientation (signal quat): log the IMU, or say that the base was held (--in-air)" in refused(free, blind)
    walking = log_of("walking.npz", free.joints, tilt=0.4)
    assert "the base turned by 23 deg, but that of quadruped is held: leave out --in-air" in refused(held, walking)
    must_compare(held, [blind, log_of("hung.npz", free.joints, tilt=0.02)][:1])
    must_compare(held, [log_of("hung.npz", free.joints, tilt=0.02)])
    must_compare(free, [walking])


def test_no_positions_no_log_and_too_little():
    twin = Twin.load("arm")
    log = log_of("a.npz", twin.joints)
    without = dataclasses.replace(log, signals={k: s for k, s in log.signals.items() if k != "q"})
    assert "no joint positions" in refused(twin, without)
    assert "name at least one log" in refused(twin)
    with pytest.raises(BadInput, match=r"only 2\.0 s of usable data: record at least 4 s"):
        long_enough([log.slice(0.0, 2.01)])
    long_enough([log])
    with pytest.raises(BadInput, match=r"no joint moves in /logs/a\.npz: record motion"):
        moving([log])
