"""Readers on files as other exporters write them: motors by number, orders of joints, clips, groups, folders."""

import json

import numpy as np
import pytest
import yaml

from bench.fuzz_policies import linear
from gapless.errors import BadInput
from gapless.policy import read_policy
from gapless.robots import load_robot
from tests.data import DATA, needs_data

pytestmark = needs_data
BREADTH = [3, 0, 9, 6, 4, 1, 10, 7, 5, 2, 11, 8]
"""Motors of a Go2 in Isaac Lab's order of its joints: FL, FR, RL, RR hips, then thighs, then calves."""
POSE = [0.1, -0.1, 0.1, -0.1, 0.8, 0.8, 1.0, 1.0, -1.5, -1.5, -1.5, -1.5]


@pytest.fixture(scope="module")
def go2():
    return load_robot(DATA / "policies" / "models" / "go2.xml")


@pytest.fixture(scope="module")
def g1():
    return load_robot(DATA / "policies" / "models" / "g1.xml")


def term(columns, scale=1.0, **more):
    return {"params": {}, "clip": None, "scale": [scale] * columns, "history_length": 1} | more


def deploy(motors, stiffness=None, **action):
    """What unitree_rl_lab's exporter writes for a walking robot."""
    n = len(motors)
    ranges = {"ang_vel_z": [-1.0, 1.0], "lin_vel_y": [-0.3, 0.3], "lin_vel_x": [-0.5, 1.0]}
    observations = {"base_ang_vel": term(3, 0.2), "projected_gravity": term(3), "velocity_commands": term(3)}
    observations |= {"joint_pos_rel": term(n), "joint_vel_rel": term(n, 0.05), "last_action": term(n)}
    position = {"clip": None, "joint_names": [".*"], "scale": [0.25] * n, "offset": [0.0] * n, "joint_ids": None} | action
    gains = [25.0] * n if stiffness is None else stiffness
    return {
        "joint_ids_map": motors,
        "step_dt": 0.02,
        "stiffness": gains,
        "damping": [0.5] * len(gains),
        "default_joint_pos": [0.0] * n,
        "commands": {"base_velocity": {"ranges": ranges}},
        "actions": {"JointPositionAction": position},
        "observations": observations,
    }


def write(folder, table, width, outputs):
    (folder / "policy.onnx").write_bytes(linear(width, outputs))
    (folder / "deploy.yaml").write_text(yaml.dump(table, sort_keys=False))
    return folder


def test_motors_of_unitrees_robots_are_those_of_their_sdk_whatever_the_models_order(go2, tmp_path):
    assert go2.joints[0] == "FL_hip_joint"  # and motor 0 is FR_hip
    contract = read_policy(write(tmp_path, deploy(BREADTH), 45, 12), go2).contract
    assert contract.joints.names[:4] == ("FL_hip_joint", "FR_hip_joint", "RL_hip_joint", "RR_hip_joint")
    assert next(iter(contract.commands.items())) == ("vx", (-0.5, 1.0))  # in order, though the file has another


def test_a_robot_whose_motors_are_not_published_has_those_of_its_model(tmp_path):
    anymal = load_robot(DATA / "models" / "anybotics_anymal_c.xml")
    candidate = read_policy(write(tmp_path, deploy(list(range(12))), 45, 12), anymal)
    assert candidate.contract.joints.names == anymal.joints
    assert "order of the model's actuators" in str(candidate.origins["joints.names"])


def test_gains_may_have_empty_slots_or_leave_them_out(g1, tmp_path):
    motors = [0, 6, 12, 1, 7, 15, 22, 2, 8, 16, 23, 3, 9, 17, 24, 4, 10, 18, 25, 5, 11, 19, 26]
    table = deploy(motors, [100.0] * 12 + [200.0] + [40.0] * 10)  # as the G1 of 23 joints is shipped
    candidate = read_policy(write(tmp_path, table, 78, 23), g1)
    assert dict(zip(candidate.contract.joints.names, candidate.contract.joints.kp, strict=True))["waist_yaw_joint"] == 200.0
    assert any("leaves out motors" in note for note in candidate.notes)
    h1 = load_robot(DATA / "models" / "unitree_h1.xml")
    motors = [7, 8, 6, 3, 0, 16, 12, 4, 1, 17, 13, 5, 2, 18, 14, 10, 11, 19, 15]
    gains = [float(i) for i in range(20)]  # no motor has number 9
    joints = read_policy(write(tmp_path, deploy(motors, gains), 66, 19), h1).contract.joints
    assert dict(zip(joints.names, joints.kp, strict=True))["left_ankle"] == 10.0
    with pytest.raises(BadInput, match="22 values for 19 joints|another robot"):
        read_policy(write(tmp_path, deploy([*motors[:-1], 40], [1.0] * 22), 66, 19), h1)


def test_a_clip_of_targets_becomes_one_of_actions_and_joints_may_be_chosen(go2, g1, tmp_path):
    table = deploy(BREADTH, clip=[[-1.0, 2.0]] * 12, offset=POSE)
    low, high = read_policy(write(tmp_path, table, 45, 12), go2).contract.action.clip
    assert np.allclose(0.25 * np.array(low) + POSE, -1.0) and np.allclose(0.25 * np.array(high) + POSE, 2.0)
    table, legs = deploy(list(range(29)), scale=[0.25] * 12, offset=[0.0] * 12, joint_ids=list(range(12))), list(range(12))
    for name in ("joint_pos_rel", "joint_vel_rel"):
        table["observations"][name] = term(12, params={"asset_cfg": {"name": "robot", "joint_ids": legs}})
    table["observations"]["last_action"] = term(12)
    contract = read_policy(write(tmp_path, table, 45, 12), g1).contract
    assert contract.action.joints == g1.joints[:12] == contract.observation.terms[3].joints


