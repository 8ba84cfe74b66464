"""Attacks on the safety layer, judged at the robot's side: the emulated robot counts for itself whether a limit was exceeded.

    python -m bench.safety [--actions 1000000] [--faults 200] [--kills 50] [--packets 10000] [--walk 30] [--part NAME] [--json]

actions: adversarial actions on a quadruped in the air, one on its feet and an arm, each off within its tolerances: NaN and
infinities, extremes, noise, square waves at every rate, sines, gains out of range, and the worst that random search finds.
faults: of sensors and transport; each must end on the right rung of the ladder. walk: minutes of walking with pushes without a
false stop. kills: `kill -9` of the program at random moments; the log is read, and the robot must fall back within 50 ms.
packets: fuzzed packets to a served robot; they are counted and nothing moves. Baseline: the same actions without the layer.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from rich.console import Console

import gapless
from gapless.arrays import Array
from gapless.deploy import AUDITED, WHY, Emulated, InProcess, Plausible, Rung, Runner, Safety, Server, UdpRobot, limits_of
from gapless.logs import read
from gapless.policy import load_policy
from gapless.robots import load_robot
from gapless.rotations import up_of
from gapless.worlds import StandInSpec

console = Console(stderr=True)
POLICY = Path(gapless.__file__).parent / "close/policies/quadruped_wide"
PERIOD = 0.001
EPISODE = 2500
"""Ticks after which a new attack begins."""
CASES = (("quadruped", True), ("quadruped", False), ("arm", False))
GATED = AUDITED[:-1]
FINISHED = b"\x89MCAP0\r\n"
"""What a log ends with that was closed in good order."""
PARTS = ("actions", "faults", "walk", "kills", "packets")


def attacks(
    rng: np.random.Generator, home: Array, kp: Array, kd: Array
) -> Generator[tuple[str, Callable[[int], Array]], float | None, None]:
    """Names and functions from a tick to an action (5, joints), for ever."""
    n = len(home)

    def mit(q: Array | float, kp: Array = kp, kd: Array = kd, dq: Array | float = 0.0, tau: Array | float = 0.0) -> Array:
        return np.stack([np.broadcast_to(row, n).astype(float) for row in (q, dq, kp, kd, tau)])

    kinds = ("square", "noise", "extreme", "nan", "gains", "sine", "velocity", "torque", "search")
    found: list[tuple[float, Array]] = []
    while True:
        kind = str(rng.choice(kinds))
        ticks = int(np.exp(rng.uniform(0, np.log(1000))))
        phase, sizes = rng.integers(0, 2, n) * 2 - 1, 10 ** rng.uniform(-1, 2, n)
        frequency, odd = rng.uniform(0.2, 40, n), rng.choice([np.nan, np.inf, -np.inf, 1e308, -1e308, 1e-308])
        table, slow = rng.uniform(-4, 4, (16, n)), max(5, ticks // 8)
        makers: dict[str, Callable[[int], Array]] = {
            "square": lambda i, p=phase, s=sizes, t=ticks: mit(home + p * s * (1 if (i // t) % 2 else -1)),
            "noise": lambda i, s=sizes: mit(home + s * rng.normal(size=n)),
            "extreme": lambda i, s=sizes: mit(rng.choice([-1e9, 1e9, 0.0], n), kp * s, kd * s),
            "nan": lambda i, o=odd: np.where(rng.random((5, n)) < 0.05, o, mit(home)),
            "gains": lambda i, s=sizes: mit(home + rng.normal(size=n), kp * 10 * s * rng.choice([-1, 1], n), -kd * s),
            "sine": lambda i, s=sizes, f=frequency: mit(home + s * np.sin(2 * np.pi * f * i * PERIOD)),
            "velocity": lambda i, p=phase, s=sizes, t=ticks: mit(home, 0 * kp, kd * 5, p * 1e3 * (1 if (i // t) % 2 else -1)),
            "torque": lambda i, p=phase, t=ticks: mit(home, 0 * kp, 0 * kd, 0.0, p * 1e4 * (1 if (i // t) % 2 else -1)),
            "search": lambda i, w=table, t=slow: mit(home + w[(i // t) % 16]),
        }
        if kind == "search" and found and rng.random() < 0.7:  # the worst so far, changed a little
            table = max(found, key=lambda f: f[0])[1] + 0.3 * rng.normal(size=(16, n))
        score = yield kind, makers[kind]
        if kind == "search" and score is not None:
            found.append((float(score), table))


def adversarial(
    actions: int,
    protected: bool = True,
    seed: int = 0,
    tighter: Mapping[str, float] = MappingProxyType({}),
    period: float = PERIOD,
) -> dict[str, Any]:
    """Attack until that many actions were given; what the robots counted, by limits tighter than their models' where asked."""
    counts, most, by_kind, stops = np.zeros(len(AUDITED)), np.zeros(len(AUDITED)), dict[str, int](), dict[str, int]()
    given, rng, where = 0, np.random.default_rng(seed), dict[str, Array]()
    start = time.perf_counter()
    robots = []
    for k, (name, air) in enumerate(CASES):
        model = load_robot(name)
        kp, kd = (np.array([getattr(j, g) for j in model.joint_table]) for g in ("kp", "kd"))
        emulated, limits = Emulated(StandInSpec(name, in_air=air, seed=40 + k), period), limits_of(model).tighter(tighter)
        emulated.audit_by(limits)
        robots.append((emulated, model, limits, kp, kd))
    streams = [attacks(rng, e.twin.home[[d.qpos for d in e.twin.drives]], kp, kd) for e, _, _, kp, kd in robots]
    score: list[float | None] = [None] * len(robots)
    turn = 0
    while given < actions:
        k = turn % len(robots)
        turn += 1
        robot, model, limits, _, _ = robots[k]
        kind, action = streams[k].send(None) if score[k] is None else streams[k].send(score[k])
        robot.reset()
        floating = "quat" in robot.readings()
        safety = Safety(limits, model, period)
        safety.plausible = Plausible(limits, floating)
        for i in range(min(EPISODE, actions - given)):
            reading, now = robot.readings(), robot.time
            wanted = action(i)
            if protected:
                imu = np.concatenate([reading["quat"], reading["gyro"]]) if floating else np.zeros(0)
                safety.see(reading["q"], reading["dq"], imu, float(reading["time"]), now)
                robot.take(safety.answer(wanted, True, now))
                if safety.rung:
                    stops[safety.ladder.reason] = stops.get(safety.ladder.reason, 0) + 1
                    if safety.rung is Rung.HOLD:
                        safety.release()  # so that the next action is an attack again
                    else:  # it has fallen: a person puts it back
                        kept = robot.counts.copy(), robot.most.copy()
                        robot.reset()
                        robot.counts[:], robot.most[:] = kept
                        safety = Safety(limits, model, period)
                        safety.plausible = Plausible(limits, floating)
            else:
                robot.take(np.nan_to_num(wanted, posinf=1e3, neginf=-1e3))
            try:
                robot.step()
            except RuntimeError:
                robot.reset()
            given += 1
        score[k] = float(np.max(robot.most[: len(GATED)]))
        by_kind[kind] = by_kind.get(kind, 0) + 1
        if (over := robot.counts[: len(GATED)]).any():
            case = f"{CASES[k][0]}{' in the air' if CASES[k][1] else ''}, {kind}"
            where.setdefault(case, np.zeros(len(GATED)))[:] += over
        counts += robot.counts
        np.maximum(most, robot.most, out=most)
        if turn % 40 == 0:
            console.print(f"{given} actions, exceeded {int(counts[: len(GATED)].sum())}")
    return {
        "actions": given,
        "exceeded": int(counts[: len(GATED)].sum()),
        "counts": dict(zip(AUDITED, counts.astype(int).tolist(), strict=True)),
        "most": dict(zip(AUDITED, np.round(most, 3).tolist(), strict=True)),
        "attacks": by_kind,
        "where": {case: dict(zip(GATED, over.astype(int).tolist(), strict=True)) for case, over in where.items()},
        "stops": stops,
        "seconds": round(time.perf_counter() - start, 1),
    }


