"""MAML, NoRML and ES-MAML: against tasks whose answer is known, and then as policies of a robot."""

import dataclasses
import json

import numpy as np
import pytest
import torch

from bench.rotate import ANGLES, Walker, judged, rotated, trained
from gapless.adapt import Rewards, climb, gains, one_step, stepped, train_prepared
from gapless.adapt.es_maml import BATCH, PAIRS, climbed, evolve
from gapless.check import check
from gapless.cli import main
from gapless.errors import BadInput
from gapless.policy import load_policy
from tests.adapt import made

pytestmark = pytest.mark.xdist_group("training")


@pytest.mark.parametrize("method", ["maml", "norml"])
def test_one_step_finds_a_hidden_rotation(method):
    """Who knows the angle earns 1, and one policy for all angles nothing."""
    policy, inner = trained(method, 40, 0)
    before, after = judged(policy, inner, 0, 5)
    assert before < 0.4
    assert after > 0.6


def test_norml_never_asks_what_was_earned():
    policy, inner = trained("norml", 1, 0)
    episodes = rotated(policy, torch.Generator().manual_seed(2))(policy.head.detach().expand(ANGLES, -1, -1))
    blind = dataclasses.replace(episodes, gain=torch.full_like(episodes.gain, torch.nan), earned=np.nan)
    assert torch.equal(stepped(policy, inner, blind), stepped(policy, inner, episodes))


def test_the_step_is_the_gradient_of_what_it_says_it_is():
    torch.manual_seed(0)
    policy = Walker()
    episodes = rotated(policy, torch.Generator().manual_seed(2))(policy.head.detach().expand(ANGLES, -1, -1))
    inner = Rewards(0.1)
    head = policy.head.detach().expand(ANGLES, -1, -1).clone().requires_grad_()
    mean = torch.einsum("tpef,tjf->tpej", policy.features(episodes.seen), head)
    likely = torch.distributions.Normal(mean, policy.spread).log_prob(episodes.action).sum(dim=-1)
    (likely * episodes.gain).mean(dim=(1, 2)).sum().backward()
    assert stepped(policy, inner, episodes).detach().numpy() == pytest.approx(
        (policy.head + 0.1 * head.grad).detach().numpy(), abs=1e-5
    )


def test_what_is_still_to_come_is_told_from_the_others_of_the_same_robot():
    reward = torch.tensor([[[1.0, 3.0], [2.0, 4.0]]])  # one robot, two periods, two episodes
    alive = torch.tensor([[[1.0, 1.0], [1.0, 0.0]]])
    come = np.array([[1 + 0.5 * 2, 3.0], [2.0, 0.0]])
    less = come - come.mean(axis=1, keepdims=True)
    assert gains(reward, alive, 0.5)[0].numpy() == pytest.approx(less / less.std(ddof=1), abs=1e-5)


def quadratic(rng, centre, apart):
    """Robots whose best z is about a centre that nobody knows."""
    best = centre + apart * rng.standard_normal((PAIRS, len(centre)))

    def play(z):
        return -((z - np.tile(best, (2, 1))[:, None]) ** 2).sum(axis=2)

    return play


def test_evolution_finds_where_a_climb_gets_furthest():
    centre, rng = np.array([1.5, -1.0, 0.8]), np.random.default_rng(0)
    z = evolve(lambda: quadratic(rng, centre, 0.3), 3, 60, rng)
    assert np.linalg.norm(z - centre) < 0.35 * np.linalg.norm(centre)
    play = quadratic(np.random.default_rng(1), centre, 0.3)
    far, near = (climbed(play, np.tile(start, (2 * PAIRS, 1)), np.random.default_rng(2)) for start in (0 * z, z))
    unclimbed = play(np.tile(z, (2 * PAIRS, BATCH, 1))).mean(axis=1)
    assert near.mean() > unclimbed.mean() > far.mean()


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prepared")
    with pytest.MonkeyPatch.context() as patch:
        made.few(patch)
        for method in ("es", "maml", "norml", "inverse"):
            start = folder / "es" / "plain" if method != "es" else None
            train_prepared(method, made.run(), folder / method, start=start, threads=1)
    return folder


@pytest.mark.parametrize("method", ["es", "maml", "norml"])
def test_a_prepared_policy_is_plain_and_is_adapted_on_a_robot(prepared, tmp_path, method):
    adapts = climb if method == "es" else one_step
    result = adapts(prepared / method, str(made.standin(tmp_path)), tmp_path / "out", 6, threads=1)
    assert len(result.reward) == 6 and result.seconds.sum() <= 36.0 + 1e-9
    assert "over what it was" in result.verdict().text
    assert not [c for c in check(str(tmp_path / "out"), "pendulum", seconds=1.0).checks if c.status == "fail"]
    seen = np.random.default_rng(0).normal(size=(9, load_policy(tmp_path / "out").contract.width))
    assert not (load_policy(tmp_path / "out")(seen) == load_policy(prepared / method)(seen)).all()


def test_bad_input_is_one_sentence(prepared, tmp_path):
    with pytest.raises(BadInput, match="was not trained to take a step"):
        one_step(prepared / "es", "pendulum", tmp_path / "x")
    with pytest.raises(BadInput, match="a budget of 2 to 10000 episodes on the robot, not 0"):
        one_step(prepared / "maml", "pendulum", tmp_path / "x", 0)
    with pytest.raises(BadInput, match="a budget of 1 to 10000 trials on the robot, not 0"):
        climb(prepared / "es", "pendulum", tmp_path / "x", 0)
    with pytest.raises(BadInput, match="this one has no shoulder, elbow"):
        climb(prepared / "es", "arm", tmp_path / "x")
    with pytest.raises(BadInput, match="leave out --lstm"):
        train_prepared(
            "maml", dataclasses.replace(made.run(), settings=dataclasses.replace(made.run().settings, recurrent=8)), tmp_path
        )
    with pytest.raises(BadInput, match="needs robots that differ"):
        train_prepared("maml", made.run(), tmp_path / "y", start=nominal(tmp_path))
    (prepared / "maml" / "meta.npz").write_bytes(b"PK")
    with pytest.raises(BadInput):
        one_step(prepared / "maml", "pendulum", tmp_path / "x")


def nominal(folder):
    from gapless.learn import train

    train(made.run(preset="none"), folder / "nominal", threads=1, iterations=1)
    return folder / "nominal"


def test_the_commands_prepare_a_policy_and_adapt_it(prepared, tmp_path, capsys, monkeypatch):
    made.few(monkeypatch)
    small = ["--iterations", "4", "--worlds", "8", "--threads", "1", "--from", str(prepared / "es" / "plain")]
    main(["train", "swing", "--robot", "pendulum", "--adapt", "norml", *small, "--out", str(tmp_path / "n"), "--json"])
    assert json.loads(capsys.readouterr().out)["method"] == "norml"
    words = ["--robot", str(made.standin(tmp_path)), "--threads", "1", "--json"]
    try:
        main(["adapt", str(tmp_path / "n"), *words, "--method", "step", "--budget", "3", "--out", str(tmp_path / "a")])
    except SystemExit as stop:
        assert stop.code == 1  # it may do no better than before
    assert json.loads(capsys.readouterr().out)["method"] == "norml"
    with pytest.raises(SystemExit):
        main(["adapt", str(tmp_path / "n"), *words, "--method", "inverse", "--out", str(tmp_path / "b")])
    assert "has no inverse-dynamics head" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["train", "reach", "--robot", "arm", "--adapt", "forces", *small, "--out", str(tmp_path / "f")])
    assert "begins from nothing" in capsys.readouterr().err
