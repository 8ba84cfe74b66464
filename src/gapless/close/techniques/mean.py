"""Fit, mean only: the fitted numbers as if they were certain."""

from gapless.close.belief import tuned_in
from gapless.close.field import LOG_SECONDS
from gapless.close.technique import Technique

TECHNIQUE = Technique("mean", "tunes on the fitted model alone", tuned_in("mean", "none"), robot=LOG_SECONDS)
