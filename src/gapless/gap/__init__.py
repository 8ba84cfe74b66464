"""Gap: what is left between a twin and its logs, beside what needs no model and what no model can reach.

`measure` gives errors by signal, joint and horizon; `experiment` how runs of the same commands part over time; `floors` the
noise floor of logs alone; `repeats` where a robot was told the same twice.
"""

from gapless.gap.experiment import Experiment, experiment
from gapless.gap.measure import HORIZONS, Errors, Gap, Trace, measure
from gapless.gap.noise import floors
from gapless.gap.repeats import repeats

__all__ = ["HORIZONS", "Errors", "Experiment", "Gap", "Trace", "experiment", "floors", "measure", "repeats"]
