"""What to do next: one sentence a cause, from its own figures; what would tell apart what a log cannot."""

from collections.abc import Mapping, Sequence

import numpy as np

from gapless.arrays import Array
from gapless.twin import quantities

MOST_SIZES = 3  # of drives whose numbers are told apart in a sentence; the table has all of them
SAME = 0.1  # relative: numbers that are one number


def sentence(cause: str, joints: Sequence[str], values: Mapping[str, tuple[float, float, str]]) -> str:
    """What to do about a cause. values: name to found, nominal and unit, of what is beyond its tolerance."""
    where = f" of {', '.join(joints)}" if joints else ""
    if not values:
        return f"identify {cause}{where}"
    value, nominal = (np.array([v[i] for v in values.values()], float) for i in (0, 1))
    unit = next(iter(values.values()))[2]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = value / nominal
    ratio = f"{_range(ratios, 2)} times" if np.isfinite(ratios).all() else "away from"
    text = quantities.remedy(cause).format(value=_sizes(value, nominal, unit), nominal=_range(nominal), ratio=ratio, name=cause)
    return f"{cause}{where}: {text}"


def _sizes(value: Array, nominal: Array, unit: str) -> str:
    """What numbers were found, apart for each number that the model has: drives of two sizes have no value in common."""
    sizes = np.unique(nominal)
    if len(sizes) == 1 or not nominal.all() or len(sizes) > MOST_SIZES:
        return f"{_range(value)} {unit}".strip()
    each = [f"{_range(value[nominal == n])} {unit} where it is {_number(float(n))}" for n in sizes]
    return f"{', '.join(each[:-1])} and {each[-1]}"


def _range(values: Array, digits: int = 3) -> str:
    """Numbers in a word: one where they are much the same, else their ends."""
    low, high, middle = float(values.min()), float(values.max()), float(np.median(values))
    same = high - low <= SAME * abs(middle)
    return _number(middle, digits) if same else f"{_number(low, digits)} to {_number(high, digits)}"


def _number(value: float, digits: int = 3) -> str:
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.{digits}g}"


def separating(cause: str, group: Sequence[str]) -> list[str]:
    """What would tell a cause from those that the log cannot tell it from."""
    return [f"to tell {cause} from {other}: {quantities.separated(cause, other)}" for other in group]
