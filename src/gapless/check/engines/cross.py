"""Cross-check: the same policy, with the same runtime, on the same robot in several engines, beside their parity.

result = cross_check(load_policy("runs/walk"), Twin.load("quadruped"), ("mujoco", "drake"))
print(result)
"""

import math
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from numpy.typing import ArrayLike
from rich.console import RenderableType

from gapless.arrays import Array
from gapless.check.engines.engine_world import Base, in_body
from gapless.check.engines.load import ENGINES, EngineRobot, build, check_engines, installed
from gapless.check.engines.parity import Agreement, home_command, home_state, parity
from gapless.delay import rows_in_force
from gapless.plain import NOT_SAVED
from gapless.policy import Pilot, Policy
from gapless.report import COLOURS, Cell, Film, Plot, Result, Section, Table, Verdict, few, in_terminal, line, notes
from gapless.robots import IMU, imu_of
from gapless.rotations import multiply, rotate_back, tipped, up_of
from gapless.twin import Twin
from gapless.worlds import film

SECONDS = 6.0
SETTLE = 1.0
"""Velocities count from here on [s]."""
SHARE = 0.6
"""Of a command's range that is asked for, one column at a time; a command whose range is not known is asked for `USUAL`."""
USUAL = 0.5
LOW = 0.5
"""A base below this share of its height at home has fallen."""
CLOSE = 1.0
"""Joints are compared over the first second: later even a rounding error grows to the size of the motion [s]."""


@dataclass(frozen=True)
class Trial:
    """One run of the policy in one engine."""

    engine: str
    command: tuple[float, ...]
    survived: float
    """Until the fall, or the whole run [s]."""
    fell: bool
    velocity: tuple[float, float, float]
    """Mean forward, sideways and turn rate [m/s, m/s, rad/s]; NaN for a fixed base."""
    error: float
    """Mean length of the difference from the command over the ground [m/s]; NaN where commands are none of velocity."""
    torque: float
    """Root mean square as a share of the limit of the joint that works hardest."""
    apart: float
    """Root mean square difference of joint positions from MuJoCo's in the first second [rad]."""