class Faulty:
    """An in-process robot whose readings or line break at some moment."""

    realtime = False

    def __init__(self, inside: Emulated, fault: str, at: float, rng: np.random.Generator):
        self._robot, self.joints, self.period = InProcess(inside), inside.joints, inside.period
        self.inside, self.fault, self.at, self._rng = inside, fault, at, rng
        self._joint, self._frozen, self._began = int(rng.integers(len(self.joints))), dict[str, Array](), math.nan

    @property
    def mode(self) -> str:
        return "stopped" if self._is("mode") else self._robot.mode

    def _is(self, fault: str) -> bool:
        return self.fault == fault and self.inside.time >= self.at

    def read(self) -> dict[str, Array]:
        reading = {k: np.array(v) for k, v in self._robot.read().items()}
        if self.inside.time < self.at:
            self._frozen = reading
            return reading
        j, rng = self._joint, self._rng
        if self.fault == "nan_q":
            reading["q"][j] = np.nan
        elif self.fault == "inf_dq":
            reading["dq"][j] = np.inf
        elif self.fault == "nan_quat":
            reading["quat"][rng.integers(4)] = np.nan
        elif self.fault == "nan_gyro":
            reading["gyro"][rng.integers(3)] = np.nan
        elif self.fault == "quat_zero":
            reading["quat"][:] = 0.0
        elif self.fault == "gyro_wild":
            reading["gyro"][:] = 500.0
        elif self.fault == "frozen":
            reading = {**self._frozen, "time": reading["time"]}
        elif self.fault == "imu_frozen":
            reading |= {"quat": self._frozen["quat"], "gyro": self._frozen["gyro"]}
        elif self.fault == "clock_back":
            reading["time"] = reading["time"] - 1.0
        elif self.fault == "jump":
            reading["q"][j] += 1.0
        elif self.fault == "dq_wild":
            reading["dq"][j] = 80.0
        elif self.fault == "silent":
            reading["time"] = self._frozen["time"]
        elif self.fault == "hot":
            reading["temperature"][j] = 120.0
        elif self.fault == "empty":
            reading["battery"] = np.float64(10.0)
        elif self.fault == "fallen":
            reading["quat"][:] = (np.cos(0.7), np.sin(0.7), 0.0, 0.0)
        return reading

    def write(self, command: dict[str, Array]) -> None:
        self._robot.write(command)

    def stop(self) -> None:
        self._robot.stop()


