"""A stand-in as a process of its own: it keeps its own clock, sends its state over UDP, and takes commands from one program."""

import json
import math
import secrets
import select
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gapless.arrays import Array
from gapless.deploy import packets
from gapless.deploy.emulated import DRIVEN, FALLBACK, IDLE, MODES, Emulated
from gapless.deploy.realtime import Pace, Times, claim, undisturbed
from gapless.errors import BadInput

PORT = 7447
FORGOTTEN = 1.0
"""s of silence after which another program may take over."""


@dataclass(frozen=True)
class Line:
    """How bad the line between robot and program is, besides what the machine itself does."""

    jitter: float = 0.0
    """Largest extra delay of a state that is sent [s]."""
    loss: float = 0.0
    """Share of packets that are lost, either way."""


class Server:
    """Serves an emulated robot until it is told to end."""

    def __init__(self, robot: Emulated, host: str = "127.0.0.1", port: int = PORT, line: Line = Line(), seed: int = 0):  # noqa: B008
        self.robot, self.line = robot, line
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self._socket.bind((host, port))
        except OSError as error:
            raise BadInput(f"{host}:{port}: cannot serve there ({error.strerror}): name another --port") from None
        self._socket.setblocking(False)
        self.port = int(self._socket.getsockname()[1])
        self._peer: tuple[str, int] | None = None
        self._asked: tuple[str, int, int] | None = None
        self._session, self._number, self._sent, self._spoken = 0, 0, 0, -math.inf
        self._rng = np.random.default_rng(seed)
        self._late: list[tuple[float, bytes]] = []
        self.ignored, self.refused, self.lost = 0, 0, 0
        """Packets that were none, came from somebody else, or were missing between two numbers."""
        self._state = np.zeros(packets.SUPPLY + 4 * len(robot.joints) + 7)
        self.times = Times()
        self.fallback_after = math.nan

    def describe(self) -> dict[str, object]:
        """What a program is told that says hello."""
        robot = self.robot
        floating = "quat" in robot.readings()
        last = None if math.isnan(self.fallback_after) else self.fallback_after
        told = {"name": robot.twin.name, "joints": list(robot.joints), "period": robot.period, "floating": floating}
        return {**told, "last_fallback": last}

    def run(self, seconds: float = math.inf, ended: Callable[[], bool] = lambda: False) -> None:
        """Serve in real time."""
        claim(50)
        with undisturbed():
            pace = Pace(self.robot.period)
            start = time.monotonic()
            while time.monotonic() - start < seconds and not ended():
                now = pace.wait()
                self.tick(now)
                self.times.add(time.monotonic() - now)
        self.missed = pace.missed

    def tick(self, now: float) -> None:
        """One period: what has arrived, physics, and the new state."""
        self.listen(now)
        self.robot.step()
        if self.robot.mode == FALLBACK and math.isnan(self.fallback_after):
            self.fallback_after = now - self._spoken
        if self._peer is not None:
            self._tell(now)

    def listen(self, now: float) -> None:
        """Take what has arrived."""
        while select.select([self._socket], [], [], 0)[0]:
            try:
                data, sender = self._socket.recvfrom(packets.LARGEST + 1)
            except OSError:
                break
            self._heard(data, sender, now)

    def _heard(self, data: bytes, sender: tuple[str, int], now: float) -> None:
        packet = packets.opened(data)
        if packet is None:
            self.ignored += 1
            return
        kind, joints, session, number, body = packet
        if kind == packets.HELLO and not body:
            self._greet((*sender, session), now)
            return
        if joints != len(self.robot.joints) or session != self._session or sender != self._peer or number <= self._number:
            self.ignored += 1
            return
        if kind == packets.STOP and not body:
            self.robot.stop()
            return
        values = packets.numbers(body, packets.STAMPS + 5 * joints) if kind == packets.COMMAND else None
        if values is None:
            self.ignored += 1
            return
        if self.line.loss and self._rng.random() < self.line.loss:
            return
        self.lost += number - self._number - 1
        self._number, self._spoken = number, now
        self.robot.take(values[packets.STAMPS :].reshape(5, joints))

    def _greet(self, asked: tuple[str, int, int], now: float) -> None:
        """Begin a session, unless another program has one; the same program that asks again has it already."""
        sender = asked[:2]
        if self._peer not in (None, sender) and self.robot.mode == DRIVEN and now - self._spoken < FORGOTTEN:
            self.refused += 1
            self._socket.sendto(packets.sealed(packets.REFUSED, 0, 0, 0, b"{}"), sender)
            return
        body = json.dumps(self.describe()).encode()
        if asked == self._asked:
            self._socket.sendto(packets.sealed(packets.WELCOME, len(self.robot.joints), self._session, 0, body), sender)
            return
        self._asked, self._peer, self._session, self._number, self._sent = asked, sender, secrets.randbits(63) | 1, 0, 0
        if self.robot.mode != IDLE:  # whoever says hello has looked at the robot
            kept = self.robot.counts, self.robot.most
            self.robot.reset()
            self.robot.counts, self.robot.most = kept
        self.fallback_after = math.nan
        self._socket.sendto(packets.sealed(packets.WELCOME, len(self.robot.joints), self._session, 0, body), sender)

    def _tell(self, now: float) -> None:
        reading, n = self.robot.readings(), len(self.robot.joints)
        self._sent += 1
        fill(self._state, reading, n)
        self._state[2:6] = MODES.index(self.robot.mode), self._number, self.robot.time - max(self.robot.heard, 0.0), self.lost
        if self.line.loss and self._rng.random() < self.line.loss:
            return
        data = packets.sealed(packets.STATE, n, self._session, self._sent, self._state.tobytes())
        if not self.line.jitter:
            self._send(data)
            return
        self._late.append((now + self._rng.random() * self.line.jitter, data))
        for entry in [e for e in self._late if e[0] <= now]:
            self._late.remove(entry)
            self._send(entry[1])

    def _send(self, data: bytes) -> None:
        try:
            self._socket.sendto(data, self._peer)  # type: ignore[arg-type]
        except OSError:
            self.ignored += 1

    def close(self) -> None:
        self._socket.close()


def fill(state: Array, reading: dict[str, Array], joints: int) -> None:
    """A reading as the numbers of a state: time, battery, ..., then q, dq, tau and temperature, then quaternion and gyro."""
    state[0], state[1] = reading["time"], reading["battery"]
    first = packets.SUPPLY
    for signal in ("q", "dq", "tau", "temperature"):
        state[first : first + joints] = reading[signal]
        first += joints
    if "quat" in reading:
        state[first : first + 4], state[first + 4 : first + 7] = reading["quat"], reading["gyro"]
