"""Faults planted in copies of real logs are found, each by its name; the originals stay quiet."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gapless.logs import Log, read
from gapless.logs.inspection import inspect
from gapless.logs.inspection.finding import Ranges

SO101 = {
    "shoulder_pan": (-1.91986, 1.91986),
    "shoulder_lift": (-1.74533, 1.74533),
    "elbow_flex": (-1.69, 1.69),
    "wrist_flex": (-1.65806, 1.65806),
    "wrist_roll": (-2.74385, 2.74385),
    "gripper": (-0.174533, 1.74533),
}


def changed(log: Log, name: str, change: Callable[[np.ndarray], np.ndarray | None], joint: str = "") -> Log:
    """A copy in which one signal, or one joint of it, is changed (in place, or by what `change` returns)."""
    values = log[name].values.copy()
    part = values[:, log[name].columns.index(joint)] if joint else values
    result = change(part)
    if result is not None:
        part[...] = result
    return replace(log, signals={**log.signals, name: replace(log[name], values=values)})


def retimed(log: Log, change: Callable[[np.ndarray], np.ndarray], host: bool = False) -> Log:
    """A copy with other times in every signal."""
    signals = {
        k: replace(s, host_time=change(s.time.copy())) if host else replace(s, time=change(s.time.copy()))
        for k, s in log.signals.items()
    }
    return replace(log, signals=signals)


def kept(log: Log, which: Callable[[np.ndarray], np.ndarray]) -> Log:
    signals = {}
    for k, s in log.signals.items():
        keep = which(s.time)
        signals[k] = replace(s, time=s.time[keep], values=s.values[keep])
    return replace(log, signals=signals)


def with_imu(log: Log) -> Log:
    """The log of a body that rolls and pitches slowly about a tilt, with the IMU that it would have."""
    t = log["q"].time
    roll, pitch = 0.5 + 0.2 * np.sin(2 * t), -0.3 + 0.2 * np.sin(1.3 * t)
    zero = np.zeros_like(t)
    about_x = np.column_stack([np.cos(roll / 2), np.sin(roll / 2), zero, zero])
    about_y = np.column_stack([np.cos(pitch / 2), zero, np.sin(pitch / 2), zero])
    quat = product(about_y, about_x)
    up = np.column_stack([-np.sin(pitch), np.cos(pitch) * np.sin(roll), np.cos(pitch) * np.cos(roll)])
    rate = np.column_stack([0.4 * np.cos(2 * t), 0.26 * np.cos(1.3 * t) * np.cos(roll), -0.26 * np.cos(1.3 * t) * np.sin(roll)])
    imu = Log.from_arrays(log.joints, t, {"quat": quat, "gyro": rate, "acc": 9.81 * up})
    return replace(log, signals={**log.signals, **imu.signals})


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Hamilton product of wxyz quaternions, (n, 4) each."""
    aw, ax, ay, az = a.T
    bw, bx, by, bz = b.T
    return np.column_stack(
        [
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ]
    )


def swap(values: np.ndarray) -> None:
    values[:, [0, 2]] = values[:, [2, 0]]


def noisy(t: np.ndarray) -> np.ndarray:
    return t + 0.4 * np.median(np.diff(t)) * np.random.default_rng(0).uniform(-1, 1, len(t))


