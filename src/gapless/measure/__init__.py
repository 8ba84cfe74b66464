"""Measure: what every judgement of a twin stands on, so that "held out", "noise" and "as given" mean one thing everywhere.

`split_logs` gives blocks and halves, `windows` and `runs` predict logs for many vectors at once, `floors` is the noise floor,
`best_delays` the baseline that needs no model, `traces` and `phase_map` show where errors are, `must_compare` and `admit`
refuse what cannot be compared, `replay_logs` drives logs through a twin.
"""

from gapless.measure.admission import Admitted, admit, admitted_part
from gapless.measure.against_model import model_findings
from gapless.measure.baselines import best_delays, delayed_command, is_commanded
from gapless.measure.clean import usable
from gapless.measure.comparable import (
    TIPPING,
    commands_for,
    fall,
    long_enough,
    moving,
    must_compare,
    one_robot,
    without_velocity,
)
from gapless.measure.lateness import Lateness, uneven
from gapless.measure.noise import RESOLUTION, SETTLE, Floor, floors, same_drive
from gapless.measure.outliers import outlying, soft, soft_slope, usual
from gapless.measure.overlay import names_of, overlays, rms
from gapless.measure.phase import phase_map
from gapless.measure.repeated import Repeat, command_of, from_the_start, repeats
from gapless.measure.replays import Replays, replay_logs
from gapless.measure.signals import difference, difference_columns, signals_of, units
from gapless.measure.split import BLOCK, Split, Stretch, blocks_at, evenly, first_half, random_halves, split_logs
from gapless.measure.trace import Trace, traces
from gapless.measure.window import BROKEN, FREE_WINDOW, Windows, holds, mean_by, runs, windows
