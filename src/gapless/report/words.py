"""Figures in words: sizes with units, shares, what is not known; and text that plotly shows as it is."""

import math
from collections.abc import Iterable
from typing import Any


def known(value: Any) -> bool:
    """Whether it is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def size(value: Any, unit: str, digits: int = 2) -> str:
    """A figure with its unit; angles in degrees."""
    factor, name = shown(unit)
    return f"{factor * value:.{digits}g} {name}" if known(value) else "–"


def shown(unit: str) -> tuple[float, str]:
    """A factor and the unit that people read: degrees instead of radians."""
    return (math.degrees(1.0) if unit.startswith("rad") else 1.0), unit.replace("rad", "deg")


def percent(share: Any) -> str:
    """A share in percent."""
    if not known(share):
        return "–"
    return f"{100 * share:.0f} %" if abs(share) >= 0.0995 else f"{100 * share:.2g} %"


def short(value: Any) -> str:
    """A number in three digits; thousands are written out, and what is next to nothing is 0."""
    if not known(value):
        return "–"
    rounded = float(f"{value:.3g}")
    return f"{rounded:.0f}" if 1e3 <= abs(rounded) < 1e6 else f"{rounded:.3g}" if abs(rounded) > 1e-8 else "0"


def span(values: Iterable[tuple[float, str]]) -> str:
    """Numbers of several joints, with their unit, in a word: one where they agree, else the least and the largest."""
    every = sorted(values)
    if not every:
        return "–"
    low, high = short(every[0][0]), short(every[-1][0])
    return f"{low if low == high else f'{low} to {high}'} {every[0][1]}".strip()


def few(names: Iterable[str], most: int = 4) -> str:
    """Names in a sentence, not more than so many."""
    every = list(names)
    return ", ".join(every[:most]) + (f" and {len(every) - most} more" if len(every) > most else "")


def literal(text: str) -> str:
    """Text that plotly shows as it is: it reads some HTML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