@dataclass(frozen=True, repr=False)
class CrossCheck(Result):
    """How a policy did in several engines."""

    NAME = "engines"

    robot: str
    engines: tuple[str, ...]
    timestep: dict[str, float]
    """Of physics, by engine [s]."""
    trials: tuple[Trial, ...]
    agreements: tuple[Agreement, ...]
    wrong: tuple[str, ...]
    """What an engine has otherwise than the model: its runs say nothing about the policy."""
    lost: dict[str, tuple[str, ...]]
    """What an engine cannot express, by engine."""
    heights: dict[str, tuple[float, ...]]
    """Of the base in the first run, by engine and control period [m]."""
    columns: tuple[str, ...]
    """Of the command."""
    seconds: float
    clip: Film | None = field(default=None, metadata=NOT_SAVED)
    """The first run in each engine."""

    @property
    def passed(self) -> bool:
        """Whether the robot was the same in all engines and fell in none."""
        return not self.wrong and not any(t.fell for t in self.trials)

    def walks(self, engine: str) -> bool:
        """Whether the policy never fell in an engine."""
        return not any(t.fell for t in self.trials if t.engine == engine)

    def verdict(self) -> Verdict:
        if self.wrong:
            return Verdict(f"The robot is not the same everywhere: {self.wrong[0]}.", good=False)
        fell = [e for e in self.engines if not self.walks(e)]
        if fell:
            off = [a for a in self.agreements if a.engine in fell and not a.good]
            why = (
                f" There it differs from MuJoCo in: {', '.join(dict.fromkeys(a.test for a in off))}."
                if off
                else (
                    " Each of them agrees with MuJoCo in all parity tests, so contact while moving is what differs, "
                    "and the policy has little margin for that."
                )
            )
            return Verdict(f"The policy falls in {', '.join(fell)}.{why}", good=False)
        return Verdict(f"The policy does not fall in {', '.join(self.engines)}, in runs of {self.seconds:g} s.", good=True)

    def sections(self) -> Iterator[Section]:
        yield self._runs()
        if self.clip:
            text = "The first command, in MuJoCo; the robot of every other engine is drawn over it as a ghost."
            yield Section("Side by side", text, film=self.clip)
        rows: list[list[str | Cell]] = [
            [a.engine, a.test, a.what, Cell(_figure(a.figure, a.unit), 0.0 if a.good else 0.8), _figure(a.tolerance, a.unit)]
            for a in self.agreements
        ]
        text = "The same robot without a policy. The drives' law is computed once, in one place, for all engines but MuJoCo."
        yield Section("Parity", text, Table(("engine", "test", "what", "apart", "tolerance"), rows, words=3))
        said = [f"{e}: {sentence}." for e, lost in self.lost.items() for sentence in lost] + [f"{w}." for w in self.wrong]
        if said:
            yield Section("What an engine does not have", said)
        lines = [
            line(np.arange(len(z)) * self.seconds / max(len(z), 1), z, COLOURS[i % len(COLOURS)], name=e)
            for i, (e, z) in enumerate(self.heights.items())
            if z
        ]
        if lines:
            axes = {"xaxis": {"title": "time [s]"}, "yaxis": {"title": "height of the base [m]"}}
            legend = [(e, COLOURS[i % len(COLOURS)]) for i, e in enumerate(self.heights)]
            yield Section("The first run", legend=legend, plots=[Plot("height of the base", lines, axes, 260)], wide=True)

    def glance(self) -> Iterable[RenderableType]:
        off = [f"{a.engine}: {a.test}, {a.what}: {_figure(a.figure, a.unit)}" for a in self.agreements if not a.good]
        yield in_terminal(self._runs())
        yield from notes("not the same:", self.wrong, "red")
        yield from notes("out of tolerance:", off)
        yield from notes("not expressed:", [f"{e}: {s}" for e, lost in self.lost.items() for s in lost], "dim")

    def _runs(self) -> Section:
        head = ("engine", "command", "survived", "forward, sideways, turn", "velocity error", "torque", "apart from MuJoCo")
        rows: list[list[str | Cell]] = []
        for t in self.trials:
            asked = " ".join(f"{c} {v:+.2g}" for c, v in zip(self.columns, t.command, strict=True) if v) or "none"
            moved = " ".join("–" if math.isnan(v) else f"{v:+.2f}" for v in t.velocity)
            lived = Cell(f"{t.survived:.1f} s", 0.8 if t.fell else 0.0)
            rows.append(
                [t.engine, asked, lived, moved, _figure(t.error, "m/s"), _figure(t.torque, ""), _figure(t.apart, "rad")]
            )
        return Section("The policy in each engine", table=Table(head, rows, words=2))


