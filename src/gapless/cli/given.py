"""What `replay` and `fit` are given alike: logs, and the gains of drives that a model does not know."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gapless.logs import Log
    from gapless.twin.mechanisms import Gains, Motor


def log_paths(given: tuple[Path, ...]) -> list[Path]:
    """Every log that was named, or is in a folder that was; at least one."""
    from gapless.errors import BadInput
    from gapless.logs import find

    if not given:
        raise BadInput("name at least one log")
    paths = [path for each in given for path in find(each)]
    if not paths:
        raise BadInput(f"there is no log in {', '.join(map(str, given))}")
    return paths


NO_LOAD_SPEED = 10.0  # rad/s: of a hobby servo, to start from where only the supply voltage is known


def drive(kp: float | None, kd: float | None, log: Log, stall: float) -> list[Gains | Motor]:
    """Gains as below, and a DC motor where the log says that the firmware's gain sets a share of the supply voltage.

    stall: the torque to start from [Nm], the model's limit.
    """
    from gapless.twin.mechanisms import DC, Gains, Motor

    voltage, gain = log.meta.get("vin"), log.meta.get("kp")
    if "duty_per_P" not in log.meta or not isinstance(voltage, int | float) or not isinstance(gain, int | float):
        return list(gains(kp, kd, log))
    kt = float(voltage) / NO_LOAD_SPEED
    motor = Motor(dc=DC(kt, kt * float(voltage) / stall, float(voltage), voltage_control=True))
    return [Gains(kp={"*": float(gain)}, kd={"*": 0.0}), motor]


def gains(kp: float | None, kd: float | None, log: Log) -> list[Gains]:
    """The Gains mechanism for gains from the command line, else for the constants that a log states; none if neither does."""
    import math

    from gapless.errors import BadInput
    from gapless.twin.mechanisms import Gains

    stated = []
    for name, value in (("kp", kp), ("kd", kd)):
        logged = log.meta.get(name)
        stated.append(value if value is not None else float(logged) if isinstance(logged, int | float) else None)
    kp, kd = stated
    if kp is not None and not 0 < kp < math.inf:  # a drive without damping is one, a drive without stiffness is not
        raise BadInput(f"the gain kp must be a positive number of Nm/rad, not {kp:g}")
    if kd is not None and not 0 <= kd < math.inf:
        raise BadInput(f"the gain kd must be at least 0 Nms/rad, not {kd:g}")
    if kp is None and kd is None:
        return []
    return [Gains(kp={} if kp is None else {"*": kp}, kd={} if kd is None else {"*": kd})]
