"""The stand-in: a simulated robot with secrets, for trying the whole loop before hardware and for honest tests.

robot = "quadruped"              # a TOML file; everything but the robot can be left out
seed = 3
in_air = true                    # the base is held
tolerance = 1.0                  # what is not named is drawn within this many tolerances; 0: exactly as modelled
motion_capture = false           # true: the exact base_pos and base_vel of a free base are read too, world frame
control_dt = 0.02                # time between commands; as the model says unless given
floating_base = false            # true: the base moves freely although the file has no free joint
joints = []                      # patterns of the joints that move; all unless given
packages = []                    # where package:// names of a URDF are looked for first
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

import dataclasses
import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gapless import checks
from gapless.arrays import Array
from gapless.checks import Checked, checked
from gapless.errors import BadInput, PhysicsError, unknown
from gapless.files import reason, text
from gapless.report import few
from gapless.robots import BUILT_IN, Command, Reading, imu_of, load_robot
from gapless.twin import MECHANISMS, Point, Space, Stated, Twin, mechanism_from, within_tolerance
from gapless.worlds.sense import columns_of
from gapless.worlds.worlds import Worlds

MAX_FILE = 2**20  # bytes
REDRAWS = 20
ON_FEET = ("contact.", "inertia.payload")  # what a robot shows only while it stands: its floor, and what its base carries
SHORTEST = 1e-5  # s: a time step below takes a minute for a second of robot time


@dataclass(frozen=True)
class Spec(Checked):
    """What a stand-in file says."""

    robot: str = checked(checks.text)
    seed: int = checked(checks.whole, 0, low=0, high=2**63)
    in_air: bool = checked(checks.flag, False)
    tolerance: float = checked(checks.number, 1.0, low=0.0, high=1000.0)
    timestep: float | None = checked(checks.number, None, low=SHORTEST, high=1.0)
    change: Mapping[str, float | str] = checked(checks.mapping, factory=dict)
    add: Mapping[str, Mapping[str, Any]] = checked(checks.mapping, factory=dict)
    sensors: Mapping[str, float] = checked(checks.mapping, factory=dict)
    motion_capture: bool = checked(checks.flag, False)
    control_dt: float | None = checked(checks.number, None, low=SHORTEST, high=10.0)
    floating_base: bool = checked(checks.flag, False)
    joints: tuple[str, ...] = checked(checks.texts, ())
    packages: tuple[str, ...] = checked(checks.texts, ())


def load(path: str | os.PathLike[str], stated: Stated | None = None) -> Spec:
    """Read a stand-in file; every fault is one sentence that names the file and the key.

    stated: what a user says besides, which comes first.
    """
    file = Path(path)
    try:
        spec: Spec = checks.part_of(tomllib.loads(text(file, MAX_FILE)), "a stand-in", Spec)
        beside = file.parent / spec.robot
        if spec.robot not in BUILT_IN and beside.is_file():
            spec = dataclasses.replace(spec, robot=str(beside))
        spec = _with_stated(spec, stated) if stated else spec
        StandIn(spec)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{file}: not valid TOML ({error})") from None
    except BadInput as error:
        raise BadInput(str(error) if str(error).startswith(str(file)) else f"{file}: {error}") from None
    except (ValueError, TypeError, ArithmeticError, RuntimeError) as error:
        raise BadInput(f"{file}: no robot can be built as it says ({reason(error)})") from None
    return spec


def _with_stated(spec: Spec, stated: Stated) -> Spec:
    """A stand-in with what a user says besides its file, which comes first."""
    gains = {key: dict(given) for key, given in (("kp", stated.kp), ("kd", stated.kd)) if given}
    add = {**spec.add, "gains": {**spec.add.get("gains", {}), **gains}} if gains else spec.add
    return dataclasses.replace(
        spec,
        add=add,
        change={**spec.change, **stated.values},
        control_dt=stated.control_dt or spec.control_dt,
        floating_base=stated.floating_base or spec.floating_base,
        joints=stated.joints or spec.joints,
        packages=stated.packages or spec.packages,
    )


class StandIn:
    """A robot that follows the `Robot` protocol, counts what is asked of it, and keeps its parameters to itself.

    Time passes when a command is written: one period each.
    """

    def __init__(self, spec: Spec):
        twin, values, standing = hidden(spec)
        floating = imu_of(twin.model) is not None
        signals = ("q", "dq", "tau", "quat", "gyro") if floating else ("q", "dq", "tau")
        if spec.motion_capture and not floating:
            raise BadInput(
                f"`motion_capture` needs a free base, and that of {twin.name} is {'held' if spec.in_air else 'fixed'}"
            )
        self._spec, self._twin, self._values, self._standing = spec, twin, values, standing
        self._worlds = Worlds(
            twin, 1, Point(twin.space, values), np.random.default_rng([spec.seed, 1]), signals=signals, threads=1
        )
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
    def signal(self) -> tuple[str, ...]:
        """What each of its drives takes: "q" [rad], "dq" [rad/s] or "tau" [N m]."""
        return tuple(d.signal for d in self._twin.drives)

    def read(self) -> Reading:
        reading = {"time": np.float64(self._ticks * self.period)} | {s: v[0].copy() for s, v in self._worlds.readings.items()}
        return reading | self._captured() if self._spec.motion_capture else reading

    def _captured(self) -> dict[str, Array]:
        """Position and velocity of the base, exact, at the instant that the IMU's readings show."""
        age, places = np.repeat(self._worlds.age[:, :1], 3, axis=1), columns_of(self._twin.model)
        return {signal: self._worlds.sense.past(*places[signal], age)[0] for signal in ("base_pos", "base_vel")}

    def write(self, command: Command) -> None:
        if self._stopped:
            raise BadInput("the stand-in was stopped: reset it before commanding it again")
        control = self._worlds.home_command.copy()
        for i, d in enumerate(self._twin.drives):
            given = np.asarray(command.get(d.signal, np.nan), float)
            if given.shape != (len(self.joints),) or not np.isfinite(given[i]):
                raise BadInput(f"a command needs {d.signal!r} with {len(self.joints)} numbers, that of {d.name} finite")
            control[d.control] = given[i]
        self._worlds.step(control[None])
        self._ticks += 1
        self.seconds += self.period
        if self._worlds.failures:
            self._stopped = True
            why = self._worlds.failures[0].reason
            raise PhysicsError(
                f"the stand-in's physics broke after {self.seconds:.2f} s ({why}): change it less or lower its timestep"
            )

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
        hidden = {n for pattern in self._spec.change for n in self._standing.match(pattern)}
        return {n: v for n, v in self.reveal().items() if n in hidden}


