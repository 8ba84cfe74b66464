"""The techniques, one file each. A later one joins by being added to the tuple."""

from gapless.close.technique import Technique
from gapless.close.techniques import (
    belief,
    delta,
    informed,
    mean,
    memory,
    models30,
    nothing,
    oracle,
    osi,
    rma,
    search,
    student,
    wide,
    wide_longer,
)

_MODULES = nothing, wide, wide_longer, delta, mean, belief, informed, models30, memory, student, rma, osi, search, oracle
TECHNIQUES: tuple[Technique, ...] = tuple(module.TECHNIQUE for module in _MODULES)
"""From the least to the most that is known."""
