"""The techniques, one file each. A later one joins by being added to the tuple."""

from gapless.close.technique import Technique
from gapless.close.techniques import (
    adr,
    autotuned,
    bayessim,
    belief,
    delta,
    es_maml,
    informed,
    inverse,
    maml,
    mean,
    memory,
    models30,
    norml,
    nothing,
    oracle,
    osi,
    rma,
    search,
    simopt,
    student,
    wide,
    wide_longer,
)

_KNOWING_NOTHING = nothing, wide, wide_longer, adr
_FROM_LOGS = delta, mean, belief, informed, simopt, bayessim, autotuned
_FINDING_OUT = models30, memory, student, rma, osi, search, es_maml, maml, norml, inverse
_MODULES = *_KNOWING_NOTHING, *_FROM_LOGS, *_FINDING_OUT, oracle
TECHNIQUES: tuple[Technique, ...] = tuple(module.TECHNIQUE for module in _MODULES)
"""From the least to the most that is known."""
