"""One policy, three ways to the robot: the same motion in process, over CAN and over UDP, and what explains the difference.

    python -m bench.motion [--seconds 12] [--json]

can: joints over python-can's virtual bus against the same robot in process. `rounded` is in process with every number rounded
as MIT frames round it, and nothing else: over CAN the motion must be that one (gate: 1e-6 rad), so that rounding explains all.
udp in step: over loopback, one packet a period: the motion must be the one in process to the last bit (gate: 0 rad).
udp in real time: a stand-in in another process, with the policy on its own thread. No two such runs are the same to the last
digit, as walking amplifies a millisecond; judged are mean and spread of each joint's angle while it walks, beside what commands
change in process that come as late as in that run (p99.9 of round trip and of the policy's answer; gate: not above it).
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bench.safety import POLICY, served
from gapless.arrays import Array
from gapless.deploy import (
    CanConfig,
    CanImu,
    Emulated,
    InProcess,
    MitRanges,
    OnVirtualBus,
    Runner,
    Server,
    UdpRobot,
    decode_mit,
    encode_mit,
    limits_of,
)
from gapless.policy import load_policy
from gapless.robots import MIT, load_robot
from gapless.worlds import StandInSpec

COMMAND, SEED = (0.4, 0.0, 0.0), 7
RANGES = MitRanges(tau=40.0)
WALKS = 2.5
"""s after which the robot walks."""


def can_config(joints: tuple[str, ...]) -> CanConfig:
    """Drives of a quadruped on two buses, with signs and zeros of their own."""
    drives = {j: {"id": i % 6 + 1, "bus": i // 6, "sign": 1 - 2 * (i % 2), "zero": 0.05 * i} for i, j in enumerate(joints)}
    return CanConfig(drives, ("v0", "v1"), "virtual", 0.002, ranges=RANGES, imu=CanImu(80))


class Rounded(InProcess):
    """In process, with numbers rounded as on a CAN bus."""

    def __init__(self, inside: Emulated, config: CanConfig):
        super().__init__(inside)
        self._drives = [config.drives[name] for name in inside.joints]
        self._told = np.zeros((5, len(inside.joints)))

    def _round(self, rows: Array) -> Array:
        out = np.empty_like(rows)
        for j, d in enumerate(self._drives):
            q, dq, kp, kd, tau = rows[:, j]
            frame = encode_mit(d.sign * (q - d.zero), d.sign * dq, kp, kd, d.sign * tau, RANGES)
            q, dq, kp, kd, tau = decode_mit(frame, RANGES)
            out[:, j] = d.sign * q + d.zero, d.sign * dq, kp, kd, d.sign * tau
        return out

    def read(self) -> dict[str, Array]:
        reading, zero = dict(super().read()), np.zeros(len(self.joints))
        rows = self._round(np.stack([reading["q"], reading["dq"], zero, zero, reading["tau"]]))
        whole = np.rint(reading["quat"] * 32767)
        gyro = np.rint(np.clip(reading["gyro"] / 40.0, -1, 1) * 32767) * (40.0 / 32767)
        return reading | {"q": rows[0], "dq": rows[1], "tau": rows[4], "quat": whole / np.linalg.norm(whole), "gyro": gyro}

    def write(self, command: Any) -> None:
        super().write(dict(zip(MIT, self._round(np.stack([command[name] for name in MIT])), strict=True)))


class InStep:
    """A robot over UDP whose server takes its turn with each command."""

    realtime = False

    def __init__(self, inside: Emulated):
        self._server = Server(inside, port=0)
        self._now = 0.0
        self._robot = _hello(self._server)
        self.joints, self.period = self._robot.joints, self._robot.period
        self._server._tell(0.0)  # the state before anything was commanded

    @property
    def mode(self) -> str:
        return self._robot.mode

    def read(self) -> dict[str, Array]:
        self._robot.poll()
        return self._robot.latest()

    def write(self, command: Any) -> None:
        self._robot.write(command)
        self._now += self.period
        self._server.tick(self._now)

    def stop(self) -> None:
        self._robot.stop()
        self._server.tick(self._now)
        self._server.close()


def _hello(server: Server) -> UdpRobot:
    """Say hello to a server that nobody runs yet."""
    import threading

    ended = threading.Event()

    def answer() -> None:
        while not ended.wait(0.005):
            server.listen(0.0)

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        return UdpRobot("127.0.0.1", server.port)
    finally:
        ended.set()
        thread.join()


class Late(InProcess):
    """In process, with commands that come some periods late."""

    def __init__(self, inside: Emulated, periods: int):
        super().__init__(inside)
        self._waiting: deque[Any] = deque(maxlen=periods + 1)

    def write(self, command: Any) -> None:
        self._waiting.append({name: np.array(command[name]) for name in MIT})
        super().write(self._waiting[0])


def motion(make: Callable[[Emulated], Any], period: float, seconds: float) -> tuple[Array, Array]:
    """True and measured positions of the joints at every command. Shape of each: (ticks, joints)."""
    policy, model = load_policy(POLICY), load_robot("quadruped")
    inside = Emulated(StandInSpec("quadruped", seed=SEED), period=period)
    runner, poses = Runner(make(inside), model, policy, COMMAND, limits_of(model, policy.contract)), list[Array]()
    runner.on_tick = lambda now: poses.append(np.stack([inside.data.qpos[7:], runner.link.q]))
    out = runner.run(seconds)
    assert not out.reason, out.reason
    if hasattr(runner.link.robot, "close"):
        runner.link.robot.close()
    both = np.array(poses)
    return both[:, 0], both[:, 1]


def ways(config: CanConfig) -> tuple[Callable[[Emulated], Any], ...]:
    """In process, in process with rounding, and over CAN; drives on a bus are asked once before the first command."""

    def asked(inside: Emulated) -> Emulated:
        inside.step()
        return inside

    return lambda e: InProcess(asked(e)), lambda e: Rounded(asked(e), config), lambda e: OnVirtualBus(e, config)


def apart(one: Array, two: Array) -> Array:
    """The largest difference of a joint at each tick [rad]. Shape: (ticks,)."""
    n = min(len(one), len(two))
    return np.abs(one[:n] - two[:n]).max(axis=1)


def gait(q: Array, period: float, seconds: float) -> Array:
    """Mean and spread of each joint's angle while it walks [rad]. Shape: (2, joints)."""
    walking = q[round(WALKS / period) : round(seconds / period)]
    return np.stack([walking.mean(axis=0), walking.std(axis=0)])