def cross_check(
    policy: Policy,
    twin: Twin,
    engines: Sequence[str] | None = None,
    values: ArrayLike | None = None,
    commands: Sequence[Sequence[float]] | None = None,
    seconds: float = SECONDS,
    with_parity: bool = True,
    tick: Callable[[str], None] = lambda what: None,
) -> CrossCheck:
    """Run a policy on the same robot in several engines.

    Args:
        policy: with its contract.
        twin: the robot.
        engines: by name; all that are installed unless given. MuJoCo is always among them, as the reference.
        values: the robot's parameters, over `twin.space`; nominal unless given. Delays act to a whole step of physics.
        commands: what is asked for in turn; each column alone, and nothing, unless given.
        seconds: of each run.
        with_parity: whether the robot is also compared without the policy, which takes a few seconds an engine.
        tick: is told what is being done.
    """
    names = tuple(dict.fromkeys(["mujoco", *(engines or [e for e in ENGINES if installed(e)])]))
    check_engines(names)
    values = twin.space.nominal if values is None else np.asarray(values, float)
    model, late = twin.compile(values), _delay(twin, values)
    asked = default_commands(policy) if commands is None else [tuple(map(float, c)) for c in commands]
    trials: list[Trial] = []
    agreements: list[Agreement] = []
    wrong: list[str] = []
    lost: dict[str, tuple[str, ...]] = {}
    first: dict[str, _Seen] = {}
    steps: dict[str, float] = {}
    reference: dict[tuple[float, ...], Array] = {}
    for engine in names:
        tick(f"running in {engine}")
        robot = build(engine, model, twin.home, twin.control_dt, twin.name)
        wrong, steps[engine] = [*wrong, *robot.wrong], robot.timestep
        if engine != "mujoco":
            lost[engine] = robot.lost
            agreements += parity(engine, twin) if with_parity else []
        for command in asked:
            seen = _run(robot, policy, twin, command, seconds, late)
            reference.setdefault(command, seen.q)
            trials.append(_trial(engine, command, seen, reference[command], policy, twin))
            first.setdefault(engine, seen)
    if "pybullet" in names:
        wrong += read_otherwise(twin)
    heights = {engine: tuple(seen.base[:, 2].tolist()) if twin.floating else () for engine, seen in first.items()}
    return CrossCheck(
        twin.name, names, steps, tuple(trials), tuple(agreements), tuple(wrong), lost, heights,
        tuple(policy.contract.commands), seconds, _clip(twin, first),
    )  # fmt: skip


def _clip(twin: Twin, runs: dict[str, "_Seen"]) -> Film | None:
    """One run of each engine; a robot that fell stays where it was last."""
    periods = np.arange(max(len(seen.q) for seen in runs.values()))
    rows = {engine: periods.clip(max=len(seen.q) - 1) for engine, seen in runs.items()}
    joints, bases = ({engine: getattr(seen, part)[rows[engine]] for engine, seen in runs.items()} for part in ("q", "base"))
    return film(twin, np.asarray(periods * twin.control_dt, np.float64), joints, bases)


def default_commands(policy: Policy) -> list[tuple[float, ...]]:
    """Each column of the command alone at most of its range, then nothing."""
    ranges = list(policy.contract.commands.values())
    most = [USUAL if r is None else SHARE * max(r, key=abs) for r in ranges]
    return [tuple(np.diag(most)[i].tolist()) for i in range(len(most))] + [(0.0,) * len(most)]


@dataclass(frozen=True)
class _Seen:
    """A run by control period, until the fall. Shape of each: (periods, columns)."""

    q: Array
    base: Array
    """Position [m] and quaternion."""
    velocity: Array
    """Along the heading, and the turn rate about the vertical."""
    torque: Array
    fell: bool


def _run(robot: EngineRobot, policy: Policy, twin: Twin, command: tuple[float, ...], seconds: float, late: float) -> _Seen:
    """Let a policy command a robot in an engine."""
    pilot, imu, dt = Pilot(policy, twin, command), imu_of(twin.model), twin.control_dt
    q, base = home_state(twin, robot)
    robot.start(q, base)
    level, stood = base.pos[2], up_of(base.quat)
    steps, behind = max(1, round(dt / robot.timestep)), round(late / robot.timestep)
    commands = [home_command(twin)]  # acts until the first of the pilot does
    rows: list[tuple[Array, ...]] = []
    fell = False
    for period in range(round(seconds / dt)):
        commands.append(pilot(_reading(robot, imu)))
        sent = steps * np.arange(-1.0, period + 1)
        for row, held in groupby(rows_in_force(sent, steps * period + np.arange(steps) - behind)):
            robot.world.hold(commands[row], len(list(held)))
        base = robot.world.base()
        if not np.isfinite(base.pos).all():
            fell = True
            break
        rows.append((robot.world.joints()[0], np.concatenate([base.pos, base.quat]), _moves(base), robot.world.torque()))
        if imu is not None and (tipped(up_of(base.quat), stood) or base.pos[2] - robot.model.floor < LOW * level):
            fell = True
            break
    q, where, velocity, torque = (np.array(column) for column in zip(*rows, strict=True))
    return _Seen(q, where, velocity, torque, fell)


