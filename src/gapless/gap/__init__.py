"""Gap: what is left between a twin and its logs, beside what needs no model and what no model can reach.

`measure` gives errors by signal, joint and horizon; `experiment` how runs of the same commands part over time.
"""

from gapless.gap.by_horizon import HORIZONS, Errors, Gap, measure
from gapless.gap.divergence import Experiment, experiment
from gapless.gap.page import details as gap_details
from gapless.gap.page import distribution as gap_distribution
from gapless.gap.page import horizons as gap_horizons
from gapless.gap.page import legend as gap_legend
from gapless.gap.page import off as gap_off
from gapless.gap.page import provenance as gap_provenance
from gapless.gap.page import strip as gap_strip

__all__ = [
    "HORIZONS",
    "Errors",
    "Experiment",
    "Gap",
    "experiment",
    "gap_details",
    "gap_distribution",
    "gap_horizons",
    "gap_legend",
    "gap_off",
    "gap_provenance",
    "gap_strip",
    "measure",
]
