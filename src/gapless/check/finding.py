"""Check: one named judgement with its figure, its threshold and how to fix what it found."""

import math
from dataclasses import dataclass

PASS, WARN, FAIL, SKIP = "pass", "warn", "fail", "skip"
NETWORK = "observation to action"
SIGNALS = "signals to observation"
DRIVES = "action to torque"
PHYSICS = "torque to next state"
BOUNDARIES = (NETWORK, SIGNALS, DRIVES, PHYSICS)
"""In the order in which they are judged: behind the first that fails nothing is."""


@dataclass(frozen=True)
class Check:
    """What one check found. `fail` is a defect; `warn` a user must know; `skip` could not be judged."""

    name: str
    boundary: str
    status: str
    sentence: str
    figure: float = math.nan
    threshold: float = math.nan
    unit: str = ""
    fix: str = ""


BOUNDARY_OF = {
    "joint order": SIGNALS,
    "history order": SIGNALS,
    "history layout": SIGNALS,
    "quaternion order": SIGNALS,
    "gravity sign": SIGNALS,
    "IMU frame": SIGNALS,
    "last action": SIGNALS,
    "sign": SIGNALS,
    "lagged observation": SIGNALS,
    "command order": SIGNALS,
    "observation scale": SIGNALS,
    "degrees": SIGNALS,
    "period": SIGNALS,
    "action scale": DRIVES,
    "action clip": DRIVES,
    "action filter": DRIVES,
    "gains": DRIVES,
    "gains order": DRIVES,
    "torque limit": DRIVES,
    "default pose": DRIVES,
}
"""Where a defect belongs."""
