"""Packets between a robot that is served over UDP and the program that commands it; everything else is ignored and counted.

Each has a magic word, a version, a kind, a session that the robot gave out, a number that grows, and a CRC-32 over all of it.
A packet of another length, kind, session or checksum, one that comes late, and one with a number that is not finite is none.
"""

import json
import struct
import zlib
from typing import Any

import numpy as np

from gapless.arrays import Array

MAGIC, VERSION = b"GAPL", 1
HEAD = struct.Struct("<4sBBHQQ")
"""Magic, version, kind, joints, session, number."""
CRC = struct.Struct("<I")
HELLO, WELCOME, STATE, COMMAND, STOP, REFUSED = range(1, 7)
STAMPS = 2
"""Of a command: when it was sent, and when what it answers was computed, on the sender's clock [s]."""
SUPPLY = 8
"""Numbers of a state besides the joints': time, battery, mode, number and age of the last command, lost, and two spare ones."""
LARGEST = 4096
"""Bytes of any packet."""


def sealed(kind: int, joints: int, session: int, number: int, body: bytes) -> bytes:
    """A packet."""
    data = HEAD.pack(MAGIC, VERSION, kind, joints, session, number) + body
    return data + CRC.pack(zlib.crc32(data))


def opened(data: bytes) -> tuple[int, int, int, int, bytes] | None:
    """Kind, joints, session, number and body of a packet; None for anything else."""
    if not HEAD.size + CRC.size <= len(data) <= LARGEST:
        return None
    if CRC.unpack_from(data, len(data) - CRC.size)[0] != zlib.crc32(data[: -CRC.size]):
        return None
    magic, version, kind, joints, session, number = HEAD.unpack_from(data)
    if magic != MAGIC or version != VERSION:
        return None
    return kind, joints, session, number, data[HEAD.size : -CRC.size]


def numbers(body: bytes, count: int) -> Array | None:
    """The numbers of a body, all finite; None where it does not hold that many."""
    if len(body) != 8 * count:
        return None
    values = np.frombuffer(body, "<f8")
    return values if np.isfinite(values).all() else None


def table(body: bytes) -> dict[str, Any] | None:
    """The JSON table of a body; None where it holds none."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
