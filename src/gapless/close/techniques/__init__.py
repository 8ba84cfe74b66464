"""The techniques, one file each. A later one joins by being added to the tuple."""

from gapless.close.technique import Technique
from gapless.close.techniques import belief, delta, informed, mean, memory, models30, nothing, oracle, wide, wide_longer

TECHNIQUES: tuple[Technique, ...] = tuple(
    module.TECHNIQUE for module in (nothing, wide, wide_longer, delta, mean, belief, informed, models30, memory, oracle)
)
"""From the least to the most that is known."""
