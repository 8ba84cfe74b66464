"""A joint that no motor acts on is simulated, compared and fitted like the others, and takes no command."""

from pathlib import Path

import mujoco
import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.logs import Log, read
from gapless.measure import admit
from gapless.robots import load_robot
from gapless.twin import Gains, Gaussian, Twin, as_given, load_recipe, recipe_of, save_belief
from gapless.worlds import drive_commands, replay
from tests.data import DATA, needs_data

ACROBOT = """
<mujoco><option timestep="0.002"/><worldbody>
<body><joint name="shoulder" axis="0 1 0" damping="0.02"/><geom type="capsule" size="0.02" fromto="0 0 0 0 0 -0.3" mass="1"/>
<body pos="0 0 -0.3"><joint name="elbow" axis="0 1 0" damping="0.05"/>
<geom type="capsule" size="0.02" fromto="0 0 0 0 0 -0.3" mass="0.6"/></body></body></worldbody>
<actuator><motor joint="elbow" ctrllimited="true" ctrlrange="-5 5"/></actuator></mujoco>
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "acrobot.xml").write_text(ACROBOT)
    return tmp_path / "acrobot.xml"


def swing(seconds: float = 6.0, period: float = 0.01) -> Log:
    """The elbow pumps, and the shoulder follows as it must."""
    model = mujoco.MjModel.from_xml_string(ACROBOT)
    data, steps = mujoco.MjData(model), round(period / model.opt.timestep)
    time = np.arange(round(seconds / period)) * period
    torque = 0.8 * np.sin(5.0 * time) + 0.3 * np.sin(11.0 * time)
    q, dq = np.zeros((len(time), 2)), np.zeros((len(time), 2))
    for i, tau in enumerate(torque):
        q[i], dq[i], data.ctrl[0] = data.qpos, data.qvel, tau
        mujoco.mj_step(model, data, steps)
    log = Log.from_arrays(("shoulder", "elbow"), time, {"q": q, "dq": dq})
    told = Log.from_arrays(("elbow",), time, {"tau_cmd": torque[:, None]})
    return Log({**log.signals, **told.signals}, log.joints)


def test_a_measured_joint_without_a_motor_is_replayed_and_compared(model: Path) -> None:
    log = swing()
    twin = as_given(model, log)
    assert twin.joints == ("elbow", "shoulder") and [d.passive for d in twin.drives] == [False, True]
    result = replay(twin, log, window=0.5)
    assert np.ptp(log["q"].column("shoulder")) > 0.5
    assert np.degrees(result.rmse("q")).max() < 0.2
    assert not drive_commands(twin, log).target[:, 1].any()


def test_without_a_log_that_measured_it_the_joint_is_left_alone(model: Path) -> None:
    assert as_given(model).joints == ("elbow",)
    log = swing()
    unseen = Log({"q": Log.from_arrays(("elbow",), log["q"].time, {"q": log["q"].of(["elbow"])})["q"]}, ("elbow",))
    assert as_given(model, unseen).joints == ("elbow",)


def test_a_joint_that_is_tied_to_another_is_not_passive(tmp_path: Path) -> None:
    tie = '<equality><joint joint1="shoulder" joint2="elbow"/></equality></mujoco>'
    (tmp_path / "tied.xml").write_text(ACROBOT.replace("</mujoco>", tie))
    assert as_given(tmp_path / "tied.xml", swing()).joints == ("elbow",)
    (tmp_path / "cable.xml").write_text(
        ACROBOT.replace("</mujoco>", '<tendon><fixed><joint joint="shoulder" coef="1"/></fixed></tendon></mujoco>')
    )
    assert as_given(tmp_path / "cable.xml", swing()).joints == ("elbow",)


def test_a_passive_joint_has_friction_and_inertia_but_no_motor(model: Path) -> None:
    names = as_given(model, swing()).space.names
    assert {"friction.viscous/shoulder", "armature.inertia/shoulder", "offset.encoder/shoulder"} <= set(names)
    assert not {"motor.strength/shoulder", "motor.limit/shoulder", "gains.kp/shoulder"} & set(names)


def test_gains_for_all_drives_do_not_make_a_servo_of_it(model: Path) -> None:
    twin = Twin.load(model, add=[Gains(kp={"*": 20.0}, kd={"*": 1.0}, passive=("shoulder",))])
    assert [d.signal for d in twin.drives] == ["q", "tau"] and "gains.kp/shoulder" not in twin.space.names
    with pytest.raises(BadInput, match="unknown joint 'shuolder': did you mean 'shoulder'"):
        Twin.load(model, add=[Gains(passive=("shuolder",))])


def test_logs_of_it_are_admitted_to_a_fit_and_a_belief_brings_it_back(model: Path, tmp_path: Path) -> None:
    twin = as_given(model, swing())
    assert not admit(twin, [swing()]).refused
    space = twin.space.select("friction.viscous/*")
    belief = Gaussian(space, space.to_scaled(space.nominal), 0.01 * np.eye(len(space)))
    save_belief(belief, tmp_path / "belief.json", recipe_of(twin))
    assert load_recipe(load_robot(model), tmp_path / "belief.json").joints == twin.joints


@needs_data
def test_acromonk_is_followed_through_half_a_second() -> None:
    """As published, the shoulder within 3 deg and the elbow within 20; its encoder and its IMU agree with the model's signs."""
    log = read(f"{DATA}/acromonk/logs/BF_tvlqr_1x.csv.gz@0.2:2", "acromonk")
    twin = as_given(DATA / "acromonk/model/acromonk.xml", log)
    assert twin.joints == ("joint_1", "virtual_joint_hook_1")
    elbow, shoulder = np.degrees(replay(twin, log, window=0.5).rmse("q")[0])
    assert elbow < 20 and shoulder < 4
    swings = [read(path, "acromonk") for path in sorted((DATA / "acromonk/logs").glob("Z*.csv.gz"))]
    assert len(swings) == 4 and not admit(twin, [log, *swings]).refused
