"""SimOpt: worlds follow rollouts of the policy, round by round (Chebotar et al. 2019)."""

from gapless.close.moving import ROUNDS, remedy_of
from gapless.close.rollouts import ROLLOUTS, SECONDS
from gapless.close.technique import Technique

TECHNIQUE = Technique(
    "simopt",
    "moves a Gaussian by rollouts of its own policy, a bounded step at a time, and tunes in it",
    remedy_of("simopt"),
    robot=ROUNDS * ROLLOUTS * SECONDS,
)
