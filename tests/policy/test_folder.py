"""Policy folders: the network that comes back is the one that was trained, and a folder that is not whole is refused."""

import dataclasses
import hashlib
import json
import shutil

import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.policy.contract import Contract, parse_contract
from gapless.policy.folder import load_policy, save_policy
from gapless.policy.network import Policy
from gapless.policy.onnx import mjlab_keys, onnx_of, recurrent_of
from gapless.policy.parts import Action, Joints, Recurrent, Term
from tests.policy import made

torch = pytest.importorskip("torch")
onnx = pytest.importorskip("onnx")

CONTRACT = made.contract()
WIDTH = CONTRACT.width


class Memory(torch.nn.Module):
    """A recurrent actor, called as rsl_rl's exporter calls its own."""

    def __init__(self, kind: str):
        super().__init__()
        self.rnn = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}[kind](WIDTH, 16, num_layers=2)
        self.head = torch.nn.Linear(16, 12)

    def forward(self, obs, h, c=None):
        x, memory = self.rnn(obs.unsqueeze(0), h if c is None else (h, c))
        action = self.head(x.squeeze(0))
        return (action, memory, None) if c is None else (action, *memory)


PARTS = {"lstm": {"h": (2, 16), "c": (2, 16)}, "gru": {"h": (2, 16)}}


def network() -> "torch.nn.Module":
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(WIDTH, 32), torch.nn.ELU(), torch.nn.Dropout(0.5), torch.nn.Linear(32, 12))


def golden(frames: int = 64) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(frames, WIDTH)).astype(np.float32)


def answers(net: "torch.nn.Module", observation: np.ndarray) -> np.ndarray:
    net.eval()
    with torch.no_grad():
        return net(torch.tensor(observation)).numpy()


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("policy")
    net = network()
    save_policy(folder, CONTRACT, onnx_of(net, WIDTH), golden(), answers(net, golden()))
    return folder


@pytest.fixture
def folder(written, tmp_path):
    """A copy to spoil."""
    return shutil.copytree(written, tmp_path / "policy")


def test_a_policy_comes_back_with_its_contract_and_gives_torchs_actions(written):
    policy = load_policy(written)
    assert policy.contract == CONTRACT
    assert policy.sha256 == hashlib.sha256((written / "policy.onnx").read_bytes()).hexdigest()
    for n in (1, 7, 256):
        observation = np.random.default_rng(n).normal(size=(n, WIDTH)).astype(np.float32)
        np.testing.assert_allclose(policy(observation), answers(network(), observation), atol=1e-5)


def test_a_residual_policy_takes_its_gait_along(tmp_path):
    net = network()
    save_policy(tmp_path, made.residual(), onnx_of(net, WIDTH), golden(), answers(net, golden()))
    policy = load_policy(tmp_path)
    assert parse_contract(policy.metadata["gapless_contract"]) == policy.contract == made.residual()


def test_exporting_leaves_the_network_in_training():
    net = network().train()
    onnx_of(net, WIDTH)
    assert net.training


def test_another_runtime_reads_the_contract_from_the_metadata_alone(written):
    found = {p.key: p.value for p in onnx.load(written / "policy.onnx").metadata_props}
    assert parse_contract(found["gapless_contract"]) == CONTRACT
    assert found["joint_names"].split(",") == list(made.JOINTS)
    for key, values in (
        ("joint_stiffness", CONTRACT.joints.kp),
        ("joint_damping", CONTRACT.joints.kd),
        ("default_joint_pos", CONTRACT.joints.default_pos),
        ("action_scale", CONTRACT.action.scale),
    ):
        assert tuple(float(v) for v in found[key].split(",")) == values
    assert found["observation_names"] == "base_ang_vel,projected_gravity,command,joint_pos,joint_vel,actions"
    assert found["command_names"] == "vx,vy,yaw_rate"
    assert found["run_path"] == "runs/walk"


def test_the_sidecar_is_the_contract_and_the_hashes_of_the_other_files(written):
    table = json.loads((written / "contract.json").read_text())
    for name, digest in table.pop("files").items():
        assert hashlib.sha256((written / name).read_bytes()).hexdigest() == digest
    assert parse_contract(table) == CONTRACT