def _reading(robot: EngineRobot, imu: IMU | None) -> dict[str, Array]:
    """What the robot's sensors say, without noise."""
    q, dq = robot.world.joints()
    reading = {"q": q, "dq": dq, "tau": robot.world.torque()}
    if imu is not None:
        base = robot.world.base()
        reading |= {"quat": np.asarray(multiply(base.quat, imu.quat)), "gyro": np.asarray(rotate_back(imu.quat, base.turn))}
    return reading


def _moves(base: Base) -> Array:
    """Forward and sideways velocity along the heading, and the turn rate about the vertical. Shape: (3,)."""
    w, x, y, z = base.quat
    yaw = math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
    flat = in_body(np.array([math.cos(yaw / 2), 0.0, 0.0, math.sin(yaw / 2)]), base.velocity)
    return np.array([flat[0], flat[1], float(up_of(base.quat) @ base.turn)])


def _trial(engine: str, command: tuple[float, ...], seen: _Seen, reference: Array, policy: Policy, twin: Twin) -> Trial:
    dt = twin.control_dt
    settled = seen.velocity[round(SETTLE / dt) :]
    floats = twin.floating and len(settled) > 0
    mean = settled.mean(axis=0) if floats else np.full(3, np.nan)
    moves = len(command) == 3 and floats
    error = float(np.hypot(*(settled[:, :2] - command[:2]).T).mean()) if moves else math.nan
    first = slice(0, min(len(seen.q), len(reference), round(CLOSE / dt)))
    limits = np.array([j.torque_limit for j in twin.joint_table])
    used = np.sqrt((seen.torque**2).mean(axis=0)) / limits
    return Trial(
        engine, command, len(seen.q) * dt, seen.fell, tuple(mean.tolist()), error,
        float(used.max()), float(np.sqrt(((seen.q[first] - reference[first]) ** 2).mean())),
    )  # fmt: skip


def _delay(twin: Twin, values: ArrayLike) -> float:
    """From reading to action, mean over joints [s]."""
    fields = twin.fields(values)
    parts = [fields[name] for name in ("path.action", "path.observation") if name in fields]
    return float(sum(p.mean() for p in parts))


def read_otherwise(twin: Twin) -> list[str]:
    """What PyBullet would make of the user's own URDF: a link without inertia weighs nothing here and 1 kg there."""
    path = Path(twin.source)
    if path.suffix != ".urdf" or not path.is_file():
        return []
    from gapless.check.engines.pybullet import masses

    robot = ElementTree.fromstring(path.read_text())
    without = []
    for link in robot.iter("link"):
        for shape in [*link.findall("visual"), *link.findall("collision")]:
            link.remove(shape)
        if link.find("inertial") is None:
            without.append(link.get("name", ""))
    with tempfile.TemporaryDirectory() as folder:
        made = masses(ElementTree.tostring(robot, encoding="unicode"), Path(folder))
    base = next(iter(made), "")
    heavy = [name for name in without if made.get(name, 0.0) > 0 and name != base]
    if not heavy:
        return []
    return [
        f"{path.name} has links without <inertial> ({few(heavy)}), to each of which PyBullet gives {made[heavy[0]]:g} kg: "
        f"it would weigh the robot at {sum(made.values()):.4g} kg instead of {twin.mass:.4g} kg"
    ]


def _figure(value: float, unit: str) -> str:
    return "–" if math.isnan(value) else f"{100 * value:.1f} %" if not unit else f"{value:.3g} {unit}"
