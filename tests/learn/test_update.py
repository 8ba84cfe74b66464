"""Actor and critic side by side learn what rsl-rl-lib's own update would have taught them, to the bit."""

import dataclasses

import pytest
import torch
from rsl_rl.algorithms import PPO
from rsl_rl.extensions import Symmetry

from bench.update import with_image
from gapless.learn.environment import Environment
from gapless.learn.learner import Learner
from gapless.learn.run import Run
from gapless.learn.settings import PPOSettings

pytestmark = pytest.mark.xdist_group("training")  # two trainings at once are slower than one after the other

SMALL = PPOSettings(worlds=8, steps=12, hidden=(16, 16), epochs=3, minibatches=2, kl=0.005)


def learner_of(**changes):
    twin, task, belief = Run("velocity", "quadruped").build()
    settings = dataclasses.replace(SMALL, **changes)
    return Learner(lambda rng, hardness: Environment(twin, task, settings.worlds, belief, rng, 1), settings, 3)


@pytest.mark.parametrize("mirror", [True, False])
def test_the_update_is_that_of_the_library_to_the_bit(mirror):
    ours = learner_of(mirror=mirror)
    mine = [ours.iterate() for _ in range(3)]
    theirs = learner_of(mirror=mirror)  # seeds torch anew
    alg = theirs.alg
    if mirror:
        alg.symmetry = Symmetry(theirs.env, with_image(ours.environment.mirror()), use_data_augmentation=True)
    alg.update = lambda: PPO.update(alg)
    library = [theirs.iterate() for _ in range(3)]
    for here, there in zip(mine, library, strict=True):
        assert here.rate == there.rate
        for name in ("value", "surrogate", "entropy"):
            assert here.losses[name] == pytest.approx(there.losses[name], rel=1e-12)
    assert mine[-1].rate != SMALL.rate  # it did adapt
    for a, b in ((ours.alg.actor, alg.actor), (ours.alg.critic, alg.critic)):
        for name, value in a.state_dict().items():
            assert torch.equal(value, b.state_dict()[name]), name


def test_what_goes_wrong_in_the_critic_is_not_lost():
    learner = learner_of()
    learner.alg._learn_value = lambda batch: 1 / 0
    with pytest.raises(ZeroDivisionError):
        learner.iterate()
