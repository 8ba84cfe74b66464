"""What Worlds costs on the quadruped, part by part, beside a raw C loop and other ways to step many robots.

    python -m bench.worlds [--json] [--worlds 512] [--rounds 75]

The limit is `raw_loop.c`: the same model, steps, initial states and commands on two threads, and nothing else. A ratio
is CPU time of the limit / CPU time of the case in the same round, the median over rounds.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import hashlib
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import mujoco.batch
import mujoco.rollout
import numpy as np
from rich.console import Console
from rich.table import Table

from bench.harness import Case, added, interleave, ratio, uncertainty
from bench.raw_loop import RawLoop, compiled, states
from bench.residual import with_networks
from gapless.arrays import Array
from gapless.robots import load_robot
from gapless.twin import Box, Inertia, Twin
from gapless.worlds import Worlds

PERIODS = 2  # control periods in one measurement: short, as the speed of a shared machine changes within a second
EPISODE = 25  # rounds until all cases start anew
THREADS = 2
ANT_PERIODS, GYM_PERIODS = 1, 50  # in a measurement of those, so that it takes about as long
PUSHED, RESET = 0.01, 1 / 500  # share of the worlds each period; the latter makes episodes of 10 s
KICK = 0.5  # m/s

PARAMETERS = (
    "inertia.mass/*",
    "inertia.com_*",
    "inertia.tensor_*",
    "gains.*",
    "friction.*",
    "armature.*",
    "contact.friction",
)
DELAY = ("latency.action", "latency.jitter", "latency.drop")
SENSORS = ("latency.observation", "sensors.*")


@dataclass(frozen=True)
class Features:
    """What a case switches on."""

    patterns: tuple[str, ...] = ()
    pushes: bool = False
    resets: bool = False


CASES = {
    "nominal": Features(),
    "parameters": Features(PARAMETERS),
    "delay": Features(PARAMETERS + DELAY),
    "sensors": Features(PARAMETERS + DELAY + SENSORS),
    "pushes": Features(PARAMETERS + DELAY + SENSORS, pushes=True),
    "everything_on": Features(PARAMETERS + DELAY + SENSORS, pushes=True, resets=True),
    "learned": Features(PARAMETERS + DELAY + SENSORS, pushes=True, resets=True),
}
LABELS = {
    "nominal": "Worlds, nominal",
    "parameters": "+ own parameters in each world",
    "delay": "+ command delay, jitter, loss",
    "sensors": "+ sensor noise, delay, skew",
    "pushes": "+ pushes",
    "everything_on": "+ resets, redrawn: everything on",
    "learned": "+ a network at every joint",
    "batch": "mujoco.batch alone",
    "rollout": "mujoco.rollout, a call a period",
}
NOTES = """Own parameters: mass, centre of mass, inertia tensor, friction, gains, armature.
Pushes reach 1 % of the worlds a period, resets 0.2 %.
gymnasium: AsyncVectorEnv over the same XML. EnvPool: its own task against a
limit of its own; it computes observations and rewards too."""


@functools.cache
def quadruped() -> Twin:
    return Twin.load("quadruped", add=[Inertia(tensor="*")])


def randomised(twin: Twin, patterns: tuple[str, ...]) -> Box | None:
    """Factors within 20 %, all else within one mismatch as met in practice."""
    if not patterns:
        return None
    space = twin.space.select(*patterns)
    width = np.array([0.2 * p.nominal if p.log else p.scale for p in space.parameters])
    return Box(space, space.clip(space.nominal - width), space.clip(space.nominal + width))


def motion(command: Array, n: int, times: Array, rng: np.random.Generator) -> Array:
    """Commands around one: each joint a sine of up to 0.1 rad and 2 Hz. Shape: (times, n, controls)."""
    size, speed, phase = rng.random((3, n, len(command)))
    return command + 0.1 * size * np.sin(2 * np.pi * (2.0 * speed * times[:, None, None] + phase))


@dataclass(frozen=True)
class Segment:
    """One round's task, the same for every case."""

    qpos: Array
    """Where the episode starts, at rest. Shape: (n, nq)."""
    commands: Array
    """Shape: (periods, n, controls)."""
    pushed: Array
    """Mask. Shape: (periods, n)."""
    reset: Array