def hidden(spec: Spec) -> tuple[Twin, Array, Space]:
    """The twin that a stand-in really is, its parameters (parameters,), and the space of the same robot on its feet."""
    twin = build(spec)
    must_have_drives(twin)
    standing = build(dataclasses.replace(spec, in_air=False)).space if spec.in_air else twin.space
    secrets = dict(zip(standing.names, _parameters(spec, standing).tolist(), strict=True))
    return twin, np.array([secrets[name] for name in twin.space.names]), standing  # lifted or not, it is the same robot


def _parameters(spec: Spec, space: Space) -> Array:
    """What the parameters of a stand-in that is not lifted are: as its file says, else drawn within tolerance.

    Shape: (parameters,).
    """
    drawn = within_tolerance(space).sample(1, np.random.default_rng([spec.seed, 0x57A4D]))[0]
    values = space.clip(space.nominal + spec.tolerance * (drawn - space.nominal))
    for pattern, change in spec.change.items():
        for name in space.match(pattern):
            i = space.names.index(name)
            values[i] = _changed(name, float(space.nominal[i]), change)
    for quantity, value in spec.sensors.items():
        sensed = [n for n in space.names if n in (f"sensors.{quantity}{axis}" for axis in ("", "_x", "_y", "_z"))]
        if not sensed:
            raise unknown("sensor quantity", quantity, [n[8:] for n in space.names if n.startswith("sensors.")])
        for name in sensed:
            values[space.names.index(name)] = checks.number(value, f"sensors.{quantity}")
    space.check(values)
    return values


def build(spec: Spec) -> Twin:
    """The twin that a stand-in really is, with its added mechanisms and its own time step."""
    kinds, add = {name.lower(): kind for name, kind in MECHANISMS.items()}, []
    for name, settings in spec.add.items():
        if name not in kinds:
            raise unknown("mechanism", name, kinds)
        add.append(mechanism_from(f"add.{name}", kinds[name], settings))
    robot = load_robot(spec.robot, spec.floating_base, spec.packages, spec.joints)
    step = robot.model.opt.timestep / 2 if spec.timestep is None else spec.timestep
    return Twin.load(robot, add=add, control_dt=spec.control_dt, timestep=step, in_air=spec.in_air)


def common_signal(twin: Twin) -> str:
    """What all drives of a twin take: "q", "dq" or "tau"; a robot of mixed drives is refused."""
    must_have_drives(twin)
    kinds: dict[str, list[str]] = {}
    for d in twin.drives:
        kinds.setdefault(d.signal, []).append(d.name)
    if len(kinds) > 1:
        parts = "; ".join(f"{signal}: {few(names)}" for signal, names in kinds.items())
        raise BadInput(f"{twin.name} has drives of different kinds ({parts}): choose those of one kind with --joints")
    return next(iter(kinds))


