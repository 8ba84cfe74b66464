"""Certificates: the estimate against simulated truth and against the authors' own program."""

import numpy as np
import pytest

from gapless.check import estimate, plan_trials, read_trials, tuned_weight
from gapless.check.certify import certify
from gapless.errors import BadInput
from gapless.twin import Twin
from tests.check.made import still


def drawn(rng, n, noise=0.3):
    """Real figures, and predictions with a bias."""
    x = rng.normal(size=n)
    return 1.0 + x + noise * rng.normal(size=n), 0.7 + x


def test_five_trials_hold_as_often_as_they_say_and_say_more():
    rng, held, ratios = np.random.default_rng(0), [], []
    for _ in range(400):
        real, predicted = drawn(rng, 5)
        _, others = drawn(rng, 200)
        both, alone = (estimate(real, predicted, others, w, 0.9) for w in (1.0, 0.0))
        held.append(both.low <= 1.0 <= both.high)
        ratios.append(both.width / alone.width)
    assert 0.86 <= np.mean(held) <= 0.94 and np.median(ratios) < 0.6


def test_the_mean_is_that_of_its_authors():
    ppi = pytest.importorskip("ppi_py", reason="pip install ppi-python to compare with")
    rng = np.random.default_rng(1)
    (real, predicted), (_, others) = drawn(rng, 30), drawn(rng, 500)
    assert estimate(real, predicted, others, 0.8).mean == pytest.approx(
        float(np.ravel(ppi.ppi_mean_pointestimate(real, predicted, others, lam=0.8))[0])
    )


def test_simulation_that_says_nothing_gets_no_weight():
    rng = np.random.default_rng(2)
    assert tuned_weight(rng.normal(size=(400, 8))) < 0.15
    assert tuned_weight(rng.normal(size=(400, 1)) + 0.1 * rng.normal(size=(400, 8))) > 0.9


def test_trials_from_a_table(tmp_path):
    path = tmp_path / "trials.csv"
    path.write_text("vx,vy,yaw_rate,velocity_error\n0.5,0,0,0.1\n0,0.2,0,0.2\n")
    commands, real = read_trials(path, ("vx", "vy", "yaw_rate"), "velocity_error")
    assert commands.shape == (2, 3) and real.tolist() == [0.1, 0.2]
    for text in ("", "vx,vy\n1,2\n", "vx,vy,yaw_rate,velocity_error\n1,2,3,\n", "vx,vy,yaw_rate,velocity_error\n1,2,3,nan\n"):
        path.write_text(text)
        with pytest.raises(BadInput, match="trials.csv"):
            read_trials(path, ("vx", "vy", "yaw_rate"), "velocity_error")


def test_too_few_trials_and_unknown_figures_are_refused():
    twin = Twin.load("quadruped")
    policy = still(twin)
    commands = plan_trials(policy, twin, 2)
    assert (commands == plan_trials(policy, twin, 2)).all()
    with pytest.raises(BadInput, match="at least 3"):
        certify(policy, twin, commands, np.zeros(2))
    with pytest.raises(BadInput, match="one of velocity_error"):
        certify(policy, twin, commands, np.zeros(2), figure="speed")
