"""`gapless fit --policy`: from a stand-in that a policy walked to a twin and a belief, on the command line."""

import dataclasses
import json
import re

import numpy as np
import pytest

import gapless
from gapless.cli import main
from gapless.policy import Policy, onnx_of, save_policy
from gapless.twin import Twin
from tests.policy import made

torch = pytest.importorskip("torch")

CYCLE = np.sin(2 * np.pi * (np.arange(8)[:, None] / 8 + 0.5 * np.array([j[:2] in ("FL", "RR") for j in made.JOINTS])))
TROT = np.array([0.0, 0.25, -0.5] * 4) * np.maximum(CYCLE, 0.0)
ASKED = ("--command", "0.5,0,0")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A policy that trots on the spot, and a walk of a stand-in under it."""
    here = tmp_path_factory.mktemp("walking")
    home = tuple(Twin.load("quadruped").home_command.tolist())
    contract = made.residual(table=tuple(map(tuple, TROT.tolist())))
    contract = dataclasses.replace(contract, action=dataclasses.replace(contract.action, offset=home))
    network = torch.nn.Linear(contract.width, 12)
    torch.nn.init.normal_(network.weight, std=1e-3)
    torch.nn.init.zeros_(network.bias)
    model = onnx_of(network, contract.width)
    frames = np.random.default_rng(0).normal(size=(8, contract.width)).astype(np.float32)
    save_policy(here / "trot", contract, model, frames, Policy(contract, model)(frames))
    (here / "secret.toml").write_text('robot = "quadruped"\nseed = 1\n[change]\n"gains.kp/*" = "x1.5"\n')
    walked = ("--seconds", "10", "--out", str(here / "walk.npz"))
    main(["standin", str(here / "secret.toml"), "--motion", str(here / "trot"), *ASKED, *walked])
    return here


def test_a_walk_gives_a_twin_and_a_belief(folder, tmp_path, capsys, monkeypatch):
    for name, value in (("WORLDS", 128), ("ROUNDS", 1), ("SECONDS", 1.0), ("JUDGED", 5.0)):
        monkeypatch.setattr(f"gapless.identify.walking.fitting.{name}", value)
    out = tmp_path / "out"
    main(["fit", "quadruped", str(folder / "walk.npz"), "--policy", str(folder / "trot"), *ASKED, "--json", "--out", str(out)])
    told = json.loads(capsys.readouterr().out)
    assert "Walking shows" in told["verdict"]
    assert told["parameters"]["gains.kp/*_calf"]["nominal"] == 60.0  # as the policy told the robot
    assert {f.name for f in out.iterdir()} == {"walking.json", "belief.json", "twin.xml", "report.html"}
    assert gapless.load(out).parameters.keys() == told["parameters"].keys()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--policy", "trot"), "trot: the policy must be asked for vx, vy, yaw_rate"),
        (("--policy", "trot", "--command", "0.5"), r"trot: the policy takes 3 commands \(vx, vy, yaw_rate\), not 1"),
        (("--policy", "trot", "--command", "fast"), "--command takes numbers with commas between them"),
        (("--policy", "trot", *ASKED, "--method", "evolve"), "--policy fits a robot that walked, without --method"),
        (ASKED, "--command is what a policy was asked for: name its folder with --policy"),
        (("--policy", "none", *ASKED), "none"),
    ],
)
def test_what_does_not_go_together_is_refused(options, sentence, folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    with pytest.raises(SystemExit) as stopped:
        main(["fit", "quadruped", "walk.npz", *options])
    assert stopped.value.code == 2
    assert re.search(sentence, capsys.readouterr().err.replace("\n", " "))