def test_saving_again_replaces_the_policy_and_leaves_other_files(folder):
    (folder / "belief.json").write_text("{}")
    net = network()
    with torch.no_grad():
        net[0].bias += 1.0
    save_policy(folder, CONTRACT, onnx_of(net, WIDTH), golden(8), answers(net, golden(8)))
    np.testing.assert_allclose(load_policy(folder)(golden()), answers(net, golden()), atol=1e-5)
    assert sorted(p.name for p in folder.iterdir()) == ["belief.json", "contract.json", "golden.npz", "policy.onnx"]


@pytest.mark.parametrize("kind", PARTS)
def test_a_recurrent_policy_remembers_each_robot_until_its_reset(kind, tmp_path):
    torch.manual_seed(1)
    net, parts = Memory(kind).eval(), PARTS[kind]
    contract = dataclasses.replace(CONTRACT, recurrent=recurrent_of(parts))
    observation = golden(20)
    state = [torch.zeros(2, 1, 16) for _ in parts]
    given = []
    with torch.no_grad():
        for frame in torch.tensor(observation):
            action, *state = net(frame[None], *state)
            state = [s for s in state if s is not None]
            given.append(action.numpy())
    save_policy(tmp_path, contract, onnx_of(net, WIDTH, parts), observation, np.concatenate(given))
    policy = load_policy(tmp_path)

    rng = np.random.default_rng(0)
    state = [torch.zeros(2, 3, 16) for _ in parts]
    for period in range(6):
        if period == 3:
            policy.reset(np.array([False, True, False]))
            for part in state:
                part[:, 1] = 0.0
        observed = rng.normal(size=(3, WIDTH)).astype(np.float32)
        with torch.no_grad():
            expected, *state = net(torch.tensor(observed), *state)
        state = [s for s in state if s is not None]
        np.testing.assert_allclose(policy(observed), expected.numpy(), atol=1e-5)
    with pytest.raises(BadInput, match="remembers 3 robots, and now there are 2: reset it"):
        policy(observed[:2])
    policy.reset()
    assert policy(observed[:2]).shape == (2, 12)
    with pytest.raises(BadInput, match="a mask of robots"):
        policy.reset([1, 0])


@pytest.mark.parametrize("kind", ["mlp", "lstm"])
def test_rsl_rls_actors_come_back_with_their_normaliser(kind, tmp_path):
    models, tensordict = pytest.importorskip("rsl_rl.models"), pytest.importorskip("tensordict")
    observation = golden(32) * 3.0 + 1.0
    group = tensordict.TensorDict({"policy": torch.tensor(observation)}, batch_size=[32])
    given = {"hidden_dims": (32,), "obs_normalization": True, "distribution_cfg": {"class_name": "GaussianDistribution"}}
    torch.manual_seed(0)
    if kind == "mlp":
        actor, parts = models.MLPModel(group, {"actor": ["policy"]}, "actor", 12, **given), {}
    else:
        actor = models.RNNModel(group, {"actor": ["policy"]}, "actor", 12, rnn_hidden_dim=16, **given)
        parts = {"h": (1, 16), "c": (1, 16)}
    actor.update_normalization(group)
    actor.eval()
    with torch.no_grad():
        # frame by frame, as one robot sees them
        action = torch.cat([actor(group[i : i + 1]) for i in range(32)]).numpy()
    contract = dataclasses.replace(CONTRACT, normalizer="baked", recurrent=recurrent_of(parts))
    save_policy(tmp_path, contract, onnx_of(actor.as_onnx(verbose=False), WIDTH, parts), observation, action)
    assert load_policy(tmp_path).contract == contract


def test_a_recurrent_network_needs_its_memory_in_the_contract():
    model = onnx_of(Memory("gru"), WIDTH, PARTS["gru"])
    with pytest.raises(BadInput, match="one input for the observation besides the contract's memory, but has obs, h_in"):
        Policy(CONTRACT, model)
    with pytest.raises(BadInput, match="memory 'c_in', but the network's inputs are obs, h_in"):
        Policy(dataclasses.replace(CONTRACT, recurrent=recurrent_of(PARTS["lstm"])), model)
    with pytest.raises(BadInput, match="'actions_out', which is no output"):
        Policy(dataclasses.replace(CONTRACT, recurrent=Recurrent(("h_in",), ("actions_out",))), without_memory_out(model))