RIGHT = {
    "nan_q": ("joints",), "inf_dq": ("joints",), "jump": ("joints",), "dq_wild": ("joints",), "frozen": ("frozen",),
    "clock_back": ("clock",), "nan_quat": ("imu",), "nan_gyro": ("imu",), "quat_zero": ("imu",), "gyro_wild": ("imu",),
    "imu_frozen": ("imu",), "hot": ("heat",), "empty": ("battery",), "fallen": ("tilt",), "mode": ("mode",),
    "silent": ("stale", "silent"), "policy_nan": ("policy nan",), "policy_late": ("policy late",),
}  # fmt: skip
"""Fault to the reasons that name it; the rung is theirs."""


def faults(count: int, seed: int = 0, kinds: Sequence[str] = ()) -> dict[str, Any]:
    """Break sensors, line and policy at random moments of a walk; how many end on the right rung."""
    policy, model, rng = load_policy(POLICY), load_robot("quadruped"), np.random.default_rng(seed)
    wrong, counts, delays = list[str](), np.zeros(len(AUDITED)), list[float]()
    for i in range(count):
        fault = list(kinds or RIGHT)[i % len(kinds or RIGHT)]
        inside = Emulated(StandInSpec("quadruped", seed=100 + i))
        robot = Faulty(inside, fault, float(rng.uniform(1.6, 3.0)), rng)
        limits = limits_of(model, policy.contract).tighter({"battery": 22.0})
        spans = [span or (-0.4, 0.6) for span in policy.contract.commands.values()]
        command = [float(np.clip(c, *span)) for c, span in zip(rng.uniform(-0.4, 0.6, len(spans)), spans, strict=True)]
        runner = Runner(robot, model, policy, command, limits)
        think = runner._think

        def broken(reading: Any, think: Any = think, robot: Any = robot, runner: Any = runner) -> None:
            if robot._is("policy_late"):
                return
            think(reading)
            if robot._is("policy_nan"):
                runner._next[0, robot._joint] = np.nan

        runner._think = broken  # type: ignore[method-assign]
        out = runner.run(4.0)
        want = {WHY[why][0].name for why in RIGHT[fault]}
        if out.first not in want or out.reason not in {WHY[why][1] for why in RIGHT[fault]}:
            wrong.append(f"{fault}: {out.first} ({out.reason})")
        else:
            delays.append(out.events[0][0] - robot.at)
        counts += inside.counts
        if i % 20 == 19:
            console.print(f"{i + 1} faults, {len(wrong)} wrong")
    delay = {"p50": round(float(np.median(delays)), 4), "max": round(float(max(delays)), 4)} if delays else {}
    return {
        "faults": count,
        "right": count - len(wrong),
        "wrong": wrong,
        "exceeded": int(counts[: len(GATED)].sum()),
        "delay_s": delay,
    }