@functools.lru_cache(maxsize=1)
def segment(n: int, r: int) -> Segment:
    twin = quadruped()
    episode, part = np.random.default_rng([n, r // EPISODE]), np.random.default_rng([n, r, 1])
    qpos, command = twin.home, twin.home_command
    start = np.tile(qpos, (n, 1))
    start[:, 7:] += 0.05 * episode.standard_normal((n, len(qpos) - 7))
    times = twin.control_dt * (r % EPISODE * PERIODS + np.arange(PERIODS))
    chance = part.random((2, PERIODS, n))
    return Segment(start, motion(command, n, times, episode), chance[0] < PUSHED, chance[1] < RESET)


def drive(worlds: Worlds, task: Segment, on: Features) -> None:
    """What is timed: a control loop without a policy."""
    for command, pushed, reset in zip(task.commands, task.pushed, task.reset, strict=True):
        worlds.step(command)
        if on.pushes:
            worlds.push([KICK, 0, 0], pushed)
        if on.resets:
            worlds.reset(reset)


def worlds_case(key: str, twin: Twin, n: int) -> tuple[Case, Worlds]:
    on = CASES[key]
    worlds = Worlds(twin, n, randomised(twin, on.patterns), np.random.default_rng(0), threads=THREADS)

    def prepare(r: int) -> None:
        task = segment(n, r)
        if r % EPISODE == 0:
            worlds.reset(qpos=task.qpos, redraw=False)

    return Case(key, lambda r: drive(worlds, segment(n, r), on), prepare), worlds


def substep_controls(commands: Array, substeps: int) -> Array:
    """Commands (periods, n, controls) held for each substep. Shape: (n, periods * substeps, controls)."""
    return np.ascontiguousarray(np.repeat(commands.swapaxes(0, 1), substeps, axis=1))


def limit_case(twin: Twin, n: int, raw: RawLoop) -> tuple[Case, dict[str, Array]]:
    job: dict[str, Array] = {}

    def prepare(r: int) -> None:
        task = segment(n, r)
        if r % EPISODE == 0:
            job["state"] = states(twin.model, task.qpos)
        job["control"] = substep_controls(task.commands, twin.substeps)

    return Case("limit", lambda r: raw(twin.model, job["state"], job["control"]), prepare), job


def batch_case(twin: Twin, n: int) -> Case:
    batch = mujoco.batch.Batch(twin.model, n, THREADS)
    qpos, ctrl = batch.bind("qpos"), batch.bind("ctrl")

    def prepare(r: int) -> None:
        task = segment(n, r)
        if r % EPISODE == 0:
            batch.reset(stage=0)
            qpos[:] = task.qpos

    def run(r: int) -> None:
        for command in segment(n, r).commands:
            ctrl[:] = command
            batch.step(nstep=twin.substeps)

    return Case("batch", run, prepare)


def rollout_case(twin: Twin, n: int) -> Case:
    pool = mujoco.rollout.Rollout(nthread=THREADS)
    model, data = twin.model, [mujoco.MjData(twin.model) for _ in range(THREADS)]
    full = mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS.value)
    out, now = np.empty((n, twin.substeps, full)), np.zeros((n, full))

    def prepare(r: int) -> None:
        task = segment(n, r)
        if r % EPISODE == 0:
            now[:] = 0
            now[:, 1 : 1 + model.nq] = task.qpos  # after the time

    def run(r: int) -> None:
        for command in segment(n, r).commands:
            control = np.repeat(command[:, None], twin.substeps, axis=1)
            pool.rollout(model, data, now, control, state=out)
            now[:] = out[:, -1]

    return Case("rollout", run, prepare)


class OneRobot(gymnasium.Env[Array, Array]):
    """The least that gymnasium needs: steps of the physics, positions and speeds back."""

    def __init__(self, xml: str, substeps: int):
        self._model = mujoco.MjModel.from_xml_string(xml)
        self._data = mujoco.MjData(self._model)
        self._substeps = substeps
        size = self._model.nq + self._model.nv
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (size,), np.float64)
        self.action_space = gymnasium.spaces.Box(-np.inf, np.inf, (self._model.nu,), np.float64)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        mujoco.mj_resetDataKeyframe(self._model, self._data, 0)
        return self._observe(), {}

    def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        self._data.ctrl[:] = action
        mujoco.mj_step(self._model, self._data, self._substeps)
        return self._observe(), 0.0, False, False, {}

    def _observe(self) -> Array:
        return np.concatenate([self._data.qpos, self._data.qvel])


