"""A robot over UDP: the protocol of `gapless standin --serve`, by name, with lost packets counted."""

import math
import os
import select
import socket
import time
from collections.abc import Mapping

import numpy as np

from gapless import checks
from gapless.arrays import Array
from gapless.deploy import packets
from gapless.deploy.emulated import MODES
from gapless.errors import BadInput
from gapless.robots import MIT

ANSWER, TRIES, SILENCE = 0.3, 5, 1.0
"""s in which a robot answers a hello, and how often it is said."""
MOST_JOINTS = 64


class UdpRobot:
    """A robot of the protocol at HOST:PORT; opening it says hello and touches nothing."""

    realtime = True

    def __init__(self, host: str, port: int):
        where = f"udp://{host}:{port}"
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 18)
        try:
            self._socket.connect((host, port))
        except OSError as error:
            raise BadInput(f"{where}: there is no such address ({error.strerror})") from None
        self._session, described = self._hello(where)
        self.said = described
        """What it says about itself."""
        try:
            self.name = checks.text(described.get("name"), "name")
            self.joints: tuple[str, ...] = checks.names(described.get("joints"), "joints")
            self.period = checks.number(described.get("period"), "period", 1e-4, 1.0)
            self.floating = checks.flag(described.get("floating"), "floating")
        except BadInput as error:
            raise BadInput(f"{where}: answers wrongly ({error})") from None
        if not 0 < len(self.joints) <= MOST_JOINTS:
            raise BadInput(f"{where}: answers wrongly ({len(self.joints)} joints)")
        n = len(self.joints)
        self._count = packets.SUPPLY + 4 * n + 7
        self._number, self._seen, self._stopped = 0, 0, False
        self.lost, self.ignored = 0, 0
        """States that never came, and packets that were none."""
        self.mode, self.answered, self.answered_late = MODES[0], 0, 0.0
        self._body = np.zeros(packets.STAMPS + 5 * n)
        self._state: Array = np.zeros(self._count)
        self.arrived = math.nan
        """When the newest state came, on this computer's clock [s]."""
        self.computed = math.nan

    def _hello(self, where: str) -> tuple[int, dict[str, object]]:
        odd, hello = "", packets.sealed(packets.HELLO, 0, int.from_bytes(os.urandom(7)), 0, b"")
        for _ in range(TRIES):  # the same each time: a robot that answers late begins one session, not one for each
            try:
                self._socket.send(hello)
                end = time.monotonic() + ANSWER
                while (left := end - time.monotonic()) > 0 and select.select([self._socket], [], [], left)[0]:
                    packet = packets.opened(self._socket.recv(packets.LARGEST + 1))
                    if packet is None:
                        odd = "something else answers there"
                    elif packet[0] == packets.REFUSED:
                        raise BadInput(f"{where}: another program commands this robot: stop it first")
                    elif packet[0] == packets.WELCOME and (described := packets.table(packet[4])) is not None:
                        return packet[2], described
            except OSError as error:
                odd = error.strerror or "refused"
        raise BadInput(f"{where}: no robot answers{f' ({odd})' if odd else ''}; is `gapless standin SPEC --serve` running?")

    def read(self) -> Mapping[str, Array]:
        """The newest state; blocks until there is one, for a second at most."""
        end = time.monotonic() + SILENCE
        while not self.poll():
            if not select.select([self._socket], [], [], max(0.0, end - time.monotonic()))[0] or time.monotonic() > end:
                raise BadInput("the robot is silent")
        return self.latest()

    def poll(self) -> bool:
        """Take what has arrived; whether there is a newer state now."""
        newer = False
        while True:
            try:
                packet = packets.opened(self._socket.recv(packets.LARGEST + 1, socket.MSG_DONTWAIT))
            except OSError:  # nothing more has come
                break
            if packet is None or packet[0] != packets.STATE or packet[2] != self._session or packet[1] != len(self.joints):
                self.ignored += 1
                continue
            if packet[3] <= self._seen or len(packet[4]) != 8 * self._count:
                self.ignored += 1
                continue
            self.lost += packet[3] - self._seen - 1 if self._seen else 0
            self._seen, self.arrived, newer = packet[3], time.monotonic(), True
            self._state = np.frombuffer(packet[4], "<f8")
            mode, answered, self.answered_late = self._state[2:5].tolist()
            self.mode = MODES[int(mode)] if 0 <= mode < len(MODES) else MODES[-1]
            self.answered = int(answered) if math.isfinite(answered) else 0
        return newer

    def latest(self) -> dict[str, Array]:
        """The newest state by signal."""
        n, first, state = len(self.joints), packets.SUPPLY, self._state
        out = {"time": state[0], "battery": state[1]}
        for signal in ("q", "dq", "tau", "temperature"):
            out[signal] = state[first : first + n]
            first += n
        return out | ({"quat": state[first : first + 4], "gyro": state[first + 4 : first + 7]} if self.floating else {})

    def write(self, command: Mapping[str, Array]) -> None:
        self._body[packets.STAMPS :] = np.concatenate([np.asarray(command[name], float) for name in MIT])
        self._send()

    def send(self, command: Array) -> None:
        """The same for an array (5, joints) by rows of MIT, without building anything."""
        self._body[packets.STAMPS :] = command.ravel()
        self._send()

    def _send(self) -> None:
        if self._stopped:
            return
        self._number += 1
        self._body[0], self._body[1] = time.monotonic(), self.computed if math.isfinite(self.computed) else 0.0
        self._put(packets.COMMAND, self._body.tobytes())

    def stop(self) -> None:
        if not self._stopped:
            for _ in range(3):  # any of them may be lost
                self._number += 1
                self._put(packets.STOP, b"")
        self._stopped = True

    def _put(self, kind: int, body: bytes) -> None:
        try:
            self._socket.send(packets.sealed(kind, len(self.joints), self._session, self._number, body))
        except OSError:
            self.ignored += 1  # a robot that went away is noticed by its silence

    def close(self) -> None:
        """Leave the line."""
        self._socket.close()