def walk(minutes: float, seed: int = 0) -> dict[str, Any]:
    """Walk with pushes and changing commands; stops that nothing justified."""
    policy, model, rng = load_policy(POLICY), load_robot("quadruped"), np.random.default_rng(seed)
    false, falls, walked, counts, k = list[str](), 0, 0.0, np.zeros(len(AUDITED)), 0
    limited: dict[str, float] = {}
    while walked < 60 * minutes:
        inside = Emulated(StandInSpec("quadruped", seed=300 + k))
        k += 1
        runner = Runner(InProcess(inside), model, policy, (0.4, 0.0, 0.0), limits_of(model, policy.contract))

        def on_tick(now: float, runner: Any = runner, inside: Any = inside) -> None:
            if runner.phase == "run" and inside.ticks % 4000 == 0:
                inside.push(np.array([*rng.uniform(-0.5, 0.5, 2), 0.0]))
                runner.ask(tuple(rng.uniform(-1, 1, 3) * (0.6, 0.3, 0.6)))

        runner.on_tick = on_tick
        out = runner.run(min(60.0, 60 * minutes - walked))
        walked += max(out.seconds, 0.5)
        fell = out.reason == WHY["tilt"][1] and float(up_of(inside.data.qpos[3:7])[2]) < 0.6  # it lies there, in truth
        falls += fell
        if out.reason and not fell:
            false.append(out.reason)
        counts += inside.counts
        limited = runner.safety.counted()
        console.print(
            f"{walked / 60:.1f} min, {falls} falls, false stops {len(false)}, exceeded {int(counts[: len(GATED)].sum())}"
        )
    return {
        "minutes": round(walked / 60, 1), "false_stops": len(false), "reasons": false, "falls": falls,
        "exceeded": int(counts[: len(GATED)].sum()), "impact": int(counts[-1]), "limited": limited,
    }  # fmt: skip


SPEC = 'robot = "quadruped"\nseed = 7\n'
CLI = [sys.executable, "-c", "from gapless.cli import main; main()"]


