"""Steering: what a policy is asked for, changed while it runs by keyboard, gamepad or UDP, within the contract's ranges.

keyboard          w/s, a/d and q/e change the first three commands by a tenth of their range; space asks for zero, x stops
                  softly, Escape damps the robot at once
/dev/input/js0    a gamepad's file: the left stick gives the first two commands, the right one the third; button 0 stops
udp:7448          packets on this computer with JSON such as [0.5, 0, 0], or "stop"; half a second of silence asks for zero
"""

import contextlib
import json
import os
import select
import socket
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gapless.deploy.runner import Runner
from gapless.errors import BadInput

KEYS = {"w": (0, 1), "s": (0, -1), "a": (1, 1), "d": (1, -1), "q": (2, 1), "e": (2, -1)}
STEP = 0.1
"""Share of a command's range by which a key changes it."""
EVENT = struct.Struct("<IhBB")
"""Of a Linux joystick: time [ms], value, type, number."""
BUTTON, AXIS = 1, 2
STICKS = {1: (0, -1), 0: (1, -1), 3: (2, -1)}
"""Axis to command and sign: a stick that is pushed forward or to the left is positive."""
MOST = 1000
"""Packets that are taken at a time: more than any sender has for us between two looks."""
SILENCE = 0.5
"""s after which a sender that said something is no longer there."""


class Steer:
    """Takes what a person wants and asks the runner that it was given to for it, within the contract's ranges."""

    def __init__(self, source: str):
        self.ignored, self._heard = 0, np.inf
        self._file, self._socket, self.port = -1, None, 0
        kind, _, port = source.partition(":")
        if source == "keyboard":
            if not sys.stdin.isatty():
                raise BadInput("--steer keyboard needs a terminal to type in")
            self._file, self._take = sys.stdin.fileno(), self._typed
        elif kind == "udp" and port.isdecimal() and int(port) < 65536:
            self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            try:
                self._socket.bind(("127.0.0.1", int(port)))
            except OSError as error:
                raise BadInput(f"--steer {source}: cannot listen there ({error.strerror})") from None
            self.port, self._file, self._take = self._socket.getsockname()[1], self._socket.fileno(), self._told
        elif Path(source).is_char_device() or Path(source).is_fifo():
            self._file, self._take = os.open(source, os.O_RDONLY | os.O_NONBLOCK), self._pushed
        else:
            raise BadInput(f"--steer takes keyboard, udp:PORT or a gamepad's file such as /dev/input/js0, not {source!r}")

    def take(self, runner: Runner) -> None:
        """From now on this runner is steered."""
        self._runner = runner
        self._spans = [span or (-1.0, 1.0) for span in runner.contract.commands.values()]
        self.command = np.array(runner.pilot.runtime.command[0])

    @contextlib.contextmanager
    def typing(self) -> Iterator[None]:
        """Keys reach us one by one while this lasts."""
        if self._take != self._typed:
            yield
            return
        import termios
        import tty

        before = termios.tcgetattr(self._file)
        tty.setcbreak(self._file)
        try:
            yield
        finally:
            termios.tcsetattr(self._file, termios.TCSADRAIN, before)

    def poll(self) -> None:
        """Take what has come since the last time."""
        for _ in range(MOST):  # a packet that waits for its turn would be obeyed late, "stop" above all
            if not select.select([self._file], [], [], 0)[0]:
                break
            try:
                data = self._socket.recv(256) if self._socket is not None else os.read(self._file, 64 * EVENT.size)
            except OSError:  # a gamepad that was pulled out
                self._ask(np.zeros(len(self._spans)))
                return
            if self._socket is None and not data:
                break
            self._take(data)
        if time.monotonic() - self._heard > SILENCE:
            self._heard = np.inf
            self._ask(np.zeros(len(self._spans)))

    def _ask(self, command: Any) -> None:
        self.command = np.array([np.clip(c, *span) for c, span in zip(command, self._spans, strict=True)])
        self._runner.ask(self.command.tolist())

    def _typed(self, data: bytes) -> None:
        for key in data.decode(errors="replace"):
            wanted = self.command.copy()
            if key in KEYS and KEYS[key][0] < len(wanted):
                place, sign = KEYS[key]
                wanted[place] += sign * STEP * (self._spans[place][1] - self._spans[place][0])
                self._ask(wanted)
            elif key == " ":
                self._ask(0.0 * wanted)
            elif key == "x":
                self._runner.stop()
            elif key == "\x1b":
                self._runner.emergency()

    def _pushed(self, data: bytes) -> None:
        wanted = self.command.copy()
        for _, value, kind, number in EVENT.iter_unpack(data[: len(data) // EVENT.size * EVENT.size]):
            if kind == BUTTON and number == 0 and value:
                self._runner.stop()
            elif kind & ~0x80 == AXIS and number in STICKS and STICKS[number][0] < len(wanted):
                place, sign = STICKS[number]
                share, (low, high) = sign * value / 32767, self._spans[place]
                wanted[place] = share * (high if share > 0 else -low)
        self._ask(wanted)

    def _told(self, data: bytes) -> None:
        try:
            value = json.loads(data)
            if value == "stop":
                self._runner.stop()
                return
            wanted = np.array(value, float)
        except (ValueError, TypeError, RecursionError):
            wanted = np.zeros(0)
        if wanted.shape != (len(self._spans),) or not np.isfinite(wanted).all():
            self.ignored += 1
            return
        self._heard = time.monotonic()
        self._ask(wanted)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        elif self._take == self._pushed:
            os.close(self._file)
