"""What to do next: one sentence a cause, from its own figures; what would tell apart what a log cannot."""

from collections.abc import Mapping, Sequence

import numpy as np

from gapless.twin import quantities


def sentence(cause: str, joints: Sequence[str], values: Mapping[str, tuple[float, float, str]]) -> str:
    """What to do about a cause. values: name to found, nominal and unit, of what is beyond its tolerance."""
    where = f" of {', '.join(joints)}" if joints else ""
    if not values:
        return f"identify {cause}{where}"
    value, nominal = (np.array([v[i] for v in values.values()], float) for i in (0, 1))
    unit = next(iter(values.values()))[2]
    middle = float(np.median(value))
    spread = f" (from {value.min():.3g} to {value.max():.3g})" if len(value) > 1 and np.ptp(value) > 0.2 * abs(middle) else ""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = value / nominal
    ratio = f"{float(np.median(ratios)):.2g} times" if np.isfinite(ratios).all() else "away from"
    text = quantities.remedy(cause).format(
        value=f"{middle:.3g} {unit}".strip() + spread, nominal=f"{float(np.median(nominal)):.3g}", ratio=ratio, name=cause
    )
    return f"{cause}{where}: {text}"


def separating(cause: str, group: Sequence[str]) -> list[str]:
    """What would tell a cause from those that the log cannot tell it from."""
    return [f"to tell {cause} from {other}: {quantities.separated(cause, other)}" for other in group]