def must_have_drives(twin: Twin) -> None:
    """Refuse a robot that nothing can be commanded of, and say what its actuators do instead."""
    if twin.drives:
        return
    ignored = [note for note in twin.warnings if "it is ignored" in note]
    why = f" ({ignored[0]})" if ignored else ""
    raise BadInput(
        f"{twin.name} has no driven joints{why}, and Gapless compares joints: give the model actuators on its joints, or "
        "state gains of its joints (--kp, --kd)"
    )


def draw(robot: str, difficulty: str, seed: int, in_air: bool = False) -> Spec:
    """A stand-in with random secrets: easy has one change, normal three, hard five and a mechanism the default twin lacks.

    A seed gives the same secrets in the air and on the floor, so all these changes are ones that show in both. Some robots with
    a free base also carry something or stand on another floor; a lifted one keeps that change, but does not show it.
    """
    changes = {"easy": 1, "normal": 3, "hard": 5}
    if difficulty not in changes:
        raise unknown("difficulty", difficulty, changes)
    Spec(robot, seed)  # refuses a seed that is none
    rng = np.random.default_rng([seed, 0xD1FF])
    twin = Twin.load(robot)
    must_have_drives(twin)
    for _ in range(REDRAWS):
        spec = Spec(robot, seed, **_secrets(twin, changes[difficulty], difficulty == "hard", rng))
        try:
            StandIn(spec)
        except BadInput:
            continue
        spec = dataclasses.replace(spec, in_air=in_air)
        build(spec)  # refuses to lift a robot whose base is fixed
        return spec
    raise BadInput(f"{robot}: none of {REDRAWS} draws gave a robot that can be built")


def _secrets(twin: Twin, changes: int, mechanism: bool, rng: np.random.Generator) -> dict[str, Any]:
    """Random changes of parameters, a mechanism if wanted, and sensors, as `Spec` takes them."""
    kinds = sorted(
        {p.quantity for p in twin.space.parameters if not p.name.startswith(("sensors.", "contact.s", "offset.imu"))}
    )
    hidden = [k for k in kinds if k.startswith(ON_FEET)] if imu_of(twin.model) is not None else []
    shown = [k for k in kinds if k not in hidden]
    change = dict(_change(twin, quantity, rng) for quantity in rng.choice(shown, size=changes, replace=False))
    add: dict[str, dict[str, Any]] = {}
    if mechanism:
        joint = str(rng.choice(twin.joints))
        add = {"backlash": {"joints": joint, "width": round(float(rng.uniform(0.01, 0.04)), 4)}}
    if rng.random() < changes * len(hidden) / len(kinds):  # as often as if they had been among the others
        change |= dict([_change(twin, rng.choice(hidden), rng)])
    sensors = {"noise_q": 0.0005, "noise_dq": 0.02, "quantum_q": 0.0004}
    return {"change": change, "add": add, "sensors": sensors}


def _change(twin: Twin, quantity: str, rng: np.random.Generator) -> tuple[str, str]:
    """A random change of a quantity of all joints or links by one to two sizes of a real mismatch, as a file states it."""
    pattern = str(quantity if quantity in twin.space.names else f"{quantity}/*")
    group = [p for p in twin.space.parameters if p.name in twin.space.match(pattern)]
    step = rng.uniform(1.0, 2.0) * rng.choice([-1, 1]) * group[0].scale
    if group[0].log:
        return pattern, f"x{np.exp(step):.4g}"
    up, down = min(p.high - p.nominal for p in group), min(p.nominal - p.low for p in group)
    if down < -step:
        step = -step  # no negative friction
    return pattern, f"{min(step, 0.9 * up):+.4g}"  # every member stays within its bounds


def dump(spec: Spec) -> str:
    """A stand-in as TOML."""
    always = ("robot", "seed", "in_air", "tolerance")
    keys = [
        *always,
        *(
            key
            for key in ("motion_capture", "control_dt", "timestep", "floating_base", "joints", "packages")
            if getattr(spec, key)
        ),
    ]
    lines = [f"{key} = {json.dumps(getattr(spec, key))}" for key in keys]
    for table in ("change", "sensors"):
        lines += ["", f"[{table}]"] + [f"{json.dumps(k)} = {json.dumps(v)}" for k, v in getattr(spec, table).items()]
    lines += ["", "[add]"] + [f"{k} = {_inline(v)}" for k, v in spec.add.items()]
    return "\n".join(lines) + "\n"


def _inline(value: Any) -> str:
    """A value as TOML writes it on one line."""
    if not isinstance(value, Mapping):
        return json.dumps(value)
    return f"{{ {', '.join(f'{json.dumps(k)} = {_inline(v)}' for k, v in value.items())} }}"


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
    return checks.number(change, f"change.{name}")
