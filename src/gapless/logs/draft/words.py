"""Words in the names of columns: which quantity, command or measurement, of which joint."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from gapless.logs.log import UNITS
from gapless.logs.mapping import FACTORS

EDGE = re.compile(r"[\s_.\[(]")
"""Where the unit may begin that a name ends with."""
TOKEN = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_]+|\d+")
QUANTITIES = {
    "q": {"q", "pos", "position", "positions", "angle", "angles", "theta", "qpos", "winkel", "encoder"},
    "dq": {"dq", "qd", "vel", "velocity", "velocities", "speed", "speeds", "omega", "qvel", "dtheta", "qdot"},
    "tau": {"tau", "torque", "torques", "effort", "efforts", "trq", "moment"},
    "kp": {"kp", "stiffness"},
    "kd": {"kd", "damping"},
    "current": {"current", "currents", "amps", "iq"},
    "temperature": {"temp", "temperature", "temperatures"},
    "voltage": {"voltage", "volt", "vbus"},
    "quat": {"quat", "quaternion", "orientation"},
    "gyro": {"gyro", "gyroscope", "angvel"},
    "acc": {"acc", "accel", "accelerometer", "acceleration"},
}
COMMAND = {"cmd", "cmds", "command", "commands", "commanded", "des", "desired", "target", "targets", "ref", "reference", "goal"}
COMMAND |= {"set", "setpoint", "sp", "soll", "action", "actions", "told", "wanted"}
MEASURED = {"actual", "act", "meas", "measured", "fb", "feedback", "state", "states", "ist", "est", "real", "obs", "low", "imu"}
ACTUAL = {"actual", "act", "meas", "measured", "ist"}
"""Those that mean a position where no quantity is named, as a command does."""
SAYS_NOTHING = {"raw", "store", "stored", "value", "val", "data"}
TIME = {"t", "time", "times", "timestamp", "stamp", "zeit", "clock", "tick", "secs", "seconds", "elapsed"}
TIME_UNITS = {"s": "s", "sec": "s", "secs": "s", "seconds": "s", "ms": "ms", "msec": "ms", "millis": "ms", "us": "us"}
TIME_UNITS |= {"usec": "us", "micros": "us", "µs": "us", "ns": "ns", "nsec": "ns", "nanos": "ns"}
SPELLED = {unit.lower().replace(" ", ""): unit for known in FACTORS.values() for unit in known}
SPELLED |= {"degree": "deg", "degrees": "deg", "radian": "rad", "radians": "rad", "c": "degC", "dps": "deg/s"}
SPELLED |= {f"{unit}{per}": f"{unit}/s" for unit in ("deg", "rad") for per in ("ps", "/sec", "/per/s", "/per/sec")}
SPELLED |= {"m/s2": "m/s^2", "m/s²": "m/s^2"}
"""Units as mappings write them, by how others write them."""
PARTS = {"joint", "motor", "dof", "j", "m", "servo", "axis", "actuator"}
"""What a number belongs to."""
AXES = ("w", "x", "y", "z")


SAID = {word for known in QUANTITIES.values() for word in known}
"""Words for quantities."""


def tokens(name: str) -> list[tuple[str, int, int]]:
    """The words and numbers of a name in lower case, each with its first and last place; qref and jointpos are two words."""
    out = []
    for found in TOKEN.finditer(name):
        word, start = found.group().lower(), found.start()
        cut = _cut(word)
        out += [(word[:cut], start, start + cut)] if cut else []
        out.append((word[cut:], start + cut, found.end()))
    return out


def _cut(word: str) -> int:
    """Where the second of two words begins that are written as one, a quantity and what it is of; 0 for one word."""
    if word in SAID | COMMAND | MEASURED | PARTS | TIME:
        return 0
    kinds = COMMAND | MEASURED | {part for part in PARTS if len(part) > 1}
    pairs = ((i, word[:i], word[i:]) for i in range(1, len(word)))
    return next((i for i, a, b in pairs if (a in SAID and b in kinds) or (a in kinds and b in SAID)), 0)


def unit_of(text: str, signal: str) -> str:
    """The unit of a signal that a text is, as mappings write it; empty where it is none."""
    plain = re.sub(r"[\s·*()\[\]]", "", text.lower()).strip("_.").replace("_", "/").replace("°", "deg")
    unit = SPELLED.get(plain, "")
    unit = f"{unit}/s" if UNITS[signal] == "rad/s" and unit in ("deg", "rad", "rev", "m") else unit
    return unit if unit in FACTORS[UNITS[signal]] else ""


@dataclass(frozen=True)
class Reading:
    """What the name of a column says."""

    signal: str
    joint: str = ""
    """As the file writes it; an axis for signals of the base; empty where it names none."""
    pattern: str = ""
    """The name with {joint} in the place of the joint."""
    unit: str = ""


def read_name(name: str, commands: bool = False) -> Reading | None:
    """What a column holds by its name; None where that says nothing.

    commands: whether the whole file is of commands.
    """
    words = tokens(name)
    kind = next((k for k, known in QUANTITIES.items() for word, _, _ in words if word in known), "")
    command = commands or any(word in COMMAND for word, _, _ in words)
    if not kind and not any(word in COMMAND | ACTUAL for word, _, _ in words):
        return None
    kind = kind or "q"
    signal = f"{kind}_cmd" if command and kind in ("q", "dq", "tau") else kind
    ends = (i for i in (m.start() for m in EDGE.finditer(name)) if unit_of(name[i:], signal))
    end = next(ends, len(name))  # from here on the name is a unit, as in "knee_vel [deg/s]"
    units = [unit_of(name[end:], signal), *(unit_of(word, signal) for word, _, _ in words if len(word) > 1)]
    unit = next(filter(None, units), "")
    spoken = QUANTITIES.get(kind, set()) | COMMAND | MEASURED | SAYS_NOTHING
    left = [i for i, (word, _, stop) in enumerate(words) if stop <= end and word not in spoken and not unit_of(word, signal)]
    if kind in ("quat", "gyro", "acc"):
        return Reading(signal, next((words[i][0] for i in left if words[i][0] in AXES), ""), unit=unit)
    named = [i for i in left if words[i][0] not in PARTS] or left
    if not named:
        return Reading(signal, unit=unit)
    first, last = min(named), max(named)
    if all(words[i][0].isdigit() for i in named) and first - 1 in left and words[first - 1][0] in PARTS:
        first -= 1  # joint1 and motor_3 are names, 1 and 3 are none
    if between := [i for i in range(first, last) if i not in left]:  # of a name in two parts there is no pattern
        parts = [name[words[i][1] : words[i][2]] for i in range(first, last + 1) if i not in between]
        return Reading(signal, "_".join(parts), unit=unit)
    start, end = words[first][1], words[last][2]
    return Reading(signal, name[start:end], name[:start] + "{joint}" + name[end:], unit)


def time_column(names: Sequence[str]) -> list[str]:
    """Columns that are times by their name, the likeliest first."""
    said = [n for n in names if any(word in TIME for word, _, _ in tokens(n))]
    return sorted(said, key=lambda n: (len(tokens(n)), "tick" in n.lower(), names.index(n)))


def time_unit_of(name: str, unit: str = "") -> str:
    """The unit of time that a name or a row of units states; empty where none does."""
    words = [word for text in (unit, name) for word, _, _ in tokens(text)]
    return next((TIME_UNITS[word] for word in words if word in TIME_UNITS), "")
