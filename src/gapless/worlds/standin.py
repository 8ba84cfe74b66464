"""The stand-in: a simulated robot with secrets, for trying the whole loop before hardware and for honest tests.

robot = "quadruped"              # a TOML file; everything but the robot can be left out
seed = 3
in_air = true                    # the base is held
tolerance = 1.0                  # what is not named is drawn within this many tolerances; 0: exactly as modelled
timestep = 0.0025                # half the twin's unless given, so that finding its numbers is no tautology
[change]
"friction.viscous/*" = "x1.8"    # a factor
"latency.action" = 0.018         # a value
"inertia.payload" = "+1.5"       # a difference
[add]                            # mechanisms that the default twin lacks
backlash = { joints = "*_calf", width = 0.02 }
[sensors]
noise_q = 0.001
"""

from __future__ import annotations

import dataclasses
import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gapless import robots
from gapless.errors import BadInput, unknown
from gapless.logs import Log, Provenance
from gapless.robots import Command, Reading, Robot
from gapless.twin import Point, Twin, mechanisms, within_tolerance
from gapless.twin.mechanism import Mechanism, is_position_servo, is_velocity_servo
from gapless.twin.mechanisms.sensors import QUANTITIES
from gapless.twin.space import Array
from gapless.worlds.sense import imu_of
from gapless.worlds.worlds import Worlds

MAX_FILE = 2**20  # bytes
ADDABLE: dict[str, type[Any]] = {
    "backlash": mechanisms.Backlash,
    "flex": mechanisms.Flex,
    "friction": mechanisms.Friction,
    "motor": mechanisms.Motor,
    "disturbance": mechanisms.Disturbance,
    "gains": mechanisms.Gains,
    "latency": mechanisms.Latency,
    "inertia": mechanisms.Inertia,
}


@dataclass(frozen=True)
class Spec:
    """What a stand-in file says."""

    robot: str
    seed: int = 0
    in_air: bool = False
    tolerance: float = 1.0
    timestep: float | None = None
    change: Mapping[str, float | str] = field(default_factory=dict)
    add: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    sensors: Mapping[str, float] = field(default_factory=dict)


def load(path: str | os.PathLike[str]) -> Spec:
    """Read a stand-in file; every fault is one sentence that names the file and the key."""
    file = Path(path)
    try:
        if file.stat().st_size > MAX_FILE:
            raise BadInput(f"{file}: a stand-in file has at most {MAX_FILE // 2**20} MB")
        data = tomllib.loads(file.read_text())
    except OSError as error:
        raise BadInput(f"{file}: cannot be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{file}: not valid TOML ({error})") from None
    known = {f.name: f for f in dataclasses.fields(Spec)}
    for key in data:
        if key not in known:
            raise BadInput(f"{file}: {unknown('key', key, known)}")
    if not isinstance(data.get("robot"), str):
        raise BadInput(f"{file}: `robot` must name a robot or a model file")
    kinds: dict[str, tuple[type, ...]] = {
        "seed": (int,),
        "in_air": (bool,),
        "tolerance": (int, float),
        "timestep": (int, float),
    }
    kinds |= {"change": (dict,), "add": (dict,), "sensors": (dict,)}
    for key, kind in kinds.items():
        if key in data and (not isinstance(data[key], kind) or (isinstance(data[key], bool) and bool not in kind)):
            raise BadInput(f"{file}: `{key}` must be of type {kind[-1].__name__}, not {data[key]!r}")
    beside = file.parent / data["robot"]
    if data["robot"] not in robots.BUILT_IN and beside.is_file():
        data["robot"] = str(beside)
    try:
        spec = Spec(**data)
        StandIn(spec)
    except BadInput as error:
        raise BadInput(f"{file}: {error}") from None
    return spec


