"""The classifier: numbers that a rollout shows are tuned, others are named with the reason."""

from types import SimpleNamespace

import numpy as np
import pytest

from gapless.close import Asked, autotuned
from gapless.twin import Gaussian, Twin


class Springs(Asked):
    """Rollouts of which all is known: the first number is a frequency, the second does nothing, the last two act as one."""

    aligned = True

    def __init__(self):
        pass

    def simulated(self, values, space, rng):
        x, t = space.to_scaled(values), np.arange(60) / 10
        one = np.cos(t * (2 + 0.5 * x[:, :1]))
        both = (x[:, 2:3] + x[:, 3:4]) * np.sin(t)
        seen = np.stack([one, both], axis=-1)[:, None]
        return seen + 0.01 * rng.standard_normal(seen.shape)


@pytest.fixture(scope="module")
def found():
    space = Twin.load("pendulum").space.select("gains.kp/*", "gains.kd/*")
    belief = Gaussian(space, np.zeros(4), np.eye(4))
    before = autotuned.BATCHES, autotuned.ROBOTS
    autotuned.BATCHES, autotuned.ROBOTS = 700, 500
    yield belief, autotuned.learn(belief, Springs(), np.random.default_rng(0))
    autotuned.BATCHES, autotuned.ROBOTS = before


def told(belief, truth, robots=1):
    values = np.tile(belief.space.from_scaled(np.array(truth)), (robots, 1))
    return Springs().simulated(values, belief.space, np.random.default_rng(1))


def test_what_rollouts_show_is_tuned_to_the_truth(found):
    belief, tuner = found
    settled = tuner.tuned(told(belief, [1.4, 0.0, 0.0, 0.0]), Springs())[0]
    assert settled[0] == pytest.approx(1.4, abs=0.3)


def test_how_sure_it_is_afterwards_is_how_far_off_it_is_for_robots_not_learnt_from(found):
    belief, tuner = found
    truth = np.random.default_rng(5).standard_normal((60, 4)) * autotuned.WIDER
    seen = Springs().simulated(belief.space.from_scaled(truth), belief.space, np.random.default_rng(2))
    within = np.abs(tuner.tuned(seen, Springs()) - truth) <= 1.645 * tuner.after
    assert ((within.mean(axis=0) > 0.75) & (within.mean(axis=0) <= 1.0)).all()
    assert tuner.after[0] < 0.4 * tuner.before[0]


def test_what_they_do_not_show_is_left_and_the_reason_is_named(found):
    belief, tuner = found
    why = dict(zip(belief.space.names, tuner.why, strict=True))
    first, nothing, one, other = belief.space.names
    assert why[first] == "" and "hardly depend on it" in why[nothing]
    assert min(tuner.after[2:] / tuner.before[2:]) > 0.5  # half of what the sum shows is the other
    assert all(not why[a] or f"{b} does the same" in why[a] for a, b in ((one, other), (other, one)))


def test_an_update_names_what_it_left(found, monkeypatch):
    belief, tuner = found
    monkeypatch.setattr(autotuned, "learn", lambda *given: tuner)
    real = SimpleNamespace(seen=told(belief, [1.0, 0.0, 0.0, 0.0])[0])
    moved, said = autotuned.update(belief, Springs(), real, np.random.default_rng(0))
    assert "left as they were" in said and moved.centre[1] == 0.0 and moved.covariance[1, 1] == 1.0
    assert moved.covariance[0, 0] < 0.5
