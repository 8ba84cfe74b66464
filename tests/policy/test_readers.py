"""Readers of others' policies: real files with the source of every field, what they do not say, and hostile ones."""

import json
import shutil
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest
import yaml

from bench.fuzz_policies import linear, mutate
from gapless.errors import BadInput
from gapless.policy.contract import Contract
from gapless.policy.readers import read_policy
from gapless.policy.readers.yaml_lines import read_yaml
from gapless.robots import load_robot
from tests.data import DATA, needs_data
from tests.policy import made

POLICIES = DATA / "policies"
HOLOSOMA = """[observation]
terms = ["actions", "base_ang_vel*0.25", "command_ang_vel", "command_lin_vel", "cos_phase", "dof_pos", "dof_vel*0.05",
  "projected_gravity", "sin_phase"]
[joints]
default_pos = { "*" = 0.0, "*_hip_pitch_joint" = -0.312, "*_knee_joint" = 0.669, "*_ankle_pitch_joint" = -0.363 }
[action]
scale = 0.25
[timing]
control_dt = 0.02
"""


@pytest.fixture(scope="module")
def g1():
    return load_robot(POLICIES / "models" / "g1.xml")


@needs_data
def test_gains_are_in_the_order_of_the_motors_and_every_field_has_its_line(g1):
    candidate = read_policy(POLICIES / "unitree_rl_lab_g1", g1)
    joints = dict(zip(candidate.contract.joints.names, candidate.contract.joints.kp, strict=True))
    assert joints["left_knee_joint"] == joints["right_knee_joint"] == 150.0
    assert candidate.contract.joints.names[:3] == ("left_hip_pitch_joint", "right_hip_pitch_joint", "waist_yaw_joint")
    assert str(candidate.origins["joints.kp"]).startswith("deploy.yaml:4")
    assert candidate.origins["joints.names"].kind == "inferred"
    assert candidate.origins["observation.order"].kind == "framework default"
    assert "timing.delay_range" in candidate.contract.unknown


@needs_data
def test_weights_beside_the_network_are_read_and_weights_elsewhere_are_not(g1, tmp_path):
    assert read_policy(POLICIES / "unitree_rl_mjlab_g1", g1).normalizer
    for file in (POLICIES / "unitree_rl_mjlab_g1").iterdir():
        shutil.copy(file, tmp_path / file.name)
    tmp_path.chmod(0o755)
    model = onnx.load(tmp_path / "policy.onnx", load_external_data=False)
    for entry in model.graph.initializer[0].external_data:
        entry.value = "../secret" if entry.key == "location" else entry.value
    target = tmp_path / "policy.onnx"
    target.unlink()
    target.write_bytes(model.SerializeToString())
    with pytest.raises(BadInput, match="nothing outside is read"):
        read_policy(tmp_path, g1)


@needs_data
def test_what_holosoma_does_not_say_is_unknown_until_ten_lines_say_it(g1, tmp_path):
    assert read_policy(POLICIES / "holosoma_g1", g1).missing == ("observation.terms",)
    stated = tmp_path / "stated.toml"
    stated.write_text(HOLOSOMA)
    assert len(HOLOSOMA.splitlines()) <= 10
    candidate = read_policy(POLICIES / "holosoma_g1", g1, stated)
    assert candidate.contract.width == 100
    assert candidate.origins["action.scale"].kind == "user"
    assert candidate.contract.observation.warmup == "zeros"
    stated.write_text(HOLOSOMA + "[source]\n" + "run = 'x'\n")
    read_policy(POLICIES / "holosoma_g1", g1, stated)
    stated.write_text("[joints]\nkp = 5.0\n")
    with pytest.raises(BadInput, match="contradicts"):
        read_policy(POLICIES / "holosoma_g1", g1, stated)
    assert read_policy(POLICIES / "holosoma_g1", g1, None, ["joints.kp=5.0", f"observation.terms={['all_of_it']}"]).contract


