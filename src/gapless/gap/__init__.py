"""Gap: what is left between a twin and its logs, beside what needs no model and what no model can reach.

`measure` gives errors by signal, joint and horizon; `experiment` how runs of the same commands part over time; `floors` the
noise floor of logs alone; `repeats` where a robot was told the same twice.
"""

from gapless.gap.admission import admit, long_enough, moving
from gapless.gap.divergence import Experiment, experiment
from gapless.gap.measure import HORIZONS, Errors, Gap, Trace, measure
from gapless.gap.noise import floors
from gapless.gap.noise import sensor as encoder_noise
from gapless.gap.page import details as gap_details
from gapless.gap.page import distribution as gap_distribution
from gapless.gap.page import horizons as gap_horizons
from gapless.gap.page import legend as gap_legend
from gapless.gap.page import off as gap_off
from gapless.gap.page import provenance as gap_provenance
from gapless.gap.page import strip as gap_strip
from gapless.gap.phases import phase_map
from gapless.gap.repeated import repeats

__all__ = [
    "HORIZONS",
    "Errors",
    "Experiment",
    "Gap",
    "Trace",
    "admit",
    "encoder_noise",
    "experiment",
    "floors",
    "gap_details",
    "gap_distribution",
    "gap_horizons",
    "gap_legend",
    "gap_off",
    "gap_provenance",
    "gap_strip",
    "long_enough",
    "measure",
    "moving",
    "phase_map",
    "repeats",
]
