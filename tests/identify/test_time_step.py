"""A time step that is too coarse is noticed by what half of it changes, and left alone where that is little."""

from pathlib import Path

import numpy as np
import pytest

from gapless.identify.time_step import finer
from gapless.logs import Log
from gapless.twin import Twin, as_given
from gapless.worlds import StandIn, StandInSpec, plan_motion, record

SERVO = """<mujoco><option timestep="{step}"/><custom><numeric name="control_dt" data="0.02"/></custom><worldbody>
<body><joint name="j" axis="0 1 0" range="-90 90" armature="0.01"/>
<geom type="capsule" size="0.02" fromto="0 0 0 0.3 0 0" mass="0.5"/>
</body></worldbody><actuator><position joint="j" kp="40" kv="0.2" forcerange="-30 30"/></actuator></mujoco>"""


def model(folder: Path, step: float) -> Path:
    path = folder / f"{1e3 * step:g}ms.xml"
    path.write_text(SERVO.format(step=step))
    return path


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Log:
    """Of a robot in small steps, whose drive is a little weaker than modelled."""
    path = model(tmp_path_factory.mktemp("servo"), 0.0005)
    motion = plan_motion("rich", Twin.load(path), 6.0, np.random.default_rng(0))
    spec = StandInSpec(str(path), seed=1, tolerance=0.0, change={"gains.kp/*": "x0.9"}, sensors={"noise_q": 1e-4})
    return record(StandIn(spec), motion)


def test_a_coarse_step_is_halved_and_said(log, tmp_path):
    twin, (sentence,) = finer(as_given(model(tmp_path, 0.01), log), [log])
    assert twin.model.opt.timestep == 0.005 and twin.substeps == 4
    assert "10 ms is coarse" in sentence and "5 ms is in the fitted twin" in sentence


def test_a_fine_step_stays(log, tmp_path):
    given = as_given(model(tmp_path, 0.0005), log)
    assert finer(given, [log]) == (given, [])