class StandIn:
    """A robot that follows the `Robot` protocol, counts what is asked of it, and keeps its parameters to itself.

    Time passes when a command is written: one period each.
    """

    def __init__(self, spec: Spec):
        twin = build(spec)
        rng = np.random.default_rng([spec.seed, 0x57A4D])
        space = twin.space
        drawn = within_tolerance(space).sample(1, rng)[0]
        values = space.clip(space.nominal + spec.tolerance * (drawn - space.nominal))
        for pattern, change in spec.change.items():
            for name in space.match(pattern):
                i = space.names.index(name)
                values[i] = _changed(name, float(space.nominal[i]), change)
        for quantity, value in spec.sensors.items():
            if quantity not in QUANTITIES:
                raise unknown("sensor quantity", quantity, QUANTITIES)
            for name in space.match(f"sensors.{quantity}*" if quantity == "bias_gyro" else f"sensors.{quantity}"):
                values[space.names.index(name)] = _number(f"sensors.{quantity}", value)
        space.check(values)
        floating = imu_of(twin.model) is not None
        signals = ("q", "dq", "tau", "quat", "gyro") if floating else ("q", "dq", "tau")
        self._spec, self._twin, self._values = spec, twin, values
        self._worlds = Worlds(twin, 1, Point(space, values), np.random.default_rng([spec.seed, 1]), signals=signals, threads=1)
        self._command = self._worlds.home_command[self._controls].copy()
        self._stopped = False
        self._ticks = 0  # periods of this episode
        self.seconds = 0.0
        """Robot time spent on it, over all episodes [s]."""
        self.episodes = 1

    @property
    def period(self) -> float:
        return self._twin.control_dt

    @property
    def joints(self) -> tuple[str, ...]:
        return self._twin.joints

    @property
    def signal(self) -> str:
        """What its drives take: "q" [rad], "dq" [rad/s] or "tau" [Nm]."""
        return drive_signal(self._twin)

    @property
    def _controls(self) -> list[int]:
        return [int(self._twin.model.actuator_ctrladr[d.actuator]) for d in self._twin.drives]

    def read(self) -> Reading:
        return {"time": np.float64(self._ticks * self.period)} | {s: v[0].copy() for s, v in self._worlds.readings.items()}

    def write(self, command: Command) -> None:
        if self._stopped:
            raise BadInput("the stand-in was stopped: reset it before commanding it again")
        given = np.asarray(command.get(self.signal, np.nan), float)
        if given.shape != (len(self.joints),) or not np.isfinite(given).all():
            raise BadInput(f"a command needs {self.signal!r} with {len(self.joints)} finite numbers")
        control = self._worlds.home_command.copy()
        control[self._controls] = given
        self._worlds.step(control[None])
        self._ticks += 1
        self.seconds += self.period
        if self._worlds.failures:
            self._stopped = True
            raise RuntimeError(f"the stand-in broke: {self._worlds.failures[0].reason}")

    def stop(self) -> None:
        self._stopped = True

    def reset(self) -> None:
        """Put it back into its home pose: a new episode."""
        self._worlds.reset(redraw=False)
        self._stopped = False
        self._ticks = 0
        self.episodes += 1

    def reveal(self) -> dict[str, float]:
        """Its parameters by name: for scoring only."""
        return dict(zip(self._twin.space.names, self._values.tolist(), strict=True))

    def named(self) -> dict[str, float]:
        """The parameters that its file changes on purpose: the truth that a search is scored on."""
        space = self._twin.space
        hidden = {n for pattern in self._spec.change for n in space.match(pattern)}
        return {n: v for n, v in self.reveal().items() if n in hidden}


def build(spec: Spec) -> Twin:
    """The twin that a stand-in really is, with its added mechanisms and its own time step."""
    add: list[Mechanism] = []
    for name, settings in spec.add.items():
        if name not in ADDABLE:
            raise unknown("mechanism", name, ADDABLE)
        known = {f.name for f in dataclasses.fields(ADDABLE[name])}
        for key in settings if isinstance(settings, Mapping) else [str(settings)]:
            if key not in known:
                raise BadInput(f"add.{name}: {unknown('setting', key, known)}")
        add.append(_mechanism(name, settings))
    step = robots.load(spec.robot).model.opt.timestep
    return Twin.load(spec.robot, add=add, timestep=spec.timestep or step / 2, in_air=spec.in_air)


def record(
    robot: Robot, commands: Array, signal: str = "q", source: str = "", tick: Callable[[], object] = lambda: None
) -> Log:
    """Run commands (periods, joints) on any robot and log what it was told and what it measured, on its own clock.

    `tick` is called once a period, for a progress bar.
    """
    seen: dict[str, list[np.ndarray]] = {}
    for command in commands:
        reading = robot.read()
        for name, value in reading.items():
            seen.setdefault(name, []).append(np.asarray(value))
        robot.write({signal: command})
        tick()
    reading = robot.read()
    for name, value in reading.items():
        seen.setdefault(name, []).append(np.asarray(value))
    time = np.array(seen.pop("time"))
    told = {f"{signal}_cmd": np.concatenate([commands, commands[-1:]])}
    signals = {k: np.array(v) for k, v in seen.items()} | told
    return Log.from_arrays(robot.joints, time, signals, provenance=Provenance(source=source, format="recorded"))


