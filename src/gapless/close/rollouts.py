"""Rollouts: a policy on the robot from home, and the same policy on simulated robots that begin alike and are asked alike."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gapless.arrays import Array, Bools
from gapless.check import losses, trials_of
from gapless.close.case import Case
from gapless.close.field import contents, field_twin
from gapless.close.stages import Stages
from gapless.errors import BadInput
from gapless.identify import quantiles, robots_of
from gapless.learn import Environment, play_course, task_of, with_commands
from gapless.logs import load_mapping, read
from gapless.plain import read_json, write_json
from gapless.policy import Pilot, load_policy
from gapless.rotations import rotate_back
from gapless.twin import Space, Twin
from gapless.worlds import common_signal

ROLLOUTS, SECONDS = 3, 4.0
"""Of a policy on the robot in a round, and how long each lasts [s]: as many as Chebotar et al. (2019) took."""
SMOOTH, CUT = 5.0, 4.0
"""Standard deviation of the smoothing in periods, and where it is cut off, in standard deviations (Chebotar et al. 2019)."""
SETTLES = 1.0
"""Of a rollout that cannot be aligned, what is left out [s]."""
OTHER = 0.5
"""Share of the commands' spread: commands that are off by more are not those of the policy."""
DOWN = np.array([0.0, 0.0, -1.0])


@dataclass(frozen=True)
class Rollouts:
    """What was seen of a policy."""

    policy: str
    """Hash of its network."""
    seen: Array
    """Positions, velocities, where gravity points and how the base turns, and actions. Shape: (runs, periods, columns)."""
    lost: Array
    """Share of the task that each lost; NaN where nobody saw. Shape: (runs,)."""

    def of(self, policy: Path) -> Rollouts:
        """Itself, unless it is of another policy."""
        if self.policy != contents(policy):
            raise BadInput(f"these rollouts are of another policy than {policy}: record that one, or name the policy that ran")
        return self


class Asked:
    """What a round asks of the simulated robots: the policy, from home, with the commands of the real rollouts."""

    def __init__(self, case: Case, policy: Path, runs: int = ROLLOUTS, seconds: float = SECONDS):
        self.twin, self.policy, self.seconds = case.twin(), policy, seconds
        self._case, self._loaded = case, load_policy(policy)
        self.commands = self._commands(runs)
        self.aligned = not self.twin.floating
        """Whether rollouts are compared period by period: legs that touch the ground a little earlier soon walk out of step."""

    def _commands(self, runs: int) -> Array:
        """Of each run, the same in every round. Shape: (runs, columns)."""
        task, rng = task_of(self._case.task, self.twin), np.random.default_rng([self._case.seed, 0x51])
        if self._case.standin is None:
            return np.tile(self._case.command[: len(task.commands)], (runs, 1))
        if hasattr(task, "targets"):  # points that can be reached, which ranges do not tell
            return np.asarray(task.targets[rng.integers(len(task.targets), size=runs)])
        return trials_of(self._loaded, self.twin, task, seed=self._case.seed, seconds=self.seconds).commands(runs)

    def real(self, episode: int = 0) -> Rollouts:
        """On the stand-in. episode: which, as each has noise of its own."""
        twin, values = field_twin(self._case.secret)
        seen, lost = self._run(
            twin, np.tile(values, (len(self.commands), 1)), self.commands, self._case.secret.seed + 1000 * episode
        )
        return Rollouts(contents(self.policy), seen, lost)

    def simulated(self, values: Array, space: Space, rng: np.random.Generator | None = None) -> Array:
        """On robots with these parameters, (n, parameters); with `rng` all else is off within its tolerance.

        Shape: (n, runs, periods, columns).
        """
        every = self.twin.expand(values, space) if rng is None else robots_of(self.twin, space, space.to_scaled(values), rng)
        different, of = np.unique(self.commands, axis=0, return_inverse=True) if self.commands.size else (self.commands[:1], 0)
        robots = np.repeat(every, len(different), axis=0)
        seen, _ = self._run(self.twin, robots, np.tile(different, (len(values), 1)), self._case.seed)
        by_command = seen.reshape(len(values), len(different), *seen.shape[1:])
        return by_command[:, np.broadcast_to(np.ravel(of), (len(self.commands),))]

    def _run(self, twin: Twin, values: Array, commands: Array, seed: int) -> tuple[Array, Array]:
        """What was seen, and what it cost the task."""
        named = task_of(self._case.task, twin)
        task = dataclasses.replace(named, episode=dataclasses.replace(named.episode, start_q=0.0, start_dq=0.0))  # type: ignore[type-var]
        rng, rows = np.random.default_rng([seed, 0x52]), list[Array]()
        environment = Environment(twin, with_commands(task, commands), len(values), None, rng, 0, self._loaded.contract)
        over = np.zeros(len(values), bool)

        def watch(environment: Environment) -> None:
            nonlocal over
            over = over | (environment.scene.time < (len(rows) + 0.5) * twin.control_dt)  # it failed, and began anew
            row = _row(environment)
            rows.append(np.where(over[:, None], rows[-1], row) if rows else row)

        result = play_course(environment, task, self._loaded, rng, 0.0, self.seconds, watch, values)
        return np.stack(rows, axis=1), losses(result)

    def features(self, seen: Array, scale: Array) -> Array:
        """What robots (n, runs, periods, columns) did, in numbers that are near where motions are alike. Shape: (n, numbers).

        Smoothed in time; where rollouts cannot be aligned, their distributions, but for the first second. scale: of columns.
        """
        n = len(seen)
        if not self.aligned:
            late = seen[:, :, round(SETTLES / self.twin.control_dt) :]
            return quantiles(late.reshape(n, -1, late.shape[-1]) / scale).reshape(n, -1)
        from scipy.ndimage import gaussian_filter1d

        return np.asarray(gaussian_filter1d(seen / scale, SMOOTH, axis=2, truncate=CUT)).reshape(n, -1)

    def cost(self, simulated: Array, real: Array) -> Array:
        """How far simulated robots (n, runs, periods, columns) are from the real rollouts. Shape: (n,)."""
        scale = real.std(axis=(0, 1)) + 1e-6
        off = np.nan_to_num(self.features(simulated, scale) - self.features(real[None], scale), nan=10.0)
        return np.asarray(np.abs(off).mean(axis=1) + (self.aligned * off**2).mean(axis=1))


