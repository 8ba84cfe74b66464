"""BayesSim: worlds are the posterior given rollouts of the policy, round by round (Ramos et al. 2019)."""

from gapless.close.moving import ROUNDS, remedy_of
from gapless.close.rollouts import ROLLOUTS, SECONDS
from gapless.close.technique import Technique

TECHNIQUE = Technique(
    "bayessim",
    "takes the posterior given rollouts of its own policy, and tunes in it, round by round",
    remedy_of("bayessim"),
    robot=ROUNDS * ROLLOUTS * SECONDS,
)
