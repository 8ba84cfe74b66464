"""The delay of a servo is found apart from its lag, to 2 ms; where a log does not determine it, that is said."""

from pathlib import Path

import mujoco
import numpy as np
import pytest

from gapless.logs import Log, read
from gapless.logs.inspection.delay_estimate import Delay, delays, together

SERVO = """
<mujoco>
  <option timestep="0.0005" integrator="implicitfast"/>
  <worldbody>
    <body>
      <joint name="j" axis="0 1 0" armature="{armature}" damping="0.1" frictionloss="{friction}"/>
      <geom type="capsule" fromto="0 0 0 0.2 0 0" size=".01" mass="{mass}"/>
    </body>
  </worldbody>
  <actuator>
    <general joint="j" gainprm="{kp}" biastype="affine" biasprm="0 -{kp} -{kd}" forcerange="-{limit} {limit}"/>
  </actuator>
</mujoco>
"""


def rich(t: np.ndarray) -> np.ndarray:
    """Multisine, chirp, slow triangle, large square wave; five seconds each."""
    sines = 0.1 * sum(np.sin(2 * np.pi * f * t + i) for i, f in enumerate((0.3, 0.7, 1.3, 2.3, 3.7)))
    chirp = 0.3 * np.sin(2 * np.pi * (0.2 * (t - 5) + 0.48 * (t - 5) ** 2))
    triangle = 0.8 * (2 * np.abs(np.mod(0.4 * t, 1) - 0.5) - 0.5)
    square = 0.3 * np.sign(np.sin(2 * np.pi * 0.7 * t))
    return np.select([t < 5, t < 10, t < 15], [sines, chirp, triangle], square)


def simulated(command: np.ndarray, rate: float, action: float, observation: float = 0.0, **servo: float) -> Log:
    """A servo with gravity, dry friction, a torque limit and an encoder, told late and read late."""
    values = {"kp": 15.0, "kd": 0.8, "armature": 0.03, "friction": 0.05, "mass": 0.2, "limit": 3.0} | servo
    model = mujoco.MjModel.from_xml_string(SERVO.format(**values))
    state = mujoco.MjData(model)
    time = np.arange(len(command)) / rate
    fine = np.arange(int(time[-1] / model.opt.timestep) + 1) * model.opt.timestep
    heard = np.searchsorted(time, fine - action + 1e-12, side="right") - 1
    path = np.empty(len(fine))
    for i, k in enumerate(heard):
        state.ctrl[0] = command[max(k, 0)]
        path[i] = state.qpos[0]
        mujoco.mj_step(model, state)
    q = np.interp(time - observation, fine, path)
    q = np.round(q / 0.0015) * 0.0015
    return Log.from_arrays(("j",), time, {"q_cmd": command[:, None], "q": q[:, None]})


@pytest.mark.parametrize(
    ("rate", "action", "observation", "servo"),
    [
        (50, 0.0, 0.0, {}),
        (50, 0.015, 0.0, {}),
        (50, 0.018, 0.0, {"kp": 5.0, "kd": 0.3, "friction": 0.1}),
        (200, 0.010, 0.006, {}),
        (200, 0.030, 0.0, {}),
        (200, 0.012, 0.0, {"kp": 60.0, "kd": 2.0, "mass": 0.5, "limit": 10.0, "friction": 0.3}),
        (1000, 0.012, 0.0, {}),
    ],
)
def test_the_delay_is_found_to_two_milliseconds(
    rate: float, action: float, observation: float, servo: dict[str, float]
) -> None:
    log = simulated(rich(np.arange(int(20 * rate)) / rate), rate, action, observation, **servo)
    found = delays(log)["j"]
    assert found.determined
    assert found.seconds == pytest.approx(action + observation, abs=0.002)


def test_joints_on_one_bus_are_more_certain_together() -> None:
    found = {"a": Delay(0.012, 0.004, False), "b": Delay(0.014, 0.004, False), "c": Delay(0.013, 0.002, True)}
    shared = together(found)
    assert shared is not None and shared.determined and shared.seconds == pytest.approx(0.013)
    assert shared.uncertainty < 0.002
    apart = together({"a": Delay(0.0, 0.001, True), "b": Delay(0.03, 0.001, True)})
    assert apart is not None and not apart.determined, "they disagree by far more than they claim to know"
    assert together({}) is None


def test_one_slow_sine_does_not_tell_delay_from_lag() -> None:
    log = simulated(0.4 * np.sin(2 * np.pi * 0.5 * np.arange(1000) / 50), 50, 0.02)
    assert not delays(log)["j"].determined


def test_the_real_go2_log_hardly_determines_it(data: Path) -> None:
    log = read(data / "go2_inair" / "go2_inair.npz", "go2_inair")
    cut = {k: Log.from_arrays(s.columns[:2], s.time, {k: s.values[:, :2]})[k] for k, s in log.signals.items()}
    found = delays(Log(cut, log.joints[:2]))
    assert len(found) == 2 and not any(d.determined for d in found.values())


def test_a_log_without_position_commands_has_no_delays(data: Path) -> None:
    assert delays(read(data / "double_pendulum" / "design_C.1" / "log_00.csv.gz", "double_pendulum")) == {}
