"""Policies that others trained: the contract can say what each of them expects, and one of them walks by it."""

import math
import re

import mujoco
import numpy as np
import pytest

from gapless.policy.act import targets
from gapless.policy.contract import Contract
from gapless.policy.network import Policy
from gapless.policy.observe import Observer
from gapless.policy.parts import Action, Joints, Observation, Recurrent, Term, Timing
from tests.data import DATA, needs_data
from tests.policy import made

POLICIES = DATA / "policies"
COMMANDS = {"vx": (-0.5, 1.0), "vy": (-0.3, 0.3), "yaw_rate": (-0.2, 0.2)}


def numbers(text: str, key: str) -> list[float]:
    """A list of numbers under a key of their YAML, which holds a python tag and so is not read as YAML here."""
    found = re.search(rf"\b{key}: \[([^\]]*)\]", text)
    assert found, key
    return [float(v) for v in found.group(1).split(",")]


def g1_joints() -> tuple[str, ...]:
    model = mujoco.MjModel.from_xml_path(str(POLICIES / "models" / "g1.xml"))
    return tuple(model.joint(i).name for i in range(1, model.njnt))


def unitree_rl_lab(order: str = "oldest_first") -> Contract:
    """Isaac Lab: joints in breadth-first order, gains in the order of the motors, five frames by term."""
    text = (POLICIES / "unitree_rl_lab_g1" / "deploy.yaml").read_text()
    motors, to_motor = g1_joints(), [int(i) for i in numbers(text, "joint_ids_map")]
    names = tuple(motors[i] for i in to_motor)
    kp, kd = (np.array(numbers(text, k))[to_motor] for k in ("stiffness", "damping"))
    observed = (
        Term("base_ang_vel", "gyro", 3, 0.2, history=5),
        Term("projected_gravity", "gravity", 3, history=5),
        Term("velocity_commands", "command", 3, history=5),
        Term("joint_pos_rel", "q", 29, history=5),
        Term("joint_vel_rel", "dq", 29, 0.05, history=5),
        Term("last_action", "last_action", 29, history=5),
    )
    return Contract(
        Joints(names, numbers(text, "default_joint_pos"), kp, kd),
        Action("position", names, numbers(text, "scale"), numbers(text, "offset")),
        Observation(observed, "term", order, "repeat"),
        Timing(0.02),
        commands=COMMANDS,
    )


def unitree_rl_mjlab() -> Contract:
    names = g1_joints()
    observed = (
        Term("base_ang_vel", "gyro", 3),
        Term("projected_gravity", "gravity", 3),
        Term("velocity_commands", "command", 3),
        Term("joint_pos_rel", "q", 29),
        Term("joint_vel_rel", "dq", 29),
        Term("last_action", "last_action", 29),
    )
    return Contract(Joints(names), Action("position", names), Observation(observed), Timing(0.02), commands=COMMANDS)


def holosoma() -> Contract:
    """Terms sorted by name; a clock for each leg; default pose, scale and period are not in the file and stay unknown."""
    names = g1_joints()
    legs = {"frequency": 1.0, "phases": (0.0, math.pi), "standing": "stance"}
    observed = (
        Term("actions", "last_action", 29),
        Term("base_ang_vel", "gyro", 3, 0.25),
        Term("command_ang_vel", "command", 1, commands=("yaw_rate",)),
        Term("command_lin_vel", "command", 2, commands=("vx", "vy")),
        Term("cos_phase", "clock_cos", 2, **legs),
        Term("dof_pos", "q", 29),
        Term("dof_vel", "dq", 29, 0.05),
        Term("projected_gravity", "gravity", 3),
        Term("sin_phase", "clock_sin", 2, **legs),
    )
    layout = Observation(observed, warmup="zeros")
    return Contract(Joints(names), Action("position", names), layout, commands=COMMANDS)


def unitree_rl_gym() -> Contract:
    """Twelve of the robot's joints, a clock of 0.8 s that never stands still, and an LSTM."""
    legs = g1_joints()[:12]
    observed = (
        Term("omega", "gyro", 3, 0.25),
        Term("gravity", "gravity", 3),
        Term("cmd", "command", 3, (2.0, 2.0, 0.25)),
        Term("qj", "q", 12, joints=legs),
        Term("dqj", "dq", 12, 0.05, joints=legs),
        Term("action", "last_action", 12),
        Term("phase", "clock", 2, frequency=1 / 0.8, standing="run"),
    )
    return Contract(
        Joints(g1_joints()),
        Action("position", legs, 0.25),
        Observation(observed),
        Timing(0.02, 0.002, 10),
        recurrent=Recurrent(("h_in", "c_in"), ("h_out", "c_out")),
        commands=COMMANDS,
    )


