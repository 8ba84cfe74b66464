"""Fit and belief: worlds that the fit leaves possible, and the model as it is for all that the fit does not speak of."""

from gapless.close.belief import tuned_in
from gapless.close.field import LOG_SECONDS
from gapless.close.technique import Technique

TECHNIQUE = Technique(
    "belief", "tunes in worlds drawn from what the fit believes", tuned_in("belief", "narrow"), robot=LOG_SECONDS
)