def without_memory_out(model: bytes) -> bytes:
    """The network without its memory's output."""
    found = onnx.load_model_from_string(model)
    del found.graph.output[1]
    return found.SerializeToString()


def one_at_a_time(model: bytes) -> bytes:
    """The network as most frameworks export it: for one robot."""
    found = onnx.load_model_from_string(model)
    for port in (*found.graph.input, *found.graph.output):
        axis = 0 if port.name in ("obs", "actions") else 1
        port.type.tensor_type.shape.dim[axis].dim_value = 1
    return found.SerializeToString()


def test_a_network_for_one_robot_serves_many_one_by_one():
    model = onnx_of(network(), WIDTH)
    np.testing.assert_allclose(Policy(CONTRACT, one_at_a_time(model))(golden(5)), Policy(CONTRACT, model)(golden(5)), atol=1e-6)
    model = onnx_of(Memory("lstm"), WIDTH, PARTS["lstm"])
    contract = dataclasses.replace(CONTRACT, recurrent=recurrent_of(PARTS["lstm"]))
    one, many = Policy(contract, one_at_a_time(model)), Policy(contract, model)
    for frame in golden(4):
        np.testing.assert_allclose(one(np.stack([frame, -frame])), many(np.stack([frame, -frame])), atol=1e-6)


def test_observations_of_another_shape_are_refused(written):
    policy = load_policy(written)
    for wrong in (np.zeros((2, WIDTH + 1)), np.zeros(WIDTH), np.zeros((0, WIDTH))):
        with pytest.raises(BadInput, match="expected observations of shape"):
            policy(wrong)


@pytest.mark.parametrize("name", ["contract.json", "policy.onnx", "golden.npz"])
def test_a_folder_without_one_of_its_files_is_refused(folder, name):
    (folder / name).unlink()
    with pytest.raises(BadInput, match=f"has no {name}; a policy folder holds"):
        load_policy(folder)


def test_a_folder_that_is_none_is_refused(tmp_path):
    with pytest.raises(BadInput, match="there is no such folder"):
        load_policy(tmp_path / "walk")
    (tmp_path / "walk").write_text("")
    with pytest.raises(BadInput, match="is not a policy folder"):
        load_policy(tmp_path / "walk")
    with pytest.raises(BadInput, match="cannot be made"):
        save_policy(tmp_path / "walk", CONTRACT, onnx_of(network(), WIDTH), golden(), answers(network(), golden()))


@pytest.mark.parametrize("name", ["contract.json", "policy.onnx", "golden.npz"])
def test_a_huge_file_is_refused_unread(folder, name):
    with (folder / name).open("r+b") as file:
        file.truncate(1 << 40)  # a hole: no byte of it is on the disk
    with pytest.raises(BadInput, match=r"1099511627776 bytes, but at most"):
        load_policy(folder)


@pytest.mark.parametrize("name", ["policy.onnx", "golden.npz"])
def test_a_file_of_another_policy_is_refused(folder, name):
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(BadInput, match=f"{name}: is not the file that contract.json was written with"):
        load_policy(folder)


def rehash(folder, **changes) -> None:
    """Make the sidecar agree with spoilt files, as a careful forger would."""
    path = folder / "contract.json"
    table = json.loads(path.read_text()) | changes
    table["files"] = {n: hashlib.sha256((folder / n).read_bytes()).hexdigest() for n in ("policy.onnx", "golden.npz")}
    path.write_text(json.dumps(table))


@pytest.mark.parametrize("name", ["policy.onnx", "golden.npz"])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.97])
def test_a_truncated_file_is_refused(folder, name, share):
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: int(share * len(content))])
    rehash(folder)
    with pytest.raises(BadInput, match=name):
        load_policy(folder)


