"""Fit from logs as they come: bad ones are left out and named, what is stated stays fixed, progress is kept in a file.

twin = as_given("arm.xml", log := read("motion.mcap"))
result = fit(twin, [log], fixed={"gains.kp/*": 14.5})
print(result)
result.save("fitted")
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

from gapless.errors import BadInput
from gapless.identify.fitting import fit_admitted
from gapless.identify.memory import Memory, key_of
from gapless.identify.posteriors import particles as drawn_particles
from gapless.identify.result import Fit
from gapless.identify.time_step import finer
from gapless.logs import Log
from gapless.measure import admit, without_velocity
from gapless.twin import Twin

SIMULATIONS = 4000  # of each window of the logs, for the posterior
PARTICLES = 1000  # of a posterior, unless stated


def fit(
    twin: Twin,
    logs: Sequence[Log],
    *,
    fixed: Mapping[str, float] | None = None,
    method: Literal["least-squares", "evolve", "posterior"] = "least-squares",
    particles: int = 0,
    signals: tuple[str, ...] = ("q",),
    progress: str | os.PathLike[str] | None = None,
    resume: bool = False,
    tick: Callable[[str], object] = lambda text: None,
) -> Fit:
    """Fit a twin to logs: the numbers of its drives, delay and friction, and what the logs do not tell.

    Args:
        twin: the model as given (`as_given`); all of its parameters are nominal at the start.
        logs: what was commanded and measured. Bad ones are left out, and named in the warnings, if others are good.
        fixed: parameters that are known, by name or pattern, and their values.
        method: `evolve` goes on with CMA-ES in the full model, for minutes. `posterior` learns all that the logs leave possible
            from simulations, by a network (needs gapless[posterior]).
        particles: how many weighted samples the belief has; 0 for a Gaussian.
        signals: what the full model is fitted to: q, dq, tau; a floating base's own signals are always used.
        progress: a file that keeps what was computed, for `resume` after a crash or Ctrl-C.
        resume: go on with what that file has.
        tick: told what is being done, with the held-out error so far.
    """
    if particles < 0:
        raise BadInput(f"the number of particles must not be negative, not {particles}")
    known = dict(twin.space.fix(fixed or {}).fixed)
    admitted = admit(twin, logs)
    twin, known = _without_velocity(twin, known)
    given = twin
    twin, coarse = finer(twin, admitted.logs)
    path = Path(progress) if progress else None
    memory = Memory.open(path, key_of(twin, admitted.logs, [str(sorted(known.items())), method, *signals]), resume)
    try:
        result = fit_admitted(twin, admitted.logs, tick, memory, known, method == "evolve", signals, given)
        drawn, simulations = None, SIMULATIONS if method == "posterior" else None
        if particles or simulations:
            rng, n = np.random.default_rng(0), particles or PARTICLES
            drawn = drawn_particles(result, admitted.logs, n, rng, tick, signals, simulations)
    except BadInput as error:
        kept = f"; what was computed until then is in {path}, for --resume" if path and memory.done else ""
        raise BadInput(f"{error}{kept}") from None
    more = [
        *(drawn.warnings if drawn else ()),
        *(f"left out {why}" for why in admitted.refused.values()),
        *admitted.notes,
        *coarse,
    ]
    return replace(result, belief=drawn.belief if drawn else result.belief, warnings=[*result.warnings, *more])


def _without_velocity(twin: Twin, known: Mapping[str, float]) -> tuple[Twin, dict[str, float]]:
    """The twin of the drives that can be fitted, and what is known of those: not the ones commanded in velocity."""
    if twin.drives and all(d.signal == "dq" for d in twin.drives):
        raise BadInput(f"all drives of {twin.name} are commanded in velocity, and such drives cannot be fitted")
    twin = without_velocity(twin, "commanded in velocity, which cannot be fitted")
    return twin, {name: value for name, value in known.items() if name in twin.space.names}