@needs_data
def test_a_memory_hidden_in_torchscript_becomes_inputs_and_outputs(g1):
    torch = pytest.importorskip("torch")
    legs = "joints.names=['left_hip_*', 'left_knee*', 'left_ankle*', 'right_hip_*', 'right_knee*', 'right_ankle*']"
    candidate = read_policy(POLICIES / "unitree_rl_gym_g1", g1, None, [legs])
    assert candidate.contract.recurrent.inputs == ("h_in", "c_in")
    script = torch.jit.load(str(POLICIES / "unitree_rl_gym_g1" / "motion.pt"))
    for row in np.random.default_rng(1).normal(size=(6, 1, 47)).astype(np.float32):
        assert np.allclose(candidate.policy(row), script(torch.from_numpy(row)).detach().numpy(), atol=1e-4)


@needs_data
def test_rl_sar_merges_robot_and_policy_and_keeps_the_policys_joint_order():
    candidate = read_policy(POLICIES / "rl_sar_go2", load_robot(POLICIES / "models" / "go2.xml"))
    assert candidate.contract.joints.names[0] == "FR_hip_joint"
    assert candidate.contract.timing.control_dt == pytest.approx(0.02)
    assert candidate.contract.joints.kp[0] == 20.0  # not the 80 that it stands with
    assert str(candidate.origins["joints.names"]) == "base.yaml:25"


MJLAB = {
    "joint_names": ",".join(made.JOINTS),
    "joint_stiffness": ",".join(["20.000"] * 12),
    "joint_damping": ",".join(["0.500"] * 12),
    "default_joint_pos": ",".join(map(str, made.DEFAULT)),
    "action_scale": ",".join(["0.250"] * 12),
    "observation_names": "base_ang_vel,projected_gravity,joint_pos,joint_vel,actions,command",
    "command_names": "twist",
}


def test_mjlabs_lists_and_a_history_that_only_the_width_tells(tmp_path):
    path = tmp_path / "walk.onnx"
    path.write_bytes(linear(90, 12, MJLAB))
    candidate = read_policy(path)
    assert [t.history for t in candidate.contract.observation.terms] == [2] * 6
    assert candidate.contract.action.offset == made.DEFAULT
    path.write_bytes(linear(46, 12, MJLAB))
    with pytest.raises(BadInput, match="45 numbers .* takes 46"):
        read_policy(path)
    path.write_bytes(linear(45, 12, MJLAB | {"joint_damping": "0.5,x"}))
    with pytest.raises(BadInput, match="joint_damping"):
        read_policy(path)


def test_scales_clips_and_history_that_mjlab_states_are_read(tmp_path):
    """The texts are those that mjlab 1.6.0's own attach_metadata_to_onnx wrote."""
    data = MJLAB | {
        "action_scale": "0.25",
        "observation_terms_scale": f"0.250,1.000,1.000,{';'.join(['0.050'] * 12)},1.000,2.000;2.000;0.250",
        "observation_terms_flatten_history_dim": "1.000,1.000,1.000,1.000,1.000,1.000",
        "observation_terms_history_length": "2.000,2.000,2.000,2.000,0.000,0.000",
        "observation_terms_clip": "-10.000;10.000,-inf;inf,-inf;inf,-inf;inf,-inf;inf,-inf;inf",
    }
    path = tmp_path / "walk.onnx"
    path.write_bytes(linear(75, 12, data))
    gyro, _, _, dq, last, command = read_policy(path).contract.observation.terms
    assert (gyro.scale, gyro.clip, gyro.history) == (0.25, (-10.0, 10.0), 2)
    assert dq.scale == (0.05,) * 12 and last.history == 1 and command.scale == (2.0, 2.0, 0.25)
    path.write_bytes(linear(75, 12, data | {"observation_terms_scale": "1.000,2.000"}))
    with pytest.raises(BadInput, match="2 entries for 6 terms"):
        read_policy(path)


LEAPP = Path(__file__).parent / "leapp"


