"""Table: a spring where the model has nothing, against Hooke's law."""

import mujoco
import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.twin import Table, Twin

LIFT = """<mujoco><option timestep="0.002" integrator="implicitfast" gravity="0 0 -10"/><worldbody>
<body name="carriage" pos="0 0 0.5"><joint name="lift" type="slide" axis="0 0 1" armature="0.5"/>
<inertial pos="0 0 0" mass="2" diaginertia="1e-3 1e-3 1e-3"/></body></worldbody>
<actuator><motor name="lift" joint="lift"/></actuator></mujoco>"""


def resting(tmp_path, **given: float) -> float:
    """Height at which the point comes to rest, 0.1 m below a carriage of 2 kg [m]."""
    path = tmp_path / "lift.xml"
    path.write_text(LIFT)
    twin = Twin.load(path, mechanisms=[Table("carriage", (0.0, 0.0, -0.1), 500.0)])
    model = twin.compile(twin.space.values({f"table.{k}": v for k, v in given.items()}))
    data = mujoco.MjData(model)
    for _ in range(3000):
        mujoco.mj_step(model, data)
    return float(data.geom("gapless_tip").xpos[2])


@pytest.mark.parametrize("stiffness", [200.0, 500.0, 2000.0])
def test_it_yields_by_weight_over_stiffness(tmp_path, stiffness):
    rest = resting(tmp_path, height=0.2, stiffness=stiffness)
    assert 0.2 + 0.001 - rest == pytest.approx(20 / stiffness, rel=0.02)  # the point is a sphere of 1 mm


def test_the_point_moves_with_its_parameters(tmp_path):
    higher = resting(tmp_path, height=0.2, z=-0.05)
    assert higher == pytest.approx(resting(tmp_path, height=0.2), abs=1e-4)


def test_none_is_there_unless_asked_for(tmp_path):
    assert resting(tmp_path) < -5


def test_an_unknown_link_is_refused():
    with pytest.raises(BadInput, match="claw"):
        Twin.load("arm", add=[Table("claw", (0, 0, 0))])


def test_it_is_saved_with_the_twin(tmp_path):
    path = tmp_path / "lift.xml"
    path.write_text(LIFT)
    twin = Twin.load(path, mechanisms=[Table("carriage", (0, 0, 0.1))])
    twin.save(tmp_path / "twin.xml", twin.space.values({"table.height": 0.05}))
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "twin.xml"))
    assert model.geom("gapless_table").pos[2] == pytest.approx(0.05)
    np.testing.assert_allclose(model.pair_solref, twin.compile(twin.space.values({"table.height": 0.05})).pair_solref)
