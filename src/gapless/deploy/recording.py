"""Recording: every run as an MCAP file that is whole up to the last tenth of a second, whatever happens to the program.

Rows of numbers are put into rings that were made before the run; a thread of its own writes what is new every 20 ms as one
chunk with a checksum, and another asks the disk to keep it. `gapless.logs` reads the file, also one that was never finished.
"""

import contextlib
import json
import os
import struct
import threading
import time
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gapless.arrays import Array
from gapless.deploy.realtime import claim
from gapless.errors import BadInput
from gapless.logs import RECORDER, ROWS

MAGIC = b"\x89MCAP0\r\n"
EVERY, SYNCED = 0.02, 0.04
"""s between two writes, and between two times that the disk is asked to keep what was written."""
RANK = 20
"""Priority of the thread that writes, below those of loop and policy."""
RING = 4096
"""Rows of a channel that wait to be written, at most: four seconds at 1 kHz."""


class Channel:
    """Rows of one clock on their way to the file."""

    def __init__(self, number: int, topic: str, columns: Mapping[str, Sequence[str]]):
        self.number, self.topic, self.columns = number, topic, {k: list(v) for k, v in columns.items()}
        self.width = 2 + sum(len(v) for v in self.columns.values())
        self.rows = np.full((RING, self.width), 0.0)  # unlike zeros, which take their memory only while the loop runs
        self.put, self.taken, self.lost = 0, 0, 0

    def row(self) -> Array:
        """Where the next row goes: time and host time [s], then the signals in the order of the columns."""
        return self.rows[self.put % RING]

    def done(self) -> None:
        """The row is complete."""
        self.put += 1

    def fresh(self) -> Array:
        """The rows that were not taken yet."""
        first, end = self.taken, self.put
        if end - first > RING - 64:
            self.lost += end - first - (RING - 64)
            first = end - (RING - 64)
        self.taken = end
        return self.rows[np.arange(first, end) % RING]


class Recorder:
    """Writes channels and events of a run to a file."""

    def __init__(self, path: Path, meta: Mapping[str, Any], channels: Sequence[Channel]):
        """Begin the file.

        Args:
            path: a new file that ends in .mcap.
            meta: what a log says besides its signals.
            channels: numbered from 1 on.
        """
        if path.suffix != ".mcap":
            raise BadInput(f"{path}: a run is recorded as .mcap")
        self._channels = channels
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        except FileExistsError:
            raise BadInput(f"{path}: is there already; a recording replaces nothing") from None
        except OSError as error:
            raise BadInput(f"{path}: cannot be written ({error.strerror})") from None
        self._events: list[bytes] = []
        self._number, self._ended, self.bytes = 0, threading.Event(), 0
        self.slowest, self.trouble, self._cut = 0.0, "", False
        """Longest time that a write took [s], and why the file holds less than the run; empty where it holds all of it."""
        joints = list(dict.fromkeys(c for ch in channels for k, v in ch.columns.items() for c in v if k == "q"))
        header = {"version": 1, "joints": joints, "meta": dict(meta), "provenance": {"notes": []}, "order": None}
        head = (
            MAGIC
            + _record(0x01, _text("") + _text(RECORDER))
            + _record(0x03, struct.pack("<H", 1) + _text(ROWS) + _text("") + _text(""))
        )
        head += _record(0x03, struct.pack("<H", 2) + _text("gapless.Event") + _text("jsonschema") + _text('{"type": "object"}'))
        head += _record(0x0C, _text("gapless") + _map({"header": json.dumps(header)}))
        for ch in channels:
            told = _map({"columns": json.dumps(ch.columns)})
            head += _record(0x04, struct.pack("<HH", ch.number, 1) + _text(ch.topic) + _text("f64") + told)
        head += _record(0x04, struct.pack("<HH", 1000, 2) + _text("/events") + _text("json") + _map({}))
        self._write(head)
        self._threads = [threading.Thread(target=f, name="recorder", daemon=True) for f in (self._run, self._sync)]
        for thread in self._threads:
            thread.start()

    def event(self, **what: Any) -> None:
        """Note something that happens seldom."""
        stamp = time.time_ns()
        self._events.append(struct.pack("<HIQQ", 1000, 0, stamp, stamp) + json.dumps(what).encode())

    def _run(self) -> None:
        claim(RANK)  # else a thread that nobody lets run could hold the interpreter that the loop waits for
        while not self._ended.wait(EVERY):
            self._flush()

    def _sync(self) -> None:
        claim(RANK)
        try:
            while not self._ended.wait(SYNCED):
                os.fdatasync(self._file)  # may take long on a busy disk; what was written meanwhile outlives the program anyway
        except OSError as error:
            self.trouble = f"the disk does not promise to keep it ({error.strerror})"

    def _flush(self) -> None:
        start, records = time.monotonic(), b""
        stamp = time.time_ns()
        for ch in self._channels:
            rows = ch.fresh()
            if len(rows):
                head = struct.pack("<HIQQ", ch.number, self._number & 0xFFFFFFFF, stamp, stamp)
                records += _record(0x05, head + rows.tobytes())
        events, self._events = self._events, []
        records += b"".join(_record(0x05, event) for event in events)
        if records:
            self._number += 1
            body = struct.pack("<QQQI", stamp, stamp, len(records), zlib.crc32(records)) + _text("")
            self._write(_record(0x06, body + struct.pack("<Q", len(records)) + records))
        self.slowest = max(self.slowest, time.monotonic() - start)

    def _write(self, data: bytes) -> None:
        view = memoryview(b"" if self._cut else data)
        try:
            while view:
                view = view[os.write(self._file, view) :]
        except OSError as error:  # a robot does not fall because a disk is full; a gap in the file would be worse than its end
            self._cut, self.trouble = True, f"it ends early ({error.strerror})"
        self.bytes += len(data)

    def close(self) -> None:
        """Write what is left, and the end of the file."""
        if self._ended.is_set():
            return
        self._ended.set()
        for thread in self._threads:
            thread.join()
        self._flush()
        self._end()
        with contextlib.suppress(OSError):
            os.fsync(self._file)
        os.close(self._file)

    def _end(self) -> None:
        left_out = sum(channel.lost for channel in self._channels)
        if left_out:
            self.trouble = f"{left_out} rows are missing, as the disk was too slow"
        self._write(_record(0x0F, struct.pack("<I", 0)) + _record(0x02, struct.pack("<QQI", 0, 0, 0)) + MAGIC)


def _record(opcode: int, body: bytes) -> bytes:
    return struct.pack("<BQ", opcode, len(body)) + body


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<I", len(data)) + data


def _map(entries: Mapping[str, str]) -> bytes:
    data = b"".join(_text(k) + _text(v) for k, v in entries.items())
    return struct.pack("<I", len(data)) + data
