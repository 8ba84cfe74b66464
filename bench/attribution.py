"""Whether explain names the true cause: stand-ins with one cause, two, none, and one that the twin does not have.

    python -m bench.attribution [--cases 0:10] [--json] [--out out/attribution]

140 stand-ins drawn by seed: quadruped in the air and standing, arm, servo bench; 20 s of rich motion each, everything that is
not a cause drawn within its tolerance, physics at half the twin's time step. Cases 0-59 have one dominant cause (it makes at
least half of the squared error), 60-89 two (each at least 15 %), 90-104 none, 105-119 one that no mechanism has, 120-139 a
spring or play in the gears, by turns, which the twin lacks.
Finished cases are kept, one file each, and not run again.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gapless.arrays import Array
from gapless.explain import errors_of, explain, noise_of, observed, shapley
from gapless.files import atomic
from gapless.logs import Log
from gapless.robots import Command
from gapless.twin import Friction, Twin
from gapless.worlds import StandIn, StandInSpec as Spec, build_standin as build, plan_motion as plan, record

SENSORS = {"noise_q": 0.0005, "noise_dq": 0.02, "quantum_q": 0.0004}
ROBOTS = (("bench", False), ("arm", False), ("quadruped", True), ("quadruped", False))
SECONDS = 20.0
KINDS = ("one",) * 60 + ("two",) * 30 + ("none",) * 15 + ("unknown",) * 15 + ("structure",) * 20
STRUCTURES = ("flex.stiffness", "backlash.width")
SIZES = (1.0, 3.0)  # scaled: a mismatch met in practice and three times that
DOMINANT, ONE_OF_TWO = 0.5, 0.15  # least true shares
SEED = 12000
CAUSES = (
    "latency.action",
    "gains.kp",
    "friction.coulomb",
    "friction.viscous",
    "armature.inertia",
    "motor.limit",
    "motor.strength",
    "gains.kd",
    "offset.encoder",
    "disturbance.cable",
    "backlash.width",
    "inertia.mass",
    "inertia.com",
    "friction.load",
    "friction.stribeck",
    "inertia.payload",
    "contact.slope",
)
FLOATING = ("inertia.payload", "contact.slope")  # causes that only a robot on its feet shows
SEPARABLE_NOT = (
    {"gains.kd", "friction.viscous"},
    {"gains.kp", "motor.strength"},
    {"inertia.mass", "inertia.com"},
    {"inertia.payload", "inertia.mass"},
    {"inertia.com", "offset.encoder"},
    {"latency.action", "gains.kd"},
)
"""Pairs that some logs truly cannot separate: only for these does a group count as a hit."""
ONE_NUMBER = (
    {"motor.strength", "gains.kp"},
    {"motor.strength", "motor.limit"},
    {"motor.strength", "gains.kd"},
    {"gains.kp", "motor.limit"},
    {"gains.kd", "friction.viscous"},
)
"""Pairs that act as one number together (strength scales gains and limit): no log could name both, so they are not drawn."""


@dataclass(frozen=True)
class Drawn:
    """A stand-in's log and what is true of it."""

    robot: str
    in_air: bool
    kind: str
    causes: tuple[str, ...]
    secrets: dict[str, Any]
    log: Log
    shares: dict[str, float]
    """Of the causes, "tolerances" and "remainder"; empty for causes that no twin has."""