def test_a_file_of_leapp_itself_acts_as_its_own_runtime_does():
    """Made by leapp 0.7.2 as Isaac Lab 3 calls it; expected.npz is what its InferenceManager gave, period after period."""
    candidate = read_policy(LEAPP)
    contract, expected = candidate.contract, np.load(LEAPP / "expected.npz")
    assert contract.joints.kp == (20.0,) * 12 and contract.joints.kd == (0.5,) * 12 and contract.timing.control_dt == 0.02
    assert contract.conventions.quaternion == "xyzw" and contract.joints.default_pos is None
    for _ in range(2):  # the last action, which starts at 0.1, is forgotten with the rest
        candidate.policy.reset()
        for observation, action in zip(expected["observation"], expected["action"], strict=True):
            assert np.allclose(candidate.policy(observation[None])[0], action, atol=1e-6)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda t: t["models"].update(encoder=t["models"][next(iter(t["models"]))]), "2 networks"),
        (lambda t: t["pipeline"].update(feedback_flow={}), "nothing says what the input 'last_action_in' is"),
        (lambda t: t["pipeline"].update(initial_values="../secret"), "not in the folder"),
        (lambda t: t["pipeline"].update(feedback_flow={"a/b": ["c/last_action_in"]}), "2 outputs are for the robot"),
        (lambda t: next(iter(t["models"].values()))["outputs"][0].update(kind="kp"), "0 outputs are for the robot"),
    ],
)
def test_a_pipeline_that_cannot_be_read_is_refused_with_the_reason(tmp_path, change, word):
    for file in LEAPP.iterdir():
        shutil.copy(file, tmp_path)
    path = next(tmp_path.glob("*.yaml"))
    table = yaml.safe_load(path.read_text())
    change(table)
    path.write_text(yaml.safe_dump(table))
    with pytest.raises(BadInput, match=word):
        read_policy(tmp_path)


def test_initial_values_that_are_damaged_are_refused(tmp_path):
    for file in LEAPP.iterdir():
        shutil.copy(file, tmp_path)
    path = next(tmp_path.glob("*.safetensors"))
    for content in (b"", b"\xff" * 64, path.read_bytes()[:120], path.read_bytes().replace(b"F32", b"F16")):
        path.write_bytes(content)
        with pytest.raises(BadInput, match="safetensors"):
            read_policy(tmp_path)


def test_leapp_joins_the_networks_inputs(tmp_path):
    joints = ["a_joint", "b_joint"]
    weight = onnx.numpy_helper.from_array(np.eye(2, dtype=np.float32), "w")
    ports = [onnx.helper.make_tensor_value_info(n, 1, [1, 2]) for n in ("pos", "vel", "target")]
    nodes = [onnx.helper.make_node("MatMul", ["pos", "w"], ["x"]), onnx.helper.make_node("Add", ["x", "vel"], ["target"])]
    graph = onnx.helper.make_graph(nodes, "g", ports[:2], ports[2:], [weight])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=10)
    (tmp_path / "net.onnx").write_bytes(model.SerializeToString())

    def tensor(name: str, connection: str) -> dict[str, object]:
        return {"name": name, "shape": [1, 2], "element_names": [joints], "isaaclab_connection": connection}

    inputs = [tensor("pos", "state:robot:joint_pos"), tensor("vel", "state:robot:joint_vel")]
    outputs = [tensor("target", "write:robot:set_joint_position_target")]
    node = {"model_path": "net.onnx", "inputs": inputs, "outputs": outputs}
    table = {"pipeline": {"inputs": {"p": ["pos", "vel"]}}, "frequency": 50.0, "models": {"p": node}}
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(table))
    candidate = read_policy(tmp_path)
    assert candidate.contract.timing.control_dt == pytest.approx(0.02)
    assert np.allclose(candidate.policy(np.array([[1.0, 2.0, 10.0, 20.0]])), [[11.0, 22.0]])
    node["model_path"] = "../net.onnx"
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(table))
    with pytest.raises(BadInput, match="not in the folder"):
        read_policy(tmp_path)


