"""Time step: a model's own may be too coarse to predict a log with; then the fit has a finer one, and says so."""

from collections.abc import Sequence

import numpy as np

from gapless.logs import Log
from gapless.measure import floors, holds, split_logs, windows
from gapless.twin import Twin

MUCH = 0.1  # of the error of the model as given, more than a good fit leaves of it
SECONDS = 20.0  # of the logs that are replayed


def finer(twin: Twin, logs: Sequence[Log]) -> tuple[Twin, list[str]]:
    """The twin, with half its time step where that changes its predictions by more than noise and by much of their error.

    Also a sentence about it. No number of the model can make up for a step that is too coarse, and a fit would bend some.
    """
    if not holds(twin):
        return twin, []
    split = split_logs(logs, twin.joints)
    data = windows(twin, logs, split, split.blocks(split.spread(split.logs, SECONDS)) & split.measured, signals=("q",))
    nominal = twin.space.nominal[None]
    error, half = data.errors(nominal)[0], data.halved().errors(nominal)[0]
    step, given = (float(np.sqrt((e**2).mean(axis=0)).mean()) for e in (half - error, error))
    floor = floors(logs, ("q",))["q"]
    noise = float(floor.size[[floor.columns.index(j) for j in twin.joints]].mean())
    if not max(MUCH * given, noise) < step < given:
        return twin, []
    coarse = twin.model.opt.timestep
    sentence = f"the time step of {1e3 * coarse:g} ms is coarse for this model: half of it changes predictions by "
    sentence += f"{np.degrees(step):.2g} deg, so {500 * coarse:g} ms is in the fitted twin; use it in the simulator too"
    return twin.at_step(coarse / 2), [sentence]