@contextlib.contextmanager
def gymnasium_case(twin: Twin) -> Iterator[tuple[Case, int]]:
    """The case, and control steps in it; with the number of processes that is fastest here."""
    make = functools.partial(OneRobot, load_robot("quadruped").spec.to_xml(), twin.substeps)
    command = twin.home_command

    def play(envs: Any, r: int) -> None:
        times = twin.control_dt * np.arange(GYM_PERIODS)
        for action in motion(command, envs.num_envs, times, np.random.default_rng(r)):
            envs.step(action)

    def start(k: int) -> Any:
        envs = gymnasium.vector.AsyncVectorEnv([make] * k, context="spawn")
        envs.reset()
        play(envs, 0)
        return envs

    speed = {}
    for k in (THREADS, 2 * THREADS, 4 * THREADS):
        with contextlib.closing(start(k)) as envs:
            began = time.perf_counter()
            play(envs, 0)
            speed[k] = k / (time.perf_counter() - began)
    best = max(speed, key=lambda k: speed[k])
    with contextlib.closing(start(best)) as envs:
        pids = [process.pid for process in envs.processes]
        yield Case("gymnasium", lambda r: play(envs, r), lambda _: envs.reset(), pids), best * GYM_PERIODS


def envpool_cases(n: int, raw: RawLoop) -> tuple[Case, Case]:
    """EnvPool's Ant with its own observations, rewards and resets, and the raw loop over its own XML."""
    import envpool

    envs = envpool.make_gymnasium("Ant-v4", num_envs=n, num_threads=THREADS, seed=0)
    config = envs.spec.config._asdict()
    model = mujoco.MjModel.from_xml_path(str(Path(config["base_path"]) / "mujoco" / "assets_gym" / config["xml_file"]))
    job: dict[str, Array] = {}

    def commands(r: int) -> Array:
        times = config["frame_skip"] * model.opt.timestep * np.arange(ANT_PERIODS)
        return motion(np.zeros(model.nu), n, times, np.random.default_rng(r))

    def prepare(r: int) -> None:
        noise = config["reset_noise_scale"] * np.random.default_rng(r).uniform(-1, 1, (n, model.nq))
        job["state"] = states(model, model.qpos0 + noise)
        job["control"] = substep_controls(commands(r), config["frame_skip"])

    def run(r: int) -> None:
        for action in commands(r):
            envs.step(action)

    limit = Case("EnvPool's limit", lambda _: raw(model, job["state"], job["control"]), prepare)
    return Case("EnvPool", run, lambda _: envs.reset()), limit


def same_work(limit: dict[str, Array], worlds: Worlds) -> None:
    """The limit and nominal Worlds must end a segment in the same states, to the bit."""
    at = 1  # after the time
    nq, nv = worlds.qpos.shape[1], worlds.qvel.shape[1]
    if not np.array_equal(limit["state"][:, at : at + nq + nv], np.hstack([worlds.qpos, worlds.qvel])):
        raise RuntimeError("the raw loop and Worlds did not do the same work")


def digest(threads: int, n: int = 64) -> str:
    """A fingerprint of positions and readings after an episode with everything on."""
    twin, on = quadruped(), CASES["everything_on"]
    worlds = Worlds(twin, n, randomised(twin, on.patterns), np.random.default_rng(7), threads=threads)
    for r in range(EPISODE):
        drive(worlds, segment(n, r), on)
    whole = [worlds.qpos, *(worlds.readings[s] for s in sorted(worlds.readings))]
    return hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in whole)).hexdigest()


def gigabytes(n: int) -> float:
    """Growth of the process's peak memory with n worlds that step, are pushed and reset."""
    twin, on = quadruped(), CASES["everything_on"]
    before = _peak()
    worlds = Worlds(twin, n, randomised(twin, on.patterns), np.random.default_rng(0), threads=THREADS)
    for r in range(5):
        drive(worlds, segment(n, r), on)
    return (_peak() - before) / 2**30


