"""Drives that cannot be fitted are left out and named; a robot of nothing else is refused."""

from pathlib import Path

import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.identify import fit
from gapless.twin import Twin, as_given
from gapless.worlds import StandIn, StandInSpec, plan_motion, record

LINK = """<body pos="0 {at} 0"><joint name="{name}" axis="0 1 0" range="-90 90" limited="{limited}" armature="0.01"/>
<geom type="capsule" size="0.02" fromto="0 0 0 0.2 0 0" mass="0.3" contype="0" conaffinity="0"/></body>"""
WHEEL = '<velocity joint="wheel" kv="2" forcerange="-5 5"/>'
ELBOW = '<position joint="elbow" kp="20" kv="0.5" forcerange="-5 5"/>'


def written(path: Path, drives: str) -> str:
    links = LINK.format(name="wheel", limited="false", at=0) + LINK.format(name="elbow", limited="true", at=1)
    path.write_text(f"<mujoco><worldbody>{links}</worldbody><actuator>{drives}</actuator></mujoco>")
    return str(path)


def recorded(path: str, seconds: float):
    motion = plan_motion("rich", Twin.load(path), seconds, np.random.default_rng(0))
    robot = StandIn(StandInSpec(path, seed=1, change={"gains.kp/*": "x0.8"} if "mixed" in path else {}))
    return record(robot, motion, robot.signal)


def test_a_wheel_is_left_out_and_the_arm_is_fitted(tmp_path):
    path = written(tmp_path / "mixed.xml", WHEEL + ELBOW)
    log = recorded(path, 5.0)
    found = fit(as_given(path, log), [log], fixed={"friction.viscous/wheel": 0.0})
    assert found.twin.joints == ("elbow",) and found.heldout.fit < found.heldout.given / 3
    assert any("commanded in velocity, which cannot be fitted" in w and "wheel" in w for w in found.twin.warnings)


def test_a_robot_of_wheels_is_refused(tmp_path):
    path = written(tmp_path / "wheel.xml", WHEEL)
    log = recorded(path, 4.5)
    with pytest.raises(BadInput, match="all drives of wheel are commanded in velocity"):
        fit(as_given(path, log), [log])