def drive_signal(twin: Twin) -> str:
    """What all drives of a twin take: "q", "dq" or "tau"; a robot of mixed drives is refused."""
    model = twin.model
    kinds = {
        "q" if is_position_servo(model, d.actuator) else "dq" if is_velocity_servo(model, d.actuator) else "tau"
        for d in twin.drives
    }
    if len(kinds) != 1:
        raise BadInput(
            f"{twin.name} has {'drives of different kinds' if kinds else 'no drives'}, which cannot be commanded as one"
        )
    return kinds.pop()


def draw(robot: str, difficulty: str, seed: int, in_air: bool = False) -> Spec:
    """A stand-in with random secrets: easy has one change, normal three, hard five and a mechanism the default twin lacks."""
    changes = {"easy": 1, "normal": 3, "hard": 5}
    if difficulty not in changes:
        raise unknown("difficulty", difficulty, changes)
    rng = np.random.default_rng([seed, 0xD1FF])
    twin = Twin.load(robot, in_air=in_air)
    kinds = sorted(
        {p.quantity for p in twin.space.parameters if not p.name.startswith(("sensors.", "contact.s", "offset.imu"))}
    )
    if in_air:
        kinds = [k for k in kinds if not k.startswith("contact.")]
    change: dict[str, float | str] = {}
    for quantity in rng.choice(kinds, size=changes[difficulty], replace=False):
        pattern = quantity if quantity in twin.space.names else f"{quantity}/*"
        group = [p for p in twin.space.parameters if p.name in twin.space.match(pattern)]
        p = group[0]
        size = rng.uniform(1.0, 2.0) * rng.choice([-1, 1])
        if not p.log and any(not o.low <= o.nominal + size * p.scale <= o.high for o in group):
            size = abs(size)  # no negative friction
        change[str(pattern)] = f"x{np.exp(size * p.scale):.4g}" if p.log else f"{size * p.scale:+.4g}"
    add: dict[str, dict[str, Any]] = {}
    if difficulty == "hard":
        joint = str(rng.choice(twin.joints))
        add = {"backlash": {"joints": joint, "width": round(float(rng.uniform(0.01, 0.04)), 4)}}
    sensors = {"noise_q": 0.0005, "noise_dq": 0.02, "quantum_q": 0.0004}
    return Spec(robot, seed, in_air, 1.0, None, change, add, sensors)


def dump(spec: Spec) -> str:
    """A stand-in as TOML."""
    lines = [
        f'robot = "{spec.robot}"',
        f"seed = {spec.seed}",
        f"in_air = {str(spec.in_air).lower()}",
        f"tolerance = {spec.tolerance}",
    ]
    if spec.timestep:
        lines.append(f"timestep = {spec.timestep}")
    for table in ("change", "sensors"):
        lines += ["", f"[{table}]"] + [f'"{k}" = {_toml(v)}' for k, v in getattr(spec, table).items()]
    lines += ["", "[add]"] + [
        f"{k} = {{ {', '.join(f'{a} = {_toml(b)}' for a, b in v.items())} }}" for k, v in spec.add.items()
    ]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else repr(value)


def _mechanism(name: str, settings: Mapping[str, Any]) -> Mechanism:
    settings = dict(settings)
    if name == "motor" and isinstance(settings.get("dc"), Mapping):
        try:
            settings["dc"] = mechanisms.DC(**settings["dc"])
        except TypeError as error:
            raise BadInput(f"add.motor.dc: {error}") from None
    try:
        made: Mechanism = ADDABLE[name](**settings)
    except TypeError as error:
        raise BadInput(f"add.{name}: {error}") from None
    return made


def _changed(name: str, nominal: float, change: float | str) -> float:
    """A value (0.018), a factor ("x1.8") or a difference ("+1.5")."""
    if isinstance(change, str):
        try:
            if change.startswith("x"):
                return nominal * float(change[1:])
            if change.startswith(("+", "-")):
                return nominal + float(change)
        except ValueError:
            pass
        raise BadInput(f'change.{name} = {change!r} is neither a number, a factor ("x1.8") nor a difference ("+1.5")')
    return _number(f"change.{name}", change)


def _number(key: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadInput(f"{key} must be a number, not {value!r}")
    return float(value)