def test_a_network_that_splits_a_long_observation_makes_nothing_huge(tmp_path):
    sizes = onnx.numpy_helper.from_array(np.array([600, 600, 600, 600], np.int64), "sizes")
    flat = onnx.numpy_helper.from_array(np.array([-1, 600], np.int64), "flat")
    parts = [f"part{i}" for i in range(4)]
    nodes = [
        onnx.helper.make_node("Split", ["obs", "sizes"], parts, axis=1),
        onnx.helper.make_node("Reshape", ["part0", "flat"], ["actions"]),
    ]
    ports = [onnx.helper.make_tensor_value_info(n, 1, ["n", w]) for n, w in (("obs", 2400), ("actions", 600))]
    for fed in ("flat", "sizes"):  # as a shape, the same sizes are refused
        nodes[1].input[1] = fed
        graph = onnx.helper.make_graph(nodes, "g", ports[:1], ports[1:], [sizes, flat])
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
        (tmp_path / "policy.onnx").write_bytes(model.SerializeToString())
        if fed == "flat":
            assert read_policy(tmp_path / "policy.onnx").width == 2400
        else:
            with pytest.raises(BadInput, match="no policy needs"):
                read_policy(tmp_path / "policy.onnx")


def test_hostile_and_unfinished_files_are_refused_in_a_sentence(tmp_path):
    path = tmp_path / "policy.onnx"
    path.write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n")
    with pytest.raises(BadInput, match="Git LFS pointer"):
        read_policy(path)
    shape = onnx.numpy_helper.from_array(np.array([10**6, 10**6], np.int64), "s")
    ports = [onnx.helper.make_tensor_value_info(n, 1, [1, 3]) for n in ("obs", "actions")]
    node = onnx.helper.make_node("Expand", ["obs", "s"], ["actions"])
    graph = onnx.helper.make_graph([node], "g", ports[:1], ports[1:], [shape])
    path.write_bytes(onnx.helper.make_model(graph).SerializeToString())
    with pytest.raises(BadInput, match="no policy needs"):
        read_policy(path)
    path.write_bytes(linear(3, 2))
    for text, word in (
        ("a: !!python/object/apply:os.system ['true']", "refused"),
        ("a: &a [1]\n" + "".join(f"{c}: &{c} [{', '.join(['*' + p] * 8)}]\n" for p, c in pairwise("abcdefgh")), "entries"),
        ("[1, 2", "not valid YAML"),
    ):
        (tmp_path / "deploy.yaml").write_text(text)
        with pytest.raises(BadInput, match=word):
            read_policy(path)
    with pytest.raises(BadInput, match="no such file"):
        read_policy(tmp_path / "nothing.onnx")


@needs_data
def test_the_slice_tag_of_isaac_lab_is_understood():
    table, lines = read_yaml(POLICIES / "unitree_rl_lab_g1" / "deploy.yaml")
    assert table["actions"]["JointPositionAction"]["joint_ids"] is None
    assert lines["observations.base_ang_vel.scale"] == 34


@needs_data
def test_a_hundred_mutated_files_give_a_contract_or_a_sentence(g1, tmp_path):
    """bench/fuzz_policies.py does a thousand."""
    rng = np.random.default_rng(0)
    sources = [(POLICIES / "unitree_rl_lab_g1" / "deploy.yaml").read_bytes(), linear(480, 29), made.contract().json().encode()]
    for i in range(100):
        mutate(tmp_path, sources, i, rng)
        try:
            candidate = read_policy(tmp_path, g1)
        except BadInput as error:
            assert len(str(error).splitlines()) == 1
        else:
            assert candidate.contract is None or isinstance(candidate.contract, Contract)


def test_our_own_contract_beside_the_network_counts_and_a_difference_is_noted(tmp_path):
    (tmp_path / "policy.onnx").write_bytes(linear(45, 12))
    table = json.loads(made.contract().json()) | {"files": {"policy.onnx": "0" * 64}}
    (tmp_path / "contract.json").write_text(json.dumps(table))
    candidate = read_policy(tmp_path)
    assert candidate.contract == made.contract()
    assert any("not the file" in note for note in candidate.notes)