def _peak() -> int:
    """Peak resident memory [bytes]. Not getrusage's: a child starts with its parent's there."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


def in_new_process(expression: str) -> str:
    """The value of an expression over this module, printed by a process of its own."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    code = f"from bench import worlds; print(worlds.{expression})"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def measure(n: int, rounds: int, console: Console) -> dict[str, Any]:
    """One interleaved run of all cases, shown as a table; then memory and determinism."""
    twin = quadruped()
    with compiled() as raw, gymnasium_case(twin) as (gym, gym_steps):
        limit, job = limit_case(twin, n, raw)
        ours = {key: worlds_case(key, with_networks(twin) if key == "learned" else twin, n) for key in CASES}
        ant, ant_limit = envpool_cases(n, raw)
        for case in (limit, ours["nominal"][0]):
            case.prepare(0)
            case.run(0)
        same_work(job, ours["nominal"][1])
        again, _ = limit_case(twin, n, raw)
        cases = [limit, *(c for c, _ in ours.values()), batch_case(twin, n), rollout_case(twin, n)]
        interleave([*cases, again, gym, ant, ant_limit], rounds, console)
    itself = f"the limit against itself {ratio(again.cpu, limit.cpu):.3f} ± {uncertainty(again.cpu, limit.cpu):.3f}"
    for mine, other in ((limit.cpu, again.cpu), (limit.wall, again.wall)):
        mine[:] = [(a + b) / 2 for a, b in zip(mine, other, strict=True)]
    same = n * PERIODS / gym_steps  # as many control steps as the others took
    gym.cpu, gym.wall = [same * t for t in gym.cpu], [same * t for t in gym.wall]
    console.print(table(n, cases, gym, ant, ant_limit))
    console.print(f"To judge the errors by: {itself}.")
    with console.status("memory of 4,096 worlds; the same bits with 1 and 2 threads and in a new process"):
        bits = {digest(1), digest(2), in_new_process("digest(2)")}
        memory = float(in_new_process("gigabytes(4096)"))
    everything = cases[1 + list(CASES).index("everything_on")]
    times, times_cpu = ratio(gym.wall, everything.wall), ratio(gym.cpu, everything.cpu)
    console.print(f"Everything on is {times:.1f} times as fast as gymnasium ({times_cpu:.1f} times in CPU time).")
    console.print(f"4,096 worlds with everything on take {memory:.2f} GB.")
    console.print(f"The same bits with 1 and 2 threads and in a new process: {'yes' if len(bits) == 1 else 'no'}.")
    return {
        "everything_on": round(ratio(limit.cpu, everything.cpu), 3),
        "everything_on_wall": round(ratio(limit.wall, everything.wall), 3),
        **{c.name: round(ratio(limit.cpu, c.cpu), 3) for c in cases if c not in (limit, everything)},
        "envpool_ant": round(ratio(ant_limit.cpu, ant.cpu), 3),
        "times_gymnasium": round(times, 2),
        "times_gymnasium_cpu": round(times_cpu, 2),
        "gigabytes_4096": round(memory, 3),
        "same_bits": len(bits) == 1,
        "step_microseconds": round(1e6 * float(np.median(limit.cpu)) / (n * PERIODS * twin.substeps), 2),
    }


def table(n: int, cases: list[Case], gym: Case, ant: Case, ant_limit: Case) -> Table:
    """All cases as shares of the limit, the first of them; each part's cost in per cent of the limit's CPU time."""
    out = Table(title=f"{n} quadrupeds, {THREADS} threads, {len(ant.cpu)} rounds interleaved", caption=NOTES)
    out.add_column("")
    for heading in ("CPU time,\nof the limit", "cost", "wall clock,\nof the limit", "control\nsteps/s"):
        out.add_column(heading, justify="right")

    def row(label: str, case: Case, of: Case, steps: int, before: Case | None = None, last: bool = False) -> None:
        cost = f"{100 * added(of.cpu, before.cpu, case.cpu):+.1f} %" if before else ""
        share = f"{ratio(of.cpu, case.cpu):.3f} ± {uncertainty(of.cpu, case.cpu):.3f}" if case is not of else "1"
        wall = f"{ratio(of.wall, case.wall):.3f}" if case is not of else "1"
        out.add_row(label, share, cost, wall, f"{steps / float(np.median(case.wall)):,.0f}", end_section=last)

    limit = cases[0]
    row("the limit: mj_step in C", limit, limit, n * PERIODS, last=True)
    for before, case in itertools.pairwise(cases):
        last = case.name in ("learned", "rollout")
        row(LABELS[case.name], case, limit, n * PERIODS, before if case.name in CASES else None, last)
    row("gymnasium", gym, limit, n * PERIODS)
    row("EnvPool Ant-v4, own task", ant, ant_limit, n * ANT_PERIODS)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.worlds", description=__doc__.partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="end with one line of JSON")
    parser.add_argument("--worlds", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=75)
    given = parser.parse_args()
    result = measure(given.worlds, max(given.rounds, 2), Console())
    if given.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
