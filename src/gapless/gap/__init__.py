"""Gap: what is left between a twin and its logs, beside what needs no model and what no model can reach.

`measure` gives errors by signal, joint and horizon; `experiment` how runs of the same commands part over time.
"""

from gapless.gap.by_horizon import Gap, measure
from gapless.gap.distribution import Distances, Motion, between as distances_between, joined, states
from gapless.gap.divergence import Experiment, experiment
from gapless.gap.page import distribution as distances_section, off as gap_off
