"""Teacher, student, RMA and UP-OSI: small trainings that leave policies which any runtime takes."""

import itertools

import numpy as np
import pytest
import torch

from gapless.adapt import believes, load_teacher, train_adaptive
from gapless.adapt.adaptive import Adaptive, adaptive_contract
from gapless.adapt.distil import BATCH, _fit
from gapless.check import check
from gapless.errors import BadInput
from gapless.learn import enter, train
from gapless.policy import load_policy
from tests.adapt import made

pytestmark = pytest.mark.xdist_group("training")  # two trainings at once are slower than one after the other


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """RMA with its teacher, and a universal policy with its identification."""
    folder = tmp_path_factory.mktemp("adapt")
    with pytest.MonkeyPatch.context() as patch:
        made.few(patch)
        train_adaptive("rma", made.run(), folder / "rma", threads=1)
        train_adaptive("osi", made.run(), folder / "osi", threads=1, start=folder / "rma" / "teacher")
    return folder


def test_an_expert_taken_apart_acts_as_its_exported_teacher(trained):
    for method in ("rma", "osi"):
        policy, teacher = load_policy(trained / "rma" / "teacher"), load_teacher(trained / "rma" / "teacher", method == "osi")
        rng, expert = np.random.default_rng(0), teacher.expert
        seen = rng.normal(size=(5, policy.contract.width)).astype(np.float32)
        o, e = torch.from_numpy(seen[:, : expert.observed]), torch.from_numpy(seen[:, expert.observed :])
        with torch.inference_mode():
            z = expert.encode(e)
            assert expert.act(o, z).numpy() == pytest.approx(policy(seen), abs=1e-5)
            assert expert(torch.cat([o, z], dim=1)).numpy() == pytest.approx(policy(seen), abs=1e-5)
        assert z.shape[1] == (8 if method == "rma" else len(teacher.context.names))


def test_the_estimate_is_renewed_at_ten_hertz_and_held_between(trained):
    policy = load_policy(trained / "rma")
    context = policy.contract.context
    assert (context.provider, context.rate) == ("history", pytest.approx(10.0))
    frames = np.random.default_rng(0).normal(size=(12, 1, policy.contract.width))
    held = []
    for frame in frames:
        policy(frame)
        held.append(policy.believes[0].copy())
    same = [bool((a == b).all()) for a, b in itertools.pairwise(held)]
    assert same == [k % 5 != 0 for k in range(1, 12)]  # of 50 Hz
    policy.reset(np.array([True]))
    policy(frames[3])
    assert not (policy.believes[0] == held[-1]).all()  # after a reset at once


def test_a_policy_that_adapts_passes_its_golden_frames_and_the_check_and_runs_the_course(trained):
    for method in ("rma", "osi"):
        result = check(str(trained / method), "pendulum", seconds=1.0)
        found = {c.name: c.status for c in result.checks}
        assert found["golden frames"] == found["recurrent state"] == found["history"] == "pass"
        assert not [c for c in result.checks if c.status == "fail"]
        assert len(enter(trained / method).judge(1, threads=1).fell) == 36
    with pytest.raises(BadInput, match="is a teacher"):
        check(str(trained / "rma" / "teacher"), "pendulum")


def test_regression_finds_what_the_history_shows(trained):
    teacher = load_teacher(trained / "rma" / "teacher")
    contract, every = adaptive_contract(teacher, 10, 10.0)
    torch.manual_seed(0)
    network = Adaptive(teacher.expert, contract, every)
    seen = torch.randn(2 * BATCH, contract.width)
    z = torch.tanh(network.frames(seen)[:, :, :8].mean(dim=1))
    right, optimiser = torch.zeros(len(seen), 2), torch.optim.Adam(network.provider.parameters(), 1e-3)
    before = [p.clone() for p in network.expert.parameters()]
    first = _fit(network, optimiser, (seen, z[:, [0] * 8], right), False, 2)
    last = _fit(network, optimiser, (seen, z[:, [0] * 8], right), False, 60)
    assert last < 0.6 * first
    assert all((a == b).all() for a, b in zip(before, network.expert.parameters(), strict=True))  # the policy stays


def test_what_a_policy_believes_is_told_beside_the_truth(trained, monkeypatch, tmp_path):
    monkeypatch.setattr("gapless.adapt.beliefs.ROBOTS", 12)
    for method in ("rma", "osi"):
        told = believes(trained / method, threads=1)
        assert told.truth.shape == told.said.shape == (400, len(told.names))
        change = np.abs(np.diff(told.truth, axis=0)).max(axis=1)
        assert np.flatnonzero(change > 1e-9).tolist() == [199]  # 4 s
    told.save(tmp_path)
    assert "One robot, which becomes another" in (tmp_path / "report.html").read_text()
    with pytest.raises(BadInput, match="believes nothing"):
        believes(trained / "rma" / "teacher")


def test_a_policy_that_is_no_teacher_is_one_sentence(trained, tmp_path, monkeypatch):
    made.few(monkeypatch)
    with pytest.raises(BadInput, match="trained without being told a context"):
        train_adaptive("student", made.run(), tmp_path / "b", start=trained / "rma")
    with pytest.raises(BadInput, match="takes neither --lstm nor --history"):
        train_adaptive("rma", made.run(history=3), tmp_path / "c")
    train(made.run(teacher=True, latent=2), tmp_path / "d", threads=1, iterations=1)
    assert load_teacher(tmp_path / "d").names == ("z0", "z1")
