"""MAML, NoRML and ES-MAML: against tasks whose answer is known, and then as policies of a robot."""

import dataclasses

import numpy as np
import pytest
import torch

from gapless.adapt import climb, one_step, train_prepared
from gapless.adapt.es_maml import BATCH, PAIRS, climbed, evolve
from gapless.adapt.gradient import Episodes, gains, learn, stepped
from gapless.adapt.maml import Rewards
from gapless.adapt.norml import Learned
from gapless.check import check
from gapless.errors import BadInput
from gapless.policy import load_policy
from tests.adapt import made

pytestmark = pytest.mark.xdist_group("training")

ROBOTS, PERIODS, EACH = 10, 10, 20
GOAL = torch.tensor([1.0, 0.0])


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        nn = torch.nn
        self.body = nn.Sequential(nn.Linear(2, 50), nn.Tanh(), nn.Linear(50, 50), nn.Tanh())
        self.head, self.spread = nn.Parameter(0.05 * torch.randn(2, 51)), torch.full((2,), 0.3)

    def features(self, o):
        seen = self.body(o)
        return torch.cat([seen, torch.ones_like(seen[..., :1])], dim=-1)


def rotated(policy, generator, noise=1.0):
    """A point that walks to (1, 0), with its steps of at most 0.2 turned by an angle that is hidden (Yang et al. 2019)."""
    angle = (2 * torch.rand(ROBOTS, generator=generator) - 1) * torch.pi
    c, s = angle.cos(), angle.sin()
    turn = torch.stack([torch.stack([c, -s], -1), torch.stack([s, c], -1)], -2)

    def collect(heads):
        x, rows = torch.zeros(ROBOTS, EACH, 2), []
        with torch.no_grad():
            for _ in range(PERIODS):
                mean = torch.einsum("tef,tjf->tej", policy.features(x), heads)
                action = mean + noise * policy.spread * torch.randn(mean.shape, generator=generator)
                step = 0.2 * action / action.norm(dim=-1, keepdim=True).clamp(min=1)
                after = x + torch.einsum("tij,tej->tei", turn, step)
                rows.append((x, action, after, (x - GOAL).norm(dim=-1) - (after - GOAL).norm(dim=-1)))
                x = after
        seen, action, following, reward = (torch.stack(part, dim=1) for part in zip(*rows, strict=True))
        alive = torch.ones_like(reward)
        return Episodes(seen, action, following, gains(reward, alive, 0.9), alive, float(reward.sum(dim=1).mean()))

    return collect


@pytest.mark.parametrize("method", ["maml", "norml"])
def test_one_step_finds_a_hidden_rotation(method):
    """An oracle earns 1; without adaptation nothing is earned, whatever the policy. NoRML never sees a reward in its step."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    policy, generator = Small(), torch.Generator().manual_seed(1)
    still = torch.zeros(2), torch.full((2,), 0.2)
    inner = Rewards(0.1) if method == "maml" else Learned(1.0, 2, 2, policy.head.detach(), *still)
    learn(policy, inner, ROBOTS, lambda: rotated(policy, generator), 40, rate=3e-3)
    before, after = [], []
    for _ in range(5):
        torch_state = generator.get_state()
        collect = rotated(policy, generator)
        first = collect(policy.head.detach().expand(ROBOTS, -1, -1))
        if method == "norml":
            first = dataclasses.replace(first, gain=torch.full_like(first.gain, torch.nan))
        with torch.no_grad():
            heads = stepped(policy, inner, first)
        generator.set_state(torch_state)
        before.append(first.earned)
        after.append(rotated(policy, generator, noise=0.0)(heads).earned)
    assert np.mean(before) < 0.4
    assert np.mean(after) > 0.6


def test_the_step_is_the_gradient_of_what_it_says_it_is():
    torch.manual_seed(0)
    policy = Small()
    episodes = rotated(policy, torch.Generator().manual_seed(2))(policy.head.detach().expand(ROBOTS, -1, -1))
    inner = Rewards(0.1)
    head = policy.head.detach().expand(ROBOTS, -1, -1).clone().requires_grad_()
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