def mixed(t: np.ndarray) -> np.ndarray:
    return np.where(np.arange(len(t)) > len(t) // 2, t * 1e3, t)


def backwards(t: np.ndarray) -> np.ndarray:
    t[1000:1010] = t[1000:1010][::-1]
    return t


def repeated(t: np.ndarray) -> np.ndarray:
    t[500::50] = t[499::50][: len(t[500::50])]
    return t


def clipped(tau: np.ndarray) -> np.ndarray:
    return np.clip(tau, -0.3, 0.3)


def spiked(q: np.ndarray) -> None:
    q[[300, 900, 1700]] += np.array([1.0, -2.0, 1.5])


def stuck(q: np.ndarray) -> None:
    q[600:800] = q[600]


def missing(q: np.ndarray) -> None:
    q[100:140] = np.nan


def late(q: np.ndarray) -> np.ndarray:
    return np.concatenate([q[:3000], q[2995:-5]])


FAULTS: dict[str, tuple[str, str, Callable[[Log], Log]]] = {
    "time runs backwards": ("go2", "time_backwards", lambda log: retimed(log, backwards)),
    "time stands still now and then": ("go2", "time_repeats", lambda log: retimed(log, repeated)),
    "half of the times in milliseconds": ("go2", "time_units_mixed", lambda log: retimed(log, mixed)),
    "all times in milliseconds": ("so101", "time_unit", lambda log: retimed(log, lambda t: t * 1e3)),
    "all times in nanoseconds taken for microseconds": ("so101", "time_unit", lambda log: retimed(log, lambda t: t * 1e-3)),
    "half a second is lost": ("go2", "gap", lambda log: kept(log, lambda t: (t < 6) | (t > 6.5))),
    "a trembling clock": ("go2", "jitter", lambda log: retimed(log, noisy)),
    "the host's clock drifts": ("go2", "clock_drift", lambda log: retimed(log, lambda t: 1.01 * t, host=True)),
    "command and state on clocks far apart": (
        "go2",
        "clocks_apart",
        lambda log: replace(log, signals={"q": log["q"], "q_cmd": replace(log["q_cmd"], time=log["q_cmd"].time + 1e6)}),
    ),
    "two samples only": ("go2", "too_short", lambda log: kept(log, lambda t: t < 0.008)),
    "a dead encoder": ("go2", "dead", lambda log: changed(log, "q", lambda q: np.full_like(q, 0.1), "FL_hip_joint")),
    "a dead velocity": ("pendulum", "dead", lambda log: changed(log, "dq", np.zeros_like, "joint2")),
    "a dead torque sensor": ("pendulum", "dead", lambda log: changed(log, "tau", np.zeros_like, "joint1")),
    "an encoder that freezes for a second": ("go2", "stuck", lambda log: changed(log, "q", stuck, "RR_calf_joint")),
    "a clipped torque": ("pendulum", "saturated", lambda log: changed(log, "tau", clipped, "joint2")),
    "a coarse encoder": (
        "so101",
        "quantised",
        lambda log: changed(log, "q", lambda q: np.round(q / 0.02) * 0.02, "elbow_flex"),
    ),
    "spikes": ("go2", "spike", lambda log: changed(log, "q", spiked, "FR_thigh_joint")),
    "missing values": ("go2", "missing", lambda log: changed(log, "q", missing, "RL_hip_joint")),
    "chatter": (
        "pendulum",
        "chatter",
        lambda log: changed(log, "tau", lambda x: x + 6 * (-1.0) ** np.arange(len(x)) * np.linspace(0.5, 1, len(x)), "joint1"),
    ),
    "one joint measured in degrees": ("so101", "degrees", lambda log: changed(log, "q", np.degrees, "wrist_flex")),
    "radians read as degrees": ("pendulum", "degrees", lambda log: changed(log, "q", np.radians, "joint2")),
    "one joint commanded in degrees": ("so101", "degrees", lambda log: changed(log, "q_cmd", np.degrees, "wrist_flex")),
    "everything in degrees": ("go2", "degrees", lambda log: changed(changed(log, "q", np.degrees), "q_cmd", np.degrees)),
    "velocity in degrees": ("pendulum", "degrees", lambda log: changed(log, "dq", np.degrees, "joint1")),
    "a sign": ("go2", "sign", lambda log: changed(log, "q", np.negative, "FL_calf_joint")),
    "the sign of a velocity": ("pendulum", "sign", lambda log: changed(log, "dq", np.negative, "joint2")),
    "the sign of a torque": ("pendulum", "sign", lambda log: changed(log, "tau", np.negative, "joint2")),
    "a zero": ("so101", "zero", lambda log: changed(log, "q", lambda q: q + 0.35, "shoulder_pan")),
    "swapped joints": ("go2", "swapped", lambda log: changed(log, "q", swap)),
    "a joint the model does not have": ("so101", "unknown_joint", lambda log: log.rename({"elbow_flex": "elbow_flexx"})),
    "a joint beyond its range": (
        "so101",
        "out_of_range",
        lambda log: changed(changed(log, "q", lambda q: q + 1.6, "elbow_flex"), "q_cmd", lambda q: q + 1.6, "elbow_flex"),
    ),
    "a slip by five samples": ("so101", "slip", lambda log: changed(log, "q", late)),
    "no commands": ("go2", "no_command", lambda log: replace(log, signals={"q": log["q"]})),
    "gravity with the wrong sign": ("imu", "gravity", lambda log: changed(log, "acc", np.negative)),
    "quaternions as xyzw": ("imu", "quat_order", lambda log: changed(log, "quat", lambda x: x[:, [1, 2, 3, 0]].copy())),
    "quaternions the other way": ("imu", "quat_inverse", lambda log: changed(log, "quat", lambda x: x * [1, -1, -1, -1])),
    "quaternions of other length": ("imu", "quat_norm", lambda log: changed(log, "quat", lambda x: 1.1 * x)),
    "acceleration in g": ("imu", "acc_unit", lambda log: changed(log, "acc", lambda x: x / 9.81)),
    "gyro in degrees": ("imu", "degrees", lambda log: changed(log, "gyro", np.degrees)),
    "a dead axis of the gyro": ("imu", "dead", lambda log: changed(log, "gyro", np.zeros_like, "y")),
}


@pytest.fixture(scope="module")
def originals(data: Path) -> dict[str, tuple[Log, Ranges | None]]:
    go2 = read(data / "go2_inair" / "go2_inair.npz", "go2_inair")
    return {
        "go2": (go2, None),
        "imu": (with_imu(go2), None),
        "so101": (read(data / "so101" / "motions" / "custom_motion", "so101"), SO101),
        "pendulum": (read(data / "double_pendulum" / "design_C.1" / "log_00.csv.gz", "double_pendulum"), None),
    }


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(originals: dict[str, tuple[Log, Ranges | None]], fault: str) -> None:
    base, code, plant = FAULTS[fault]
    log, facts = originals[base]
    found = inspect(plant(log), facts).findings
    told = [f for f in found if f.code == code]
    assert told, f"{fault}: only {[(f.code, f.joint) for f in found]}"
    assert all(f.sentence for f in told) and any(f.severity != "info" for f in told)


@pytest.mark.parametrize("base", ["go2", "imu", "so101", "pendulum"])
def test_the_originals_are_quiet(originals: dict[str, tuple[Log, Ranges | None]], base: str) -> None:
    found = inspect(*originals[base]).findings
    assert [f.sentence for f in found if f.severity != "info"] == []


def test_the_place_of_a_fault_is_told(originals: dict[str, tuple[Log, Ranges | None]]) -> None:
    log, _ = originals["go2"]
    gap = next(f for f in inspect(FAULTS["half a second is lost"][2](log)).findings if f.code == "gap")
    assert gap.start == pytest.approx(6, abs=0.01) and gap.value == pytest.approx(0.5, abs=0.02)
    spike = next(f for f in inspect(FAULTS["spikes"][2](log)).findings if f.code == "spike")
    assert spike.joint == "FR_thigh_joint" and spike.start == pytest.approx(log["q"].time[900])
    swapped = [f.joint for f in inspect(FAULTS["swapped joints"][2](log)).findings if f.code == "swapped"]
    assert swapped == ["FL_hip_joint", "FL_calf_joint"]


def test_nearest_names_are_offered(originals: dict[str, tuple[Log, Ranges | None]]) -> None:
    log, facts = originals["so101"]
    report = inspect(log.rename({"elbow_flex": "elbow_flexx"}), facts)
    assert report.errors == 1
    assert "unknown joint 'elbow_flexx': did you mean 'elbow_flex'" in report.findings[0].sentence


def gripper(stop: float) -> Log:
    """A joint with dry friction that follows triangles 0.12 rad late, and closes at a stop."""
    time = np.arange(3000) * 0.005
    command = 0.5 * np.abs((time + 1) % 4 - 2) - 0.5
    q = np.zeros_like(command)
    for i in range(1, len(q)):
        q[i] = min(np.clip(q[i - 1], command[i] - 0.12, command[i] + 0.12), stop)
    return Log.from_arrays(("grip",), time, {"q": q[:, None], "q_cmd": command[:, None]})


def test_a_stop_that_the_command_goes_beyond_is_named_with_its_place() -> None:
    found = [f for f in inspect(gripper(0.3), {"grip": (-2.0, 1.0)}).findings if f.code == "stop"]
    assert len(found) == 1 and found[0].value == pytest.approx(0.3, abs=0.01)
    assert "stops at about 0.300 rad" in found[0].sentence and "the model's range ends at 1.000 rad" in found[0].sentence
    assert not [f for f in inspect(gripper(9.0)).findings if f.code == "stop"], "friction alone is no stop"