class Odd(StandIn):
    """A stand-in with something that no mechanism of the twin has."""

    def __init__(self, spec: Spec, effect: str, size: float, joints: Sequence[int], rng: np.random.Generator):
        super().__init__(spec)
        self._effect, self._size, self._on, self._rng = effect, size, list(joints), rng
        self._state = np.zeros((2, len(self.joints)))
        self._before = np.zeros(len(self.joints))
        self._until = 0.0
        self._torque = self._worlds.state("qfrc_applied")
        self._phase = rng.uniform(0, 2 * np.pi, len(self.joints))
        self._tones = rng.uniform(2.0, 4.0, len(self.joints))

    def write(self, command: Command) -> None:
        twin, now = self._twin, self._ticks * self.period
        dofs = [d.dof for d in twin.drives]
        q, dq = self._worlds.qpos[0, [d.qpos for d in twin.drives]], self._worlds.qvel[0, dofs]
        torque = np.zeros(len(dofs))
        on, size, unit = self._on, self._size, self._units()
        if self._effect == "ripple":  # eccentric gear or cogging: a torque that depends on the angle
            torque[on] = size * unit[on] * np.sin(15 * q[on] + self._phase[on])
        elif self._effect == "cubic spring":
            torque[on] = (
                -size * unit[on] * np.clip((q[on] - self._worlds.home[[d.qpos for d in twin.drives]][on]) / 0.3, -3, 3) ** 3
            )
        elif self._effect == "creep":  # a spring and a damper in series, in parallel with the drive
            self._state[0] += self.period * (dq - self._state[0] / 0.4)
            torque[on] = -size * unit[on] * 4 * self._state[0][on]
        elif self._effect == "slosh":  # a mass on a spring that the joint carries along: a missing degree of freedom
            omega, steps = 2 * np.pi * self._tones, 10
            gained = (dq - self._before) / self.period
            for _ in range(steps):
                self._state[1] += self.period / steps * (-(omega**2) * self._state[0] - 0.1 * omega * self._state[1] - gained)
                self._state[0] += self.period / steps * self._state[1]
            torque[on] = size * unit[on] * 0.02 * (omega**2 * self._state[0])[on]
        elif self._effect == "heating":  # the drive weakens as it gets warm
            self._set("motor.strength", on, 1 / (1 + size * (1 - np.exp(-now / 8.0))))
        elif self._effect == "dropouts":  # the drive loses power for a moment, now and then
            if now > self._until + 0.2 and self._rng.random() < self.period / 1.0:
                self._until = now + self._rng.uniform(0.05, 0.1) * (1 + size)
            self._set("motor.strength", on, 0.2 if now < self._until else 1.0)
        elif self._effect == "slip":  # a horn that slips on its shaft: the zero jumps
            if self._rng.random() < self.period / 3.0:
                self._state[0][on] = size * self._rng.uniform(-0.05, 0.05, len(on))
            self._set("offset.encoder", on, self._state[0][on])
        self._before = dq.copy()
        self._torque[0, dofs] = torque
        super().write(command)

    def _units(self) -> Array:
        """A torque that moves each joint by some 5 mrad [Nm]."""
        space = self._twin.space
        return np.array([0.005 * space.nominal[space.names.index(f"gains.kp/{j}")] for j in self.joints])

    def _set(self, quantity: str, on: Sequence[int], value: Array | float) -> None:
        values = self._values.copy()
        at = [self._twin.space.names.index(f"{quantity}/{self.joints[j]}") for j in on]
        values[at] = values[at] * value if quantity == "motor.strength" else values[at] + value
        self._worlds.write(self._twin.space.clip(values)[None])


EFFECTS = ("heating", "ripple", "dropouts", "slosh", "slip", "creep", "cubic spring")