def test_groups_folders_and_clips_after_the_scale(go2, tmp_path):
    table = deploy(BREADTH)
    gym = {"use_gym_history": True, "scale_first": True} | table["observations"]
    table["observations"] = {"obs": gym | {"base_ang_vel": term(3, 0.2, clip=[-1.0, 1.0])}}
    for folder in ("exported", "params"):
        (tmp_path / folder).mkdir()
    (tmp_path / "exported" / "policy.onnx").write_bytes(linear(45, 12))
    (tmp_path / "params" / "deploy.yaml").write_text(yaml.dump(table, sort_keys=False))
    (tmp_path / "params" / "env.yaml").write_text("a: !!python/tuple [1]")
    for path in (tmp_path, tmp_path / "exported" / "policy.onnx"):
        layout = read_policy(path, go2).contract.observation
        assert layout.major == "frame" and layout.terms[0].clip == ((-5.0,) * 3, (5.0,) * 3)
    table["observations"] = {"obs": gym, "history": gym}
    (tmp_path / "params" / "deploy.yaml").write_text(yaml.dump(table, sort_keys=False))
    with pytest.raises(BadInput, match="several inputs"):
        read_policy(tmp_path, go2)


def test_a_gait_without_its_period_is_unknown_until_it_is_stated(go2, tmp_path):
    table = deploy(BREADTH)
    table["observations"]["gait_phase"] = term(2)
    assert read_policy(write(tmp_path, table, 47, 12), go2).missing == ("observation.terms",)
    stated = tmp_path / "stated.toml"
    terms = '["gyro*0.2", "gravity", "command", "q", "dq*0.05", "last_action", { name = "phase", frequency = 1.25 }]'
    stated.write_text(f"observation.terms = {terms}\n")
    assert read_policy(tmp_path, go2, stated).contract.width == 47


def test_rl_sars_joints_are_in_the_order_of_its_mapping(go2, tmp_path):
    shipped = DATA / "policies" / "rl_sar_go2"
    table = yaml.safe_load((shipped / "config.yaml").read_text())["go2/robot_lab"]
    table |= {"joint_mapping": [3, 4, 5, 0, 1, 2, 9, 10, 11, 6, 7, 8], "observations_history": [5, 4, 3, 2, 1, 0]}
    folder = tmp_path / "go2" / "legged_gym"
    folder.mkdir(parents=True)
    (tmp_path / "go2" / "base.yaml").write_bytes((shipped / "base.yaml").read_bytes())  # the robot's, above its policies
    (folder / "config.yaml").write_text(
        yaml.dump({"go2/legged_gym": table | {"observations": [*table["observations"], "g1_phase"]}})
    )
    (folder / "policy.onnx").write_bytes(linear(47 * 6, 12))
    candidate = read_policy(folder, go2)
    assert candidate.contract.joints.names[0] == "FL_hip_joint"
    assert "joint_mapping" in str(candidate.origins["joints.names"])
    assert candidate.contract.observation.terms[-1].frequency == 1.25
    table["joint_mapping"] = [12, 0]
    (folder / "config.yaml").write_text(yaml.dump({"go2/legged_gym": table}))
    with pytest.raises(BadInput, match="joint_mapping"):
        read_policy(folder, go2)


@pytest.mark.parametrize("motors", [True, False])
def test_unitree_rl_gyms_legs_are_found_in_a_whole_robot(tmp_path, motors):
    h1 = load_robot(DATA / "models" / "unitree_h1.xml")
    table = {"kps": [150.0] * 10, "kds": [2.0] * 10, "default_angles": [0.0] * 10, "control_dt": 0.02, "action_scale": 0.25}
    table |= {"num_obs": 41, "max_cmd": [0.8, 0.5, 1.57]}
    table |= {"leg_joint2motor_idx": [7, 3, 4, 5, 10, 8, 0, 1, 2, 11]} if motors else {}
    (tmp_path / "h1.yaml").write_text(yaml.dump(table))
    (tmp_path / "motion.onnx").write_bytes(linear(41, 10))
    contract = read_policy(tmp_path, h1).contract
    assert contract.joints.names == h1.joints[:10]
    assert contract.commands["vx"] == (-0.8, 0.8)


def test_mjlabs_phase_and_holosomas_commands(g1, tmp_path):
    of = ",".join
    path, n = tmp_path / "policy.onnx", 29
    data = {"joint_names": of(g1.joints), "command_names": "twist", "action_scale": "0.25"}
    data |= {key: of(["1.000"] * n) for key in ("joint_stiffness", "joint_damping", "default_joint_pos")}
    terms = "base_ang_vel,projected_gravity,command,phase,joint_pos,joint_vel,actions"
    path.write_bytes(linear(98, n, data | {"observation_names": terms}))
    assert read_policy(path, g1).missing == ("observation.terms",)
    terms = "base_ang_vel,joint_pos,joint_vel,actions"
    path.write_bytes(linear(270, n, data | {"observation_names": terms, "observation_history_lengths": "3,3,3,3"}))
    assert {t.history for t in read_policy(path, g1).contract.observation.terms} == {3}
    ranges = json.dumps({"ang_vel_yaw": [-1, 1], "lin_vel_x": [-2, 2], "lin_vel_y": [-1, 1]})
    path.write_bytes(linear(96, n, {"dof_names": json.dumps(g1.joints), "kp": json.dumps([1.0] * n), "command_ranges": ranges}))
    terms = ["observation.terms=['base_ang_vel', 'projected_gravity', 'command', 'dof_pos', 'dof_vel', 'actions']"]
    assert tuple(read_policy(path, g1, None, terms).contract.commands) == ("vx", "vy", "yaw_rate")
