"""Auto-tuned: a classifier of rollouts says which numbers are too high (Du et al. 2021)."""

from gapless.close.moving import ROUNDS, remedy_of
from gapless.close.rollouts import ROLLOUTS, SECONDS
from gapless.close.technique import Technique

TECHNIQUE = Technique(
    "autotuned",
    "asks a classifier which numbers are too high, from rollouts of its own policy, and tunes about them",
    remedy_of("autotuned"),
    robot=ROUNDS * ROLLOUTS * SECONDS,
)