def stopped(seen: Array) -> Bools:
    """Of which runs (..., periods, columns) ended early: what was seen of them then stays as it was. Shape: (...)."""
    return np.asarray((seen[..., -1, :] == seen[..., -2, :]).all(axis=-1))


def _row(environment: Environment) -> Array:
    """What is seen of robots now. Shape: (n, columns)."""
    readings = environment.worlds.readings
    parts = [readings["q"], readings["dq"]]
    if "quat" in readings:
        parts += [rotate_back(readings["quat"], DOWN), readings["gyro"]]
    return np.concatenate([*parts, environment.scene.action], axis=1)


def rolled_out(case: Case, stages: Stages, name: str, asked: Asked) -> Rollouts:
    """Rollouts of a policy on the robot: recorded now, of hardware those that were given."""
    if case.standin is None:
        return _given(case, asked)

    def make(folder: Path) -> None:
        found = asked.real()
        write_json(folder / "rollouts.json", {"policy": found.policy, "seen": found.seen, "lost": found.lost})

    def load(folder: Path) -> Rollouts:
        table = read_json(folder / "rollouts.json", 1 << 28)
        return Rollouts(str(table["policy"]), np.array(table["seen"], float), np.array(table["lost"], float))

    runs = len(asked.commands)
    inputs = {"standin": case.secret, "policy": contents(asked.policy), "runs": runs, "task": case.task, "seed": case.seed}
    says = f"{runs} rollouts of the policy on the robot"
    return stages.run(name, inputs, make, load, runs * asked.seconds, says).of(asked.policy)


def _given(case: Case, asked: Asked) -> Rollouts:
    """Logs of the policy on hardware, from when it started at home, at its own periods."""
    twin, mapping = asked.twin, load_mapping(case.mapping) if case.mapping else None
    policy = load_policy(asked.policy)
    told, seen = f"{common_signal(twin)}_cmd", []
    for path in case.logs:
        log = read(path, mapping)
        needed = ("q", "dq", told, *(("quat", "gyro") if twin.floating else ()))
        if lacks := [s for s in needed if s not in log]:
            raise BadInput(f"{log.name}: a rollout needs the signal {lacks[0]}, and the log has {', '.join(log.signals)}")
        time = log["q"].time[0] + twin.control_dt * np.arange(round(asked.seconds / twin.control_dt))
        if time[-1] > log["q"].time[-1] + twin.control_dt:
            raise BadInput(f"{log.name}: a rollout lasts {asked.seconds:g} s from when the policy starts; this log is shorter")
        at = {s: log.at(s, time)[:, [log[s].columns.index(j) for j in twin.joints]] for s in ("q", "dq", told)}
        at |= {s: log.at(s, time) for s in needed[3:]}
        pilot = Pilot(policy, twin, asked.commands[0])
        actions, would = [], []
        for k in range(len(time)):
            would.append(pilot({signal: v[k] for signal, v in at.items() if signal != told}))
            actions.append(pilot.runtime.action[0])
        left = np.sqrt(np.mean((np.array(would) - at[told]) ** 2)) / max(float(at[told].std()), 1e-6)
        if left > OTHER:
            raise BadInput(
                f"{log.name}: no rollout of {asked.policy}: what that policy answers to the log's readings is off by "
                f"{left:.0%} of how much the commands move; name the policy that ran (--policy)"
            )
        base = [rotate_back(at["quat"], DOWN), at["gyro"]] if twin.floating else []
        seen.append(np.concatenate([at["q"], at["dq"], *base, np.array(actions)], axis=1))
    return Rollouts(contents(asked.policy), np.array(seen), np.full(len(seen), np.nan))