def served(folder: Path, seconds: float) -> tuple[subprocess.Popen[str], int]:
    """A served stand-in, and its port."""
    (folder / "spec.toml").write_text(SPEC)
    words = ["standin", str(folder / "spec.toml"), "--serve", "--port", "0", "--seconds", str(seconds)]
    server = subprocess.Popen([*CLI, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    line = server.stderr.readline()
    return server, int(line.split(":")[-1].split()[0])


def kills(count: int, seed: int = 0) -> dict[str, Any]:
    """Kill the program at random moments; what the log holds, and when the robot fell back.

    A run that had stopped by itself before it was killed has closed its log: it is counted, and has nothing to lose.
    """
    chance, lost, late, unread, over = random.Random(seed), list[float](), list[float](), 0, 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        server, port = served(folder, 60.0 + 15.0 * count)
        for i in range(count):
            out = folder / f"{i}.mcap"
            words = ["run", str(POLICY), "--robot", f"udp://127.0.0.1:{port}", "--command", "0.4,0,0", "--seconds", "60"]
            run = subprocess.Popen(
                [*CLI, *words, "--unchecked", "--out", str(out)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            begun = time.monotonic()
            while not (out.exists() and out.stat().st_size > 5000) and time.monotonic() - begun < 40:
                time.sleep(0.05)
            time.sleep(chance.uniform(0.2, 3.5))
            run.send_signal(signal.SIGKILL)
            killed = time.monotonic()
            run.wait()
            time.sleep(0.2)
            try:
                last = float(read(out)["q_cmd"].host_time[-1])  # type: ignore[index]
                if out.read_bytes().endswith(FINISHED):
                    over += 1
                    continue
                lost.append(killed - last)
            except Exception as error:
                console.print(str(error))
                unread += 1
            late.append(float(UdpRobot("127.0.0.1", port).said["last_fallback"] or math.nan))
            if i % 10 == 9:
                console.print(
                    f"{i + 1} kills, at most {1e3 * max(lost):.0f} ms lost, fallback after at most {1e3 * max(late):.0f} ms"
                )
        server.send_signal(signal.SIGTERM)
        told = json.loads(server.communicate()[0])
    return {
        "kills": count, "unreadable": unread, "stopped_before": over,
        "lost_ms_max": round(1e3 * max(lost), 1), "lost_ms_p50": round(1e3 * float(np.median(lost)), 1),
        "fallback_ms_max": round(1e3 * max(late), 1), "fallback_ms_p50": round(1e3 * float(np.median(late)), 1),
        "exceeded": sum(v["exceeded"] for k, v in told["limits"].items() if k in GATED),
    }  # fmt: skip


def fuzz(count: int, seed: int = 0) -> dict[str, Any]:
    """Fuzzed packets to a server in this process: nothing may move, and each is counted."""
    import socket

    from gapless.deploy import fuzzed_packet

    rng = np.random.default_rng(seed)
    inside = Emulated(StandInSpec("quadruped", in_air=True, seed=9))
    server = Server(inside, port=0)
    for _ in range(300):
        server.tick(time.monotonic())
    before, taken = inside.data.qpos.copy(), inside.accepted
    line = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    line.connect(("127.0.0.1", server.port))
    for i in range(count):
        line.send(fuzzed_packet(rng, server.robot.joints, i))
        if i % 5 == 0:
            server.tick(time.monotonic())
    for _ in range(50):
        server.tick(time.monotonic())
    moved = float(np.abs(inside.data.qpos - before).max())
    out = {"packets": count, "ignored": server.ignored, "accepted": inside.accepted - taken, "moved_rad": moved}
    server.close()
    line.close()
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("actions", 1_000_000), ("faults", 200), ("kills", 50), ("packets", 10_000), ("walk", 30.0)):
        parser.add_argument(f"--{name}", type=type(default), default=default)
    parser.add_argument("--part", choices=PARTS, action="append")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    parts = given.part or list(PARTS)
    out: dict[str, Any] = {}
    if "actions" in parts:
        out["adversarial"] = adversarial(given.actions)
        out["without"] = adversarial(max(10_000, given.actions // 20), protected=False)
    if "faults" in parts:
        out["faults"] = faults(given.faults)
    if "walk" in parts:
        out["walk"] = walk(given.walk)
    if "packets" in parts:
        out["packets"] = fuzz(given.packets)
    if "kills" in parts:
        out["kills"] = kills(given.kills)
    exceeded = sum(part.get("exceeded", 0) for name, part in out.items() if name != "without")
    if not given.json:
        console.print(out)
    print(json.dumps({"exceeded": exceeded, **out, "load": os.getloadavg()[0]}))


if __name__ == "__main__":
    main()