def over_udp(seconds: float) -> tuple[Array, float]:
    """Measured positions (ticks, joints) of a stand-in in another process, in real time; and how late commands were [s]."""
    policy, model, seen = load_policy(POLICY), load_robot("quadruped"), list[Array]()
    with tempfile.TemporaryDirectory() as name:
        server, port = served(Path(name), seconds + 30)
        try:
            runner = Runner(UdpRobot("127.0.0.1", port), model, policy, COMMAND, limits_of(model, policy.contract))
            runner.check()
            runner.on_tick = lambda now: seen.append(runner.link.q.copy())
            out = runner.run(seconds)
        finally:
            server.terminate()
            server.communicate()
    assert not out.reason, out.reason
    return np.array(seen), 1e-6 * (out.times["round_trip"]["p99.9"] + out.times["policy"]["p99.9"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=12.0)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    seconds, began = given.seconds, time.perf_counter()
    config = can_config(load_robot("quadruped").joints)
    plain, rounded, can = (motion(make, 0.002, seconds)[0] for make in ways(config))
    stepped, (live, lag) = motion(InStep, 0.001, seconds)[0], over_udp(seconds)
    late = [motion(lambda e, k=k: Late(e, k), 0.001, seconds) for k in (0, 1, 2, max(3, round(1e3 * lag)))]
    gaits = [gait(measured, 0.001, seconds) for _, measured in late]
    explained = max(float(np.abs(a - b).max()) for a in gaits for b in gaits)
    udp = min(float(np.abs(gait(live, 0.001, seconds) - g).max()) for g in gaits)
    standing = round(1.5 / 0.002)
    out = {
        "can_to_process_standing_rad": float(apart(can, plain)[:standing].max()),
        "can_to_process_rad": float(apart(can, plain).max()),
        "can_to_rounded_rad": float(apart(can, rounded).max()),
        "udp_in_step_rad": float(apart(stepped, late[0][0]).max()),
        "late_ms": round(1e3 * lag, 1),
        "late_changes_gait_by_rad": explained,
        "udp_gait_off_by_rad": udp,
        "seconds": round(time.perf_counter() - began, 1),
    }
    out["passed"] = out["can_to_rounded_rad"] <= 1e-6 and out["udp_in_step_rad"] == 0.0 and udp <= explained
    print(json.dumps(out))


if __name__ == "__main__":
    main()