def rl_sar() -> Contract:
    """Everything is clipped at 100 after its scale, which is 100 / scale before it."""
    names = tuple(f"{leg}_{joint}_joint" for leg in ("FR", "FL", "RR", "RL") for joint in ("hip", "thigh", "calf"))
    scales = {"gyro": 0.25, "gravity": 1.0, "command": 1.0, "q": 1.0, "dq": 0.05, "last_action": 1.0}
    sizes = {"gyro": 3, "gravity": 3, "command": 3, "q": 12, "dq": 12, "last_action": 12}
    observed = tuple(Term(k, k, sizes[k], s, (-100 / s, 100 / s)) for k, s in scales.items())
    action = Action("position", names, (0.125, 0.25, 0.25) * 4, (0.0, 0.8, -1.5) * 4, (-100.0, 100.0))
    joints = Joints(names, (0.0, 0.8, -1.5) * 4, (20.0,) * 12, (0.5,) * 12, (23.5,) * 12)
    layout = Observation(observed, last_action="clipped")
    return Contract(joints, action, layout, Timing(0.02, 0.005, 4), commands=COMMANDS)


def playground() -> Contract:
    """Needs the base's velocity, which an estimator must give."""
    observed = (
        Term("linvel", "velocity", 3, provenance="estimated"),
        Term("gyro", "gyro", 3),
        Term("gravity", "gravity", 3),
        Term("q", "q", 12),
        Term("dq", "dq", 12),
        Term("last_action", "last_action", 12),
        Term("command", "command", 3),
    )
    return Contract(Joints(made.JOINTS), Action("position", made.JOINTS), Observation(observed), commands=COMMANDS)


@needs_data
@pytest.mark.parametrize(
    ("contract", "width", "file"),
    [
        (unitree_rl_lab, 480, "unitree_rl_lab_g1/policy.onnx"),
        (unitree_rl_mjlab, 96, None),  # its weights are in a file of their own
        (holosoma, 100, "holosoma_g1/ppo_g1_29dof.onnx"),
        (unitree_rl_gym, 47, None),  # TorchScript
        (rl_sar, 45, None),  # TorchScript
        (playground, 48, "playground_go1/go1_policy.onnx"),
    ],
)
def test_the_contract_can_say_what_others_policies_expect(contract, width, file):
    told = contract()
    assert told.width == width
    if file:
        policy = Policy(told, (POLICIES / file).read_bytes())
        action = policy(np.random.default_rng(0).normal(size=(3, width)))
        assert action.shape == (3, len(told.action.joints))
        assert np.isfinite(action).all()


def walk(contract: Contract, seconds: float, speed: float) -> tuple[float, float]:
    """Distance and final height of the G1 under a policy, physics at 1 kHz and a PD at every step, as motors do it."""
    model = mujoco.MjModel.from_xml_path(str(POLICIES / "models" / "g1.xml"))
    model.opt.timestep = 0.001
    model.actuator_gainprm[:] = 0.0
    model.actuator_biasprm[:] = 0.0
    data = mujoco.MjData(model)
    policy = Policy(contract, (POLICIES / "unitree_rl_lab_g1" / "policy.onnx").read_bytes())
    observer = Observer(contract, 1)
    motors = contract.columns(g1_joints())  # the contract's joints among the model's
    q0, kp, kd = (np.array(v) for v in (contract.joints.default_pos, contract.joints.kp, contract.joints.kd))
    data.qpos[:7] = 0, 0, 0.79, 1, 0, 0, 0
    data.qpos[7 + motors] = q0
    action, command = np.zeros((1, 29)), np.array([[speed, 0.0, 0.0]])
    for _ in range(round(seconds / 0.02)):
        if data.qpos[2] < 0.4:
            break  # on the ground
        q, dq = data.qpos[7 + motors], data.qvel[6 + motors]
        readings = {"q": q[None], "dq": dq[None], "quat": data.qpos[None, 3:7].copy(), "gyro": data.qvel[None, 3:6].copy()}
        action = policy(observer(readings, command, action))
        target = targets(contract, action)[0]
        for _ in range(20):
            data.qfrc_applied[6 + motors] = kp * (target - data.qpos[7 + motors]) - kd * data.qvel[6 + motors]
            mujoco.mj_step(model, data)
    return float(data.qpos[0]), float(data.qpos[2])


@needs_data
def test_a_policy_trained_elsewhere_walks_by_its_contract_and_falls_by_a_wrong_one():
    """Its page says 7.5 m in 10 s at 0.8 m/s in this model."""
    distance, height = walk(unitree_rl_lab(), 10.0, 0.8)
    assert distance == pytest.approx(7.5, abs=0.3)
    assert height > 0.7
    assert walk(unitree_rl_lab("newest_first"), 10.0, 0.8)[1] < 0.4
