"""Phases: errors planted at reversals, under load, late or at touchdown are found where they were planted."""

import numpy as np
import pytest

from gapless.measure import Trace
from gapless.measure.phase import phase_map, phases

N = 4000
TIME = np.arange(N) * 0.005
ANGLE = 2 * np.pi * 0.5 * TIME


def trace(error: np.ndarray, shock: np.ndarray | None = None) -> Trace:
    """A joint that swings at 0.5 Hz under a load that is largest at one end."""
    q, dq, load = np.sin(ANGLE), np.pi * np.cos(ANGLE), 1 + np.sin(ANGLE + 0.8)
    columns = [c[:, None] for c in (q, q, q, q, q + error, q + error, dq, load)]
    nothing = np.full(N, np.nan) if shock is None else shock
    return Trace("log", ("knee",), TIME, *columns, nothing, np.zeros(N, dtype=np.int64), np.zeros(N, dtype=np.int64))


TURN = np.abs(np.cos(ANGLE)) < 0.2
PLANTED = {
    "reversals": TURN,
    "high speed": np.abs(np.cos(ANGLE)) > 0.97,
    "high load": 1 + np.sin(ANGLE + 0.8) > 1.9,
    "late": TIME > 15,
}


@pytest.mark.parametrize("phase", PLANTED)
def test_an_error_is_found_in_the_phase_it_was_planted_in(phase):
    error = np.where(PLANTED[phase], 0.1, 0.01)
    found = phase_map([trace(error)])["knee"]
    found.pop("range ends")  # where a sine turns
    assert max(found, key=lambda p: found[p] or 0.0) == phase
    assert found[phase] > 3
    assert "contact" not in found


def test_touchdown_is_where_a_free_base_is_shaken():
    rng = np.random.default_rng(0)
    hits = np.arange(200, N, 800)
    shock = np.abs(0.1 * rng.standard_normal(N))
    for h in hits:
        shock[h : h + 120] = 20.0
    near = phases(trace(np.zeros(N), shock), 0)["contact"]
    for h in hits:
        assert near[h - 10 : h + 10].all()
    assert near.mean() < 0.5


def test_the_same_error_everywhere_is_one_and_none_is_none():
    found = phase_map([trace(np.full(N, 0.02))])["knee"]
    assert all(v == pytest.approx(1.0) for v in found.values())
    assert set(phase_map([trace(np.zeros(N))])["knee"].values()) == {None}
