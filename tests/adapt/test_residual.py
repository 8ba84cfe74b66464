"""A residual policy: nothing at the start, never worse than what it stands on, and one network in the end."""

import json

import numpy as np
import pytest
import torch

from gapless.adapt.residual import Sum, added, train_residual
from gapless.cli import main
from gapless.errors import BadInput
from gapless.learn import train
from gapless.policy import Policy, load_policy, onnx_of
from tests.adapt import made

pytestmark = pytest.mark.xdist_group("training")


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("base") / "base"
    with pytest.MonkeyPatch.context() as patch:
        made.few(patch)
        train(made.run(), folder, threads=1, iterations=1)
    return folder


def test_a_network_of_zeros_on_top_changes_nothing(base):
    policy = load_policy(base)
    more = torch.nn.Sequential(torch.nn.Linear(policy.contract.width, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    torch.nn.init.zeros_(more[2].weight)
    torch.nn.init.zeros_(more[2].bias)
    both = Policy(policy.contract, added((base / "policy.onnx").read_bytes(), onnx_of(more, policy.contract.width)))
    seen = np.random.default_rng(0).normal(size=(50, policy.contract.width)).astype(np.float32)
    assert np.abs(both(seen).astype(float) - policy(seen)).max() <= 1e-9
    torch.nn.init.ones_(more[2].bias)
    both = Policy(policy.contract, added((base / "policy.onnx").read_bytes(), onnx_of(more, policy.contract.width)))
    assert both(seen) == pytest.approx(policy(seen) + 1.0, abs=1e-5)


def test_training_starts_at_its_base_and_keeps_it_where_nothing_better_comes(base, tmp_path, monkeypatch):
    made.few(monkeypatch)
    scores = []
    monkeypatch.setattr("gapless.adapt.residual.evaluate", worse := _falling(scores))
    train_residual(made.run(), base, tmp_path / "out", threads=1)
    assert worse is not None and len(scores) > 2
    kept, policy = load_policy(tmp_path / "out"), load_policy(base)
    seen = np.random.default_rng(1).normal(size=(20, policy.contract.width)).astype(np.float32)
    assert np.abs(kept(seen).astype(float) - policy(seen)).max() <= 1e-9


def _falling(scores):
    """An evaluation in which each policy is worse than the one before it."""
    from gapless.learn import evaluate

    def worse(policy: Sum, environment):
        _, golden = evaluate(policy, environment)
        scores.append(-len(scores))
        return float(scores[-1]), golden

    return worse


def test_the_command_trains_on_top_of_a_policy_and_refuses_nothing_to_stand_on(base, tmp_path, capsys, monkeypatch):
    made.few(monkeypatch)
    words = [
        "train",
        "swing",
        "--robot",
        "pendulum",
        "--adapt",
        "residual",
        "--iterations",
        "1",
        "--worlds",
        "8",
        "--threads",
        "1",
    ]
    main([*words, "--from", str(base), "--out", str(tmp_path / "r"), "--json"])
    assert json.loads(capsys.readouterr().out)["method"] == "residual"
    assert load_policy(tmp_path / "r").contract.width == load_policy(base).contract.width
    with pytest.raises(SystemExit):
        main([*words, "--out", str(tmp_path / "none")])
    assert "name it with --from" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["train", "swing", "--latent", "2", "--out", str(tmp_path / "none")])
    assert "goes with --adapt" in capsys.readouterr().err
    with pytest.raises(BadInput, match="on top of a policy with a memory, or of a teacher"):
        train(made.run(teacher=True), tmp_path / "t", threads=1, iterations=1)
        train_residual(made.run(), tmp_path / "t", tmp_path / "no")
