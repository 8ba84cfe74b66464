"""A remainder planted in one joint and phase is found there."""

from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np

from gapless.explain.remainder import located


@dataclass
class Fake:
    """The parts of a Physics that locating needs: two joints, 20 s, sines."""

    time: np.ndarray = field(default_factory=lambda: np.arange(0, 20, 0.02))
    twin: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(joints=("hip", "knee")))

    def measured(self, signal: str) -> np.ndarray:
        return np.column_stack([np.sin(2 * self.time), np.sin(3 * self.time)])

    @property
    def command(self) -> np.ndarray:
        return 1.1 * self.measured("q")


def errors(planted: np.ndarray, joint: int) -> np.ndarray:
    out = 1e-4 * np.random.default_rng(0).standard_normal((len(planted), 2))
    out[:, joint] += 0.01 * planted
    return out


def test_an_error_that_grows_is_late_in_the_log_and_suggests_heating() -> None:
    fake = Fake()
    found = located(fake, errors(np.maximum(fake.time - 13, 0) / 7, 1), 0.5, 9.0)  # type: ignore[arg-type]
    assert found.where[0].startswith("knee") and any("late in the log" in s and "heating" in s for s in found.where)
    assert found.joints["knee"] > 0.9


def test_an_error_at_reversals_suggests_play() -> None:
    fake = Fake()
    turning = np.abs(np.cos(2 * fake.time)) < 0.08
    found = located(fake, errors(turning.astype(float), 0), 0.5, 9.0)  # type: ignore[arg-type]
    assert any(s.startswith("hip") and "reversals" in s and "play" in s for s in found.where)


def test_errors_everywhere_suggest_a_missing_degree_of_freedom() -> None:
    fake = Fake()
    found = located(fake, errors(np.random.default_rng(1).standard_normal(len(fake.time)), 0), 0.5, 9.0)  # type: ignore[arg-type]
    assert "degree of freedom" in found.where[0]