def draw(case: int, seed: int = SEED) -> Drawn:
    """A stand-in and its log."""
    rng = np.random.default_rng([seed, case])
    kind = KINDS[case]
    robot, in_air = ROBOTS[case % 4 if kind != "structure" else case // 2 % 3]
    if kind == "unknown":
        return _odd(robot, in_air, case, rng)
    twin = _twin(robot, in_air)
    if kind == "none":
        spec = Spec(robot, int(rng.integers(2**31)), in_air, sensors=SENSORS)
        log = _record(spec, twin, rng)
        return Drawn(robot, in_air, kind, (), {}, log, true_shares(spec, twin, log, {}))
    possible = [c for c in CAUSES if (not in_air and robot == "quadruped") or c not in FLOATING]
    first = case // 4 if kind == "one" else int(rng.integers(len(possible)))
    for attempt in range(60):
        names = [possible[(first + attempt // 3) % len(possible)]] if kind != "structure" else [STRUCTURES[case % 2]]
        if kind == "two":
            names = [str(c) for c in rng.choice(possible, 2, replace=False)]
            if set(names) in ONE_NUMBER:
                continue
        change: dict[str, float | str] = {}
        add: dict[str, dict[str, Any]] = {}
        hidden: dict[str, list[str]] = {}
        for name in names:
            hidden[name] = _secret(twin, name, rng, change, add)
        spec = Spec(robot, int(rng.integers(2**31)), in_air, change=change, add=add, sensors=SENSORS)
        try:
            log = _record(spec, twin, rng)
        except (RuntimeError, ValueError):
            continue  # it broke, or cannot be built
        if not in_air and robot == "quadruped" and np.abs(log["quat"].values[:, 1:3]).max() > 0.2:
            continue  # it fell
        shares = true_shares(spec, twin, log, hidden)
        if all(shares[n] >= (ONE_OF_TWO if kind == "two" else DOMINANT) for n in names):
            return Drawn(robot, in_air, kind, tuple(names), {"change": change, "add": add}, log, shares)
    raise RuntimeError(f"case {case}: no stand-in with causes of the wanted size was drawn")


def _secret(
    twin: Twin, cause: str, rng: np.random.Generator, change: dict[str, float | str], add: dict[str, dict[str, Any]]
) -> list[str]:
    """Draw a mismatch: all joints, those of a kind, or one. Returns the parameters that are wrong."""
    size = float(rng.uniform(*SIZES))
    if cause == "backlash.width":
        pattern = _joints(twin, rng)
        add["backlash"] = {"joints": pattern, "width": round(0.01 * (1 + size), 4)}
        return [f"backlash.width/{pattern}"]
    if cause == "flex.stiffness":
        pattern = _joints(twin, rng)
        kp = [p.nominal for p in twin.space.parameters if p.name in twin.space.match(f"gains.kp/{pattern}")]
        stiffness = min(kp) * float(np.exp(rng.uniform(-1, 1)))  # about as stiff as the drive
        add["flex"] = {"joints": pattern, "stiffness": round(stiffness, 3), "damping": round(0.005 * stiffness, 4)}
        return [f"flex.*/{pattern}"]
    if cause.startswith("friction.") and cause.split(".")[1] in ("load", "stribeck"):
        add["friction"] = {"full": True}
    quantity = {
        "inertia.com": f"inertia.com_{rng.choice(list('xyz'))}",
        "contact.slope": f"contact.slope_{rng.choice(['roll', 'pitch'])}",
    }
    name = str(quantity.get(cause, cause))
    pattern = name
    if name not in twin.space.names:
        links = [n.partition("/")[2] for n in twin.space.match(f"{name}/*")]
        pattern = f"{name}/{_joints(twin, rng) if cause.split('.')[0] != 'inertia' else rng.choice(['*', *links])}"
    group = [p for p in twin.space.parameters if p.name in twin.space.match(pattern)]
    p = group[0]
    step = size * float(rng.choice([-1, 1])) * p.scale
    if p.log:
        change[pattern] = f"x{np.exp(step):.4g}"
    else:
        down = min(o.nominal - o.low for o in group)
        step = abs(step) if down < -step else step
        change[pattern] = f"{step:+.5g}"
    return [pattern]


def _joints(twin: Twin, rng: np.random.Generator) -> str:
    kind = rng.random()
    if kind < 0.6 or len(twin.joints) == 1:
        return "*"
    name = str(rng.choice(twin.joints))
    return f"*_{name.rpartition('_')[2]}" if kind < 0.8 and twin.name == "quadruped" else name


def _twin(robot: str, in_air: bool) -> Twin:
    return Twin.load(robot, add=[Friction(full=True)], in_air=in_air)


def _record(spec: Spec, twin: Twin, rng: np.random.Generator) -> Log:
    stand_in = StandIn(spec)
    return record(stand_in, plan("rich", twin, SECONDS, np.random.default_rng(rng.integers(2**31))), stand_in.signal)


def true_shares(spec: Spec, twin: Twin, log: Log, hidden: dict[str, list[str]]) -> dict[str, float]:
    """Shapley values with the secrets switched on and off in the true twin, on the stretches that explain looks at."""
    true, stand_in = build(spec), StandIn(spec)
    space = true.space
    secret = np.array([stand_in.reveal()[n] for n in space.names])
    nominal = space.nominal.copy()
    nominal[[i for i, n in enumerate(space.names) if n.startswith("backlash.")]] = 0.0
    rigid = [i for i, n in enumerate(space.names) if n.startswith("flex.stiffness")]
    nominal[rigid] = space.high[rigid]
    players = [
        [i for i, n in enumerate(space.names) if any(n in space.match(p) for p in patterns)] for patterns in hidden.values()
    ]
    taken = {i for p in players for i in p}
    players.append(
        [i for i in range(len(space)) if i not in taken and not space.names[i].startswith(("sensors.noise", "sensors.quantum"))]
    )
    vectors = []
    for subset in range(2 ** len(players)):
        values = nominal.copy()
        for k, numbers in enumerate(players):
            if subset >> k & 1:
                values[numbers] = secret[numbers]
        vectors.append(values)
    looked_at = observed(twin, [log])
    errors = errors_of(looked_at.like(true), np.array(vectors))[:, :, : len(true.joints)]
    quiet = float((noise_of(looked_at)[: len(true.joints)] ** 2).mean())
    value = (errors**2).mean(axis=(1, 2))
    whole = max(float(value[0]) - quiet, 1e-12)
    found = shapley(value[0] - value) / whole
    out = dict(zip([*hidden, "tolerances"], found.tolist(), strict=True))
    return out | {"remainder": float(np.clip((value[-1] - quiet) / whole, 0, 1))}


def _odd(robot: str, in_air: bool, case: int, rng: np.random.Generator) -> Drawn:
    """A stand-in with an effect that makes at least three quarters as much error as its tolerances do, and more."""
    twin = _twin(robot, in_air)
    spec = Spec(robot, int(rng.integers(2**31)), in_air, sensors=SENSORS)
    commands = plan("rich", twin, SECONDS, np.random.default_rng(rng.integers(2**31)))
    plain = record(StandIn(spec), commands)
    usual = errors_of(observed(twin, [plain]), twin.space.nominal[None])[0, :, : len(twin.joints)]
    first = case - KINDS.index("unknown")
    on = list(range(len(twin.joints))) if rng.random() < 0.5 else [int(rng.integers(len(twin.joints)))]
    for k in range(len(EFFECTS)):  # the next one, where a robot on its feet falls before the effect is large
        effect, size = EFFECTS[(first + k) % len(EFFECTS)], 1.0
        for _ in range(12):
            odd = Odd(spec, effect, size, on, np.random.default_rng(rng.integers(2**31)))
            try:
                log = record(odd, commands)
            except RuntimeError:
                size /= 1.3
                continue
            made = log["q"].values - plain["q"].values
            if np.sqrt((made**2).mean()) >= 1.5 * np.sqrt((usual**2).mean()):
                secrets = {"effect": effect, "size": size, "joints": [twin.joints[j] for j in on]}
                return Drawn(robot, in_air, "unknown", (effect,), secrets, log, {})
            size *= 1.6
    raise RuntimeError(f"case {case}: no effect can be made large enough")


def run(case: int, seed: int = SEED) -> dict[str, Any]:
    """Draw a case, explain it, and say what came of it."""
    drawn = draw(case, seed)
    wall, cpu = time.perf_counter(), time.process_time()
    found = explain(_twin(drawn.robot, drawn.in_air), [drawn.log])
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {
        "case": case,
        "robot": drawn.robot + (" in the air" if drawn.in_air else " standing" if drawn.robot == "quadruped" else ""),
        "kind": drawn.kind,
        "causes": drawn.causes,
        "secrets": drawn.secrets,
        "shares": drawn.shares,
        "verdict": found.verdict,
        "found": [
            {"name": c.name, "share": c.share, "low": c.low, "high": c.high, "group": c.group, "joints": c.joints}
            for c in found.mechanisms
        ],
        "tolerances": found.tolerances,
        "remainder": found.remainder.share,
        "left": found.remainder.times,
        "where": found.remainder.where,
        "rivals": found.rivals,
        "wall": wall,
        "cpu": cpu,
    }


def hit(result: dict[str, Any]) -> bool:
    """Whether a case came out as it should."""
    found = result["found"]
    if result["kind"] == "none":
        return bool(result["verdict"] == "none")
    if result["kind"] == "unknown":
        return bool(result["verdict"] == "non-parametric")
    first = found[: 3 if result["kind"] == "two" else 1]
    return all(any(_same(cause, f) for f in first) for cause in result["causes"])


def _same(cause: str, found: dict[str, Any]) -> bool:
    return bool(found["name"] == cause or (cause in found["group"] and {cause, found["name"]} in SEPARABLE_NOT))


def share_error(result: dict[str, Any]) -> float | None:
    """Mean absolute error over the causes, the tolerances and the remainder."""
    if not result["shares"] or result["kind"] == "none":
        return None
    ours = {f["name"]: f["share"] for f in result["found"]} | {
        "tolerances": result["tolerances"],
        "remainder": result["remainder"],
    }
    names = set(result["shares"]) | set(ours)
    return float(np.mean([abs(ours.get(n, 0.0) - result["shares"].get(n, 0.0)) for n in names]))


def summary(results: Sequence[dict[str, Any]]) -> dict[str, float]:
    """The figures."""
    out: dict[str, float] = {}
    for kind in dict.fromkeys(KINDS):
        mine = [r for r in results if r["kind"] == kind]
        if mine:
            out[f"{kind}_cases"] = len(mine)
            out[f"{kind}_right"] = float(np.mean([hit(r) for r in mine]))
    ones = [r for r in results if r["kind"] == "one"]
    if ones:
        out["one_right_without_groups"] = float(
            np.mean([bool(r["found"]) and r["found"][0]["name"] == r["causes"][0] for r in ones])
        )
    errors = [e for r in results if (e := share_error(r)) is not None]
    if errors:
        out["share_error"] = float(np.mean(errors))
    for robot in dict.fromkeys(r["robot"] for r in results):
        out[f"cpu_seconds_{robot}"] = float(np.median([r["cpu"] for r in results if r["robot"] == robot]))
    return out


def picture(results: Sequence[dict[str, Any]], path: Path) -> None:
    """The confusion matrix: what is true by row, what was named first by column; of two causes, both rows count half."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows: list[str] = [*CAUSES, "flex.stiffness", "none", *EFFECTS]
    columns: list[str] = [*CAUSES, "flex.stiffness", "hysteresis.torque", "friction.angle", "none", "non-parametric"]
    count = np.zeros((len(rows), len(columns)))
    for r in results:
        truth = r["causes"] or ["none"]
        for k, cause in enumerate(truth):
            if r["verdict"] == "none" or (r["kind"] == "unknown" and r["verdict"] == "non-parametric"):
                named = r["verdict"]
            else:
                found = [f for f in r["found"][:3] if _same(cause, f)] if r["kind"] != "none" else []
                ordered = found or r["found"][k : k + 1] or r["found"][:1]
                named = (cause if found else ordered[0]["name"]) if ordered else "non-parametric"
            if named in columns:
                count[rows.index(cause), columns.index(named)] += 1 / len(truth)
    count, rows = count[count.sum(axis=1) > 0], [r for r, n in zip(rows, count.sum(axis=1), strict=True) if n > 0]
    figure, axes = plt.subplots(figsize=(9.5, 8.5), dpi=110)
    axes.imshow(count / count.sum(axis=1, keepdims=True), cmap="Blues", vmin=0, vmax=1.2)
    for i, j in np.argwhere(count > 0):
        axes.text(j, i, f"{count[i, j]:g}", ha="center", va="center", fontsize=8)
    axes.set_xticks(range(len(columns)), columns, rotation=60, ha="right", fontsize=8)
    axes.set_yticks(range(len(rows)), rows, fontsize=8)
    axes.set_xlabel("named")
    axes.set_ylabel("true")
    axes.set_title(f"Causes named by explain in {len(results)} stand-ins (two causes count half each)", fontsize=10)
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", default=f"0:{len(KINDS)}", help="first:end, or first:end:step")
    parser.add_argument("--seed", type=int, default=SEED, help="other seeds are for setting thresholds")
    parser.add_argument("--out", type=Path, default=Path("out/attribution"))
    parser.add_argument("--json", action="store_true", help="print one JSON line, last")
    parser.add_argument("--picture", type=Path, help="write the confusion matrix here")
    options = parser.parse_args()
    folder = options.out if options.seed == SEED else options.out / f"seed{options.seed}"
    folder.mkdir(parents=True, exist_ok=True)
    for case in range(len(KINDS))[slice(*(int(n) for n in options.cases.split(":")))]:
        file = folder / f"{case:03d}.json"
        if file.is_file():
            continue
        try:
            result = run(case, options.seed)
        except RuntimeError as error:
            print(f"{case:3d} {error}", flush=True)
            continue
        with atomic(file) as part:
            part.write_text(json.dumps(result))
        named = ", ".join(f"{f['name']} {f['share']:.2f}" for f in result["found"]) or "-"
        right = "ok" if hit(result) else "NO"
        print(
            f"{case:3d} {right} {result['robot']:22} {result['kind']:8} {'+'.join(result['causes']):32} "
            f"{result['verdict']:14} {named}; left {result['left']:.2f}, {result['cpu']:.0f} s of CPU",
            flush=True,
        )
    results = [json.loads(f.read_text()) for f in sorted(folder.glob("*.json"))]
    figures = summary(results)
    for name, value in figures.items():
        print(f"{name:40} {value:.3f}")
    if options.picture:
        picture(results, options.picture)
    if options.json:
        print(json.dumps(figures))


if __name__ == "__main__":
    main()
