"""Informed: worlds that the fit leaves possible, and the ranges of the field for all that it does not speak of."""

from gapless.close.belief import tuned_in
from gapless.close.field import LOG_SECONDS
from gapless.close.technique import Technique

TECHNIQUE = Technique(
    "informed",
    "tunes in worlds drawn from what the fit believes, and from the ranges of the field for the rest",
    tuned_in("informed", "informed"),
    robot=LOG_SECONDS,
)
