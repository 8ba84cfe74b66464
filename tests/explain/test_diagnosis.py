"""A diagnosis says what no mechanism can: that a joint meets a stop which the model lacks."""

from gapless.explain.diagnosis import stopped_joints
from gapless.logs import read
from gapless.twin import as_given
from tests.data import DATA, needs_data


@needs_data
def test_the_gripper_of_the_z1_closes_before_its_range_ends_and_no_other_joint_stops():
    log = read(DATA / "z1/traj_0.pt", "z1")
    (said,) = stopped_joints(as_given(DATA / "z1/model/z1.xml", log), [log])
    assert said.startswith("q of jointGripper stops at about -0.0") and "the model's range ends at 0.050 rad" in said
    log = read(DATA / "go2_inair/go2_inair.npz", "go2_inair")
    assert not stopped_joints(as_given(DATA / "go2_inair/model/go2_fixed_base.xml", log), [log])
