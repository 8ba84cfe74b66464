"""A planner with an inverse-dynamics head: what it finds out about a robot from what the robot did."""

import numpy as np
import pytest
import torch

from gapless.adapt import train_prepared, tune_head
from gapless.adapt.few_shot import load_planned
from gapless.adapt.inverse import Planned, fit_head, places_of
from gapless.check import check
from gapless.errors import BadInput
from gapless.learn import build_contract, task_of
from gapless.policy import load_policy
from gapless.twin import Twin
from tests.adapt import made

pytestmark = pytest.mark.xdist_group("training")


def moved(gain, n=4000):
    """A cart: what was seen (x, v), where it was later, and the force, for a known gain of its motor."""
    seen, force = torch.randn(n, 2), torch.randn(n, 1)
    return seen, torch.stack([seen[:, 0] + 0.1 * seen[:, 1], 0.9 * seen[:, 1] + gain * force[:, 0]], dim=1), force


def test_a_tuned_head_knows_the_gain_of_a_motor():
    torch.manual_seed(0)
    network = Planned(torch.zeros(2), torch.ones(2), [0, 1], torch.ones(1))
    fit_head(network, moved(1.0), 250, 2e-3)
    seen = torch.zeros(50, 2)
    wanted = torch.stack([torch.zeros(50), torch.linspace(-0.4, 0.4, 50)], dim=1)

    def gain():
        with torch.inference_mode():
            force = network.act(seen, wanted)[:, 0].numpy()
        return 1 / np.polyfit(wanted[:, 1].numpy(), force, 1)[0]

    assert gain() == pytest.approx(1.0, rel=0.1)
    left = fit_head(network, moved(0.5), 250, 2e-3, moved(0.5, 1000))
    assert gain() == pytest.approx(0.5, rel=0.1)
    assert left < 0.2


def test_a_head_that_learns_nothing_new_stays_what_it_was():
    torch.manual_seed(0)
    network = Planned(torch.zeros(2), torch.ones(2), [0, 1], torch.ones(1))
    fit_head(network, moved(1.0), 250, 2e-3)
    before = [p.clone() for p in network.parameters()]
    seen, later, force = moved(1.0, 64)
    fit_head(network, (seen, later, force[torch.randperm(64)]), 60, 1e-2, moved(1.0, 1000))
    assert all((a == b).all() for a, b in zip(before, network.parameters(), strict=True))


def test_places_are_where_the_robot_is_now():
    twin = Twin.load("pendulum")
    contract = build_contract(twin, task_of("swing", twin, history=3))
    assert [t.name for t in contract.observation.terms] == ["q", "dq", "last_action"]
    assert places_of(contract.observation) == [4, 5, 10, 11]  # the last of three frames


def test_a_policy_is_split_and_its_head_tuned_on_a_robot_without_reward(tmp_path, monkeypatch):
    made.few(monkeypatch)
    train_prepared("inverse", made.run(), tmp_path / "split", threads=1)
    result = tune_head(tmp_path / "split", str(made.standin(tmp_path)), tmp_path / "out", 4, threads=1)
    assert len(result.reward) == 4
    one, other = load_planned(tmp_path / "split"), load_planned(tmp_path / "out")
    same = [(a == b).all() for a, b in zip(one.planner.parameters(), other.planner.parameters(), strict=True)]
    assert all(same)
    seen = np.random.default_rng(0).normal(size=(5, load_policy(tmp_path / "out").contract.width)).astype(np.float32)
    with torch.inference_mode():
        assert load_policy(tmp_path / "out")(seen) == pytest.approx(other(torch.from_numpy(seen)).numpy(), abs=1e-5)
    assert not [c for c in check(str(tmp_path / "out"), "pendulum", seconds=1.0).checks if c.status == "fail"]
    with pytest.raises(BadInput, match="has no inverse-dynamics head"):
        tune_head(tmp_path / "split" / "plain", "pendulum", tmp_path / "x")
    with pytest.raises(BadInput, match="a budget of 4 to 10000 episodes on the robot, not 0"):
        tune_head(tmp_path / "split", "pendulum", tmp_path / "x", 0)
    with pytest.raises(BadInput, match="this one has no shoulder, elbow"):
        tune_head(tmp_path / "split", "arm", tmp_path / "x")
