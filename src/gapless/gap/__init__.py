"""Gap: what is left between a twin and its logs, beside what needs no model and what no model can reach.

`measure` gives errors by signal, joint and horizon; `experiment` how runs of the same commands part over time; `floors` the
noise floor of logs alone; `repeats` where a robot was told the same twice.
"""

from gapless.gap.admission import admit, long_enough, moving
from gapless.gap.divergence import Experiment, experiment
from gapless.gap.divergence_page import distribution_section
from gapless.gap.divergence_page import page as experiment_page
from gapless.gap.divergence_page import show as show_experiment
from gapless.gap.divergence_page import verdict as experiment_verdict
from gapless.gap.measure import HORIZONS, Errors, Gap, Trace, measure
from gapless.gap.noise import floors
from gapless.gap.noise import sensor as encoder_noise
from gapless.gap.phases import phase_map
from gapless.gap.plain import finite, plain, plain_experiment
from gapless.gap.repeated import repeats

__all__ = [
    "HORIZONS",
    "Errors",
    "Experiment",
    "Gap",
    "Trace",
    "admit",
    "distribution_section",
    "encoder_noise",
    "experiment",
    "experiment_page",
    "experiment_verdict",
    "finite",
    "floors",
    "long_enough",
    "measure",
    "moving",
    "phase_map",
    "plain",
    "plain_experiment",
    "repeats",
    "show_experiment",
]
