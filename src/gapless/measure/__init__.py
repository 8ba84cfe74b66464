"""Measure: what every judgement of a twin stands on, so that "held out", "noise" and "as given" mean one thing everywhere.

`split_logs` gives blocks and halves, `windows` and `runs` predict logs for many vectors at once, `floors` is the noise floor,
`best_delays` the baseline that needs no model, `traces` and `phase_map` show where errors are, `must_compare` refuses what
cannot be compared.
"""

from gapless.measure.baselines import best_delays, delayed_command, is_commanded
from gapless.measure.comparable import STILL, TIPPING, commands_for, fall, long_enough, moving, must_compare, one_robot, travel
from gapless.measure.noise import RESOLUTION, SETTLE, Floor, floors, same_drive
from gapless.measure.outliers import outlying, soft, soft_slope, usual
from gapless.measure.overlay import names_of, overlays, rms
from gapless.measure.phase import phase_map
from gapless.measure.repeated import Repeat, command_of, from_the_start, repeats
from gapless.measure.signals import difference, difference_columns, signals_of, units
from gapless.measure.split import BLOCK, Split, Stretch, blocks_at, evenly, random_halves, split_logs
from gapless.measure.trace import Trace, traces
from gapless.measure.window import BROKEN, FREE_WINDOW, Windows, holds, mean_by, runs, windows