def test_a_truncated_network_is_not_saved(tmp_path):
    model = onnx_of(network(), WIDTH)
    for wrong in (b"", b"\x00" * 100, model[: len(model) // 2]):
        with pytest.raises(BadInput, match="network"):
            save_policy(tmp_path / "out", CONTRACT, wrong, golden(), answers(network(), golden()))
    assert not (tmp_path / "out").exists()


def test_a_sidecar_that_was_edited_is_refused(folder):
    table = json.loads((folder / "contract.json").read_text())
    rehash(folder, timing=table["timing"] | {"control_dt": 0.01, "decimation": None})
    with pytest.raises(BadInput, match="its metadata holds another contract than contract.json"):
        load_policy(folder)
    (folder / "contract.json").write_text("{")
    with pytest.raises(BadInput, match=r"contract.json: not valid JSON"):
        load_policy(folder)
    (folder / "contract.json").write_text(CONTRACT.json())
    with pytest.raises(BadInput, match="has no hashes"):
        load_policy(folder)


def test_a_contract_of_another_width_than_the_networks_is_refused(tmp_path):
    wider = made.contract((*made.terms(), Term("velocity", "velocity", 3, provenance="estimated")))
    with pytest.raises(BadInput, match=r"observation has 48 numbers, but the network's 'obs' has shape \['n', 45\]"):
        save_policy(tmp_path, wider, onnx_of(network(), WIDTH), golden(), answers(network(), golden()))
    eleven = Action("position", made.JOINTS[:11], 0.25, 0.0)
    narrow = made.contract(
        (*made.terms()[:5], Term("a", "last_action", 11), Term("b", "height", 1, provenance="estimated")), eleven
    )
    with pytest.raises(BadInput, match=r"action has 11 joints, but the network's 'actions' has shape \['n', 12\]"):
        save_policy(tmp_path, narrow, onnx_of(network(), WIDTH), golden(), answers(network(), golden())[:, :11])


def test_golden_frames_that_the_network_does_not_reproduce_are_refused(folder, tmp_path):
    wrong = answers(network(), golden())
    wrong[17, 4] += 1e-3
    with pytest.raises(BadInput, match="for FR_thigh in frame 17, and training gave"):
        save_policy(tmp_path / "out", CONTRACT, onnx_of(network(), WIDTH), golden(), wrong)
    assert not (tmp_path / "out").exists()
    np.savez(folder / "golden.npz", observation=golden(), action=wrong)
    rehash(folder)
    with pytest.raises(BadInput, match=r"policy.onnx: golden frames: the network gives .* for FR_thigh in frame 17"):
        load_policy(folder)


def test_golden_frames_that_prove_nothing_are_refused(tmp_path):
    model, good = onnx_of(network(), WIDTH), answers(network(), golden())
    zeros = np.zeros((4, WIDTH), np.float32)
    for observation, action, says in (
        (zeros, answers(network(), zeros), "all observations are zero"),
        (golden(), good[:3], "were expected, not"),
        (golden()[:0], good[:0], "were expected, not"),
        (np.full_like(golden(), np.nan), good, "not finite"),
    ):
        with pytest.raises(BadInput, match=says):
            save_policy(tmp_path, CONTRACT, model, observation, action)


def test_golden_frames_of_another_kind_are_refused(folder):
    for arrays, says in (
        ({"observation": golden().astype(np.float64), "action": answers(network(), golden())}, "not float32"),
        ({"observation": golden()}, "damaged"),
        ({"observation": np.array([{}], object), "action": golden()}, "damaged"),
    ):
        np.savez(folder / "golden.npz", **arrays)
        rehash(folder)
        with pytest.raises(BadInput, match=says):
            load_policy(folder)


def test_a_contract_that_nobody_could_run_is_not_saved(tmp_path):
    bare = Contract(Joints(("a",)), Action("position", ("a",)))
    with pytest.raises(BadInput, match="does not say observation.terms, timing.control_dt, joints.default_pos, action.scale"):
        save_policy(tmp_path, bare, b"", golden(), golden())


def test_gains_that_are_not_torques_are_not_among_mjlabs_keys():
    joints = dataclasses.replace(CONTRACT.joints, gain_unit="duty")
    assert "joint_stiffness" in mjlab_keys(CONTRACT)
    assert "joint_stiffness" not in mjlab_keys(dataclasses.replace(CONTRACT, joints=joints))
