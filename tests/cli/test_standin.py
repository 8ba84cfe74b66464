"""`gapless standin --motion POLICY`: a stand-in that walks under a policy, on the command line."""

import re

import numpy as np
import pytest

import gapless
from gapless.cli import main
from gapless.policy import Policy, save_policy
from tests.data import DATA, needs_data
from tests.policy.test_others import POLICIES, unitree_rl_lab

G1 = f"""
robot = "{DATA / "policies/models/g1.xml"}"
seed = 1
tolerance = 0.5
motion_capture = true
[change]
"latency.action" = 0.005
"""


@pytest.fixture(scope="module")
def walker(tmp_path_factory):
    """The Unitree G1's walking policy, as others trained it, in a folder of ours."""
    folder = tmp_path_factory.mktemp("policies") / "g1"
    contract, model = unitree_rl_lab(), (POLICIES / "unitree_rl_lab_g1/policy.onnx").read_bytes()
    frames = np.random.default_rng(0).normal(size=(8, contract.width)).astype(np.float32)
    save_policy(folder, contract, model, frames, Policy(contract, model)(frames))
    return folder


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "g1.toml").write_text(G1)
    (tmp_path / "quadruped.toml").write_text('robot = "quadruped"')


@needs_data
def test_a_stand_in_walks_under_a_policy_that_others_trained(walker):
    """Its page says 7.5 m in 10 s at 0.8 m/s for the exact model; this one has secrets."""
    main(["standin", "g1.toml", "--motion", str(walker), "--command", "0.8,0,0", "--seconds", "6", "--out", "walk.npz"])
    log = gapless.read("walk.npz")
    place = log["base_pos"].values
    assert place[-1, 0] - place[0, 0] > 3.0
    assert place[:, 2].min() > 0.65
    assert np.diff(log["q"].time) == pytest.approx(0.02)
    contract = unitree_rl_lab()
    told = dict(zip(contract.joints.names, contract.joints.kp, strict=True))
    assert log.meta["kp"] == pytest.approx(told)
    swing = log["q_cmd"].values - log["q"].values
    assert 0.01 < np.abs(swing).mean() < 0.3


@needs_data
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("quadruped.toml", "--motion", "POLICY", "--command", "0.5,0,0"),
            "the policy is for a robot with joints left_hip_pitch",
        ),
        (("g1.toml", "--motion", "POLICY"), "must be asked for vx, vy, yaw_rate: use --command"),
        (("g1.toml", "--motion", "POLICY", "--command", "0.5"), r"the policy takes 3 commands \(vx, vy, yaw_rate\), not 1"),
        (("g1.toml", "--motion", "POLICY", "--command", "fast"), "--command takes numbers .* not 'fast'"),
        (("g1.toml", "--motion", "POLICY", "--command", "0.5,nan,0"), "--command takes numbers"),
        (("g1.toml", "--motion", "POLICY", "--command", ""), "--command takes numbers"),
        (("g1.toml", "--motion", "POLICY", "--command", "0.5,0,0", "--seconds", "0"), "a motion lasts between 0 and"),
        (
            ("quadruped.toml", "--motion", "stand", "--command", "0.5,0,0"),
            "--command asks a policy .* the motion stand is none",
        ),
        (("quadruped.toml", "--motion", "."), "a policy folder holds"),
        (("quadruped.toml", "--motion", "runs/none"), "unknown motion 'runs/none'.*the folder of a policy"),
    ],
)
def test_what_cannot_be_run_is_refused_in_a_sentence(walker, options, message, capsys):
    with pytest.raises(SystemExit) as caught:
        main(["standin", *(str(walker) if o == "POLICY" else o for o in options)])
    assert caught.value.code == 2
    error = capsys.readouterr().err.strip()
    assert "\n" not in error
    assert re.search(message, error), error
