"""Policies that adapt join the comparison: they share their teacher, and a search spends robot time."""

import dataclasses

import numpy as np
import pytest

from gapless.close import MISMATCHES, TECHNIQUES, Case, applied, scored
from gapless.learn import ppo_settings
from gapless.policy import load_policy

pytestmark = pytest.mark.xdist_group("training")


def test_techniques_that_adapt_share_a_teacher_and_a_search_counts_its_trials(tmp_path, monkeypatch):
    small = dataclasses.replace(ppo_settings("swing", Case("pendulum", logs=("x",)).twin()), worlds=8, steps=8)
    monkeypatch.setattr("gapless.learn.run.ppo_settings", lambda task, twin: small)
    for name in ("gapless.learn.run.UNSEEN", "gapless.adapt.distil.UNSEEN"):
        monkeypatch.setattr(name, 4)
    monkeypatch.setattr("gapless.learn.trained.UNSEEN_SECONDS", 0.5)
    monkeypatch.setattr("gapless.adapt.distil.BATCH", 32)
    small_ones = {"es_maml.PAIRS": 2, "es_maml.BATCH": 2, "meta.ROBOTS": 2, "meta.EACH": 2, "lots.UNSEEN": 4}
    for name, value in (small_ones | {"few_shot.ROBOTS": 4, "few_shot.UPDATES": 20, "few_shot.TUNING": 20}).items():
        monkeypatch.setattr(f"gapless.adapt.{name}", value)
    monkeypatch.setattr("gapless.close.adapting.ROBOT_TIME", 24.0)
    mismatch = next(m for m in MISMATCHES["pendulum"] if m.name == "latency")
    case = Case("pendulum", "swing", mismatch.standin("pendulum", 0), scratch=6)
    by_name, told = {t.name: t for t in TECHNIQUES}, []
    outcomes = {
        name: applied(by_name[name], case, tmp_path, lambda text, left: told.append(text)) for name in ("rma", "osi", "search")
    }
    assert [o.robot for o in outcomes.values()] == [0.0, 0.0, 24.0]  # four episodes of 6 s
    assert sum(text == "training teacher" for text in told) == 1
    providers = [load_policy(o.policy).contract.context.provider for o in outcomes.values()]
    assert providers == ["history", "history", "search"]
    for name in ("es_maml", "norml", "inverse"):
        outcome = applied(by_name[name], case, tmp_path, lambda text, left: None)
        assert outcome.robot == 24.0 and load_policy(outcome.policy).contract.context is None
    result = scored(case, outcomes["search"].policy, draws=1, threads=1)
    assert np.isfinite(result.away).all() and len(result.fell) == 36
