"""ROS 2 messages out of CDR by their definitions, a batch of equal layout at a time; and joint states into CDR."""

import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from gapless.errors import BadInput
from gapless.logs.ros2_definitions import HEADER, TEXT

JOINT_STATE = "sensor_msgs/JointState"
NUMBERS = {"float64": "<f8", "float32": "<f4", "int64": "<i8", "uint64": "<u8", "int32": "<i4", "uint32": "<u4"}
NUMBERS |= {"int16": "<i2", "uint16": "<u2", "int8": "i1", "uint8": "u1", "byte": "u1", "char": "u1", "bool": "?"}
FIELD = re.compile(r"([\w/]+)(?:<=\d+)?(\[(?:<=)?(\d*)\])?\s+(\w+)\s*(=?)")
"""Type, array, its length, name, and whether it is a constant."""
MOST_FIELDS = 1000
"""Of all definitions of a message."""
DEEPEST = 8
"""Messages inside messages."""
LARGEST = 1 << 20
"""Bytes of a message that is about joints."""


@dataclass(frozen=True)
class Field:
    """One line of a definition."""

    kind: str
    """A number of NUMBERS, a string, or another message."""
    name: str
    count: int | None
    """Length of an array; None for one value, 0 for as many as the message says."""


Definitions = dict[str, tuple[Field, ...]]


def plain_type(name: str) -> str:
    """sensor_msgs/msg/JointState as sensor_msgs/JointState."""
    return name.replace("/msg/", "/")


def definitions(kind: str, text: str) -> Definitions:
    """Those of a message and of its parts: as its file says (the form of MCAP), else those that are known.

    Raises BadInput where a part is missing or the text is none.
    """
    known = dict(_known())
    if text.strip():
        known |= _parsed(f"MSG: {kind}\n{text}")
    if kind not in known:
        raise BadInput(f"the bag does not say how {kind} is built: convert it to MCAP (`ros2 bag convert`), which does")
    return known


@cache
def _known() -> Definitions:
    return _parsed(TEXT)


def _parsed(text: str) -> Definitions:
    parts, kind, total = dict[str, list[Field]](), "", 0
    for line in text.splitlines():
        line = line.partition("#")[0].strip()
        if line.startswith("MSG:"):
            kind = plain_type(line[4:].strip())
            parts[kind] = []
        elif found := FIELD.match(line):
            of, array, length, name, constant = found.groups()
            total += 1
            if total > MOST_FIELDS:
                raise BadInput(f"the definition of a message has more than {MOST_FIELDS} fields")
            if not constant:
                bounded = bool(array) and "<=" in array
                count = None if not array else int(length) if length and not bounded else 0
                parts[kind].append(Field(_full(of, kind), name, count))
    return {kind: tuple(fields) for kind, fields in parts.items()}


def _full(name: str, inside: str) -> str:
    """The full name of a type that a definition names."""
    short = {"Header": "std_msgs/Header", "time": "builtin_interfaces/Time", "duration": "builtin_interfaces/Duration"}
    if name in NUMBERS or name in ("string", "wstring"):
        return name
    return short.get(name) or (plain_type(name) if "/" in name else f"{inside.rpartition('/')[0]}/{name}")


@dataclass(frozen=True)
class Layout:
    """Where everything is in a message; another one with the same lengths is laid out alike."""

    size: int
    lengths: tuple[int, ...]
    """Bytes at which the lengths of texts and arrays are, four bytes each."""
    texts: dict[str, tuple[tuple[int, int], ...]]
    """Field to first byte and length of each text."""
    numbers: dict[str, tuple[tuple[str, int, int], ...]]
    """Field to type, first byte and count of each run of numbers; fields of parts are called part.field."""


def layout_of(data: bytes, kind: str, known: Definitions) -> Layout:
    """Raises ValueError or struct.error where the message is damaged."""
    if not 4 <= len(data) <= LARGEST or data[1] != 1:
        raise ValueError("not little-endian CDR of at most 1 MB")
    walk = _Walk(data, known)
    walk.message(kind, "", 0)
    if len(data) - walk.offset > 7:
        raise ValueError(f"it has {len(data)} bytes, and {kind} as defined ends at byte {walk.offset}")
    texts = {name: tuple(places) for name, places in walk.texts.items()}
    return Layout(len(data), tuple(walk.lengths), texts, {name: tuple(runs) for name, runs in walk.numbers.items()})


class _Walk:
    """Goes through one message by its definition."""

    def __init__(self, data: bytes, known: Definitions):
        self.data, self.known, self.offset = data, known, 4
        self.lengths: list[int] = []
        self.texts: dict[str, list[tuple[int, int]]] = {}
        self.numbers: dict[str, list[tuple[str, int, int]]] = {}

    def message(self, kind: str, prefix: str, depth: int) -> None:
        fields = self.known.get(kind, ())
        if not fields or depth > DEEPEST:
            raise ValueError(f"its part {kind} is not defined" if not fields else "messages inside messages without end")
        for field in fields:
            self._field(field, prefix + field.name, depth)

    def _field(self, field: Field, name: str, depth: int) -> None:
        count = 1 if field.count is None else field.count or self._length()
        if field.kind in NUMBERS:
            size = np.dtype(NUMBERS[field.kind]).itemsize
            if count:
                self._align(size)
            self._advance(size * count)
            self.numbers.setdefault(name, []).append((NUMBERS[field.kind], self.offset - size * count, count))
            return
        for _ in range(min(count, len(self.data))):
            if field.kind == "string":
                length = self._length()
                self.texts.setdefault(name, []).append((self.offset, length))
                self._advance(length)
            elif field.kind == "wstring":
                raise ValueError("wide texts are not read")
            else:
                self.message(field.kind, f"{name}.", depth + 1)
        if field.kind == "string":
            self.texts.setdefault(name, [])

    def _length(self) -> int:
        self._align(4)
        (length,) = struct.unpack_from("<I", self.data, self.offset)
        self.lengths.append(self.offset)
        self._advance(4)
        if length > len(self.data) - self.offset:
            raise ValueError("a text or an array goes beyond its message")
        return int(length)

    def _align(self, to: int) -> None:
        self.offset += (4 - self.offset) % min(to, 8)  # CDR aligns from the end of its 4-byte encapsulation

    def _advance(self, count: int) -> None:
        self.offset += count
        if self.offset > len(self.data):
            raise ValueError("it is cut off")


@dataclass(frozen=True)
class Decoded:
    """Messages of one layout: their places in the batch, texts of the first, and numbers."""

    rows: np.ndarray
    layout: Layout
    data: np.ndarray
    """Shape: (messages, bytes)."""

    def text(self, field: str) -> tuple[str, ...]:
        """The texts of a field, which all messages here have in common if they were told apart by it."""
        first = self.data[0].tobytes()
        return tuple(first[a : a + max(n - 1, 0)].decode() for a, n in self.layout.texts.get(field, ()))

    def values(self, field: str) -> np.ndarray:
        """A field, or all numbers of a part one after the other. Shape: (messages, numbers), float64; no columns for none."""
        fields = [field] if field in self.layout.numbers else [f for f in self.layout.numbers if f.startswith(f"{field}.")]
        runs = [run for f in fields for run in self.layout.numbers[f] if run[2]]
        if not runs:
            return np.empty((len(self.rows), 0))
        parts = [self.data[:, a : a + n * np.dtype(kind).itemsize] for kind, a, n in runs]
        return np.hstack([np.ascontiguousarray(p).view(run[0]).astype(float) for p, run in zip(parts, runs, strict=True)])

    def nanoseconds(self, part: str) -> np.ndarray:
        """A time or duration, or several. Shape: (messages, times), int64."""
        seconds, rest = (self.values(f"{part}.{f}") for f in ("sec", "nanosec"))
        return seconds.astype(np.int64) * 1_000_000_000 + rest.astype(np.int64)


def decode(batch: Sequence[bytes], kind: str, known: Definitions, names: str) -> Iterator[Decoded]:
    """Messages told apart by layout and by the texts of one field (such as joint names).

    Raises ValueError or struct.error where one is damaged.
    """
    by_size: dict[int, list[int]] = {}
    for i, data in enumerate(batch):
        by_size.setdefault(len(data), []).append(i)
    for size, places in by_size.items():
        rows = np.array(places)
        table = np.frombuffer(b"".join(batch[i] for i in places), np.uint8).reshape(len(places), size)
        while len(rows):
            layout = layout_of(table[0].tobytes(), kind, known)
            fixed = np.zeros(size, bool)
            for a, n in [*((a, 4) for a in layout.lengths), *layout.texts.get(names, ())]:
                fixed[a : a + n] = True
            alike = (table[:, fixed] == table[0, fixed]).all(axis=1) & (table[:, 1] == 1)
            yield Decoded(rows[alike], layout, table[alike])
            rows, table = rows[~alike], table[~alike]


JOINT_STATE_DEFINITION = "\n".join(f"{f.kind}{'' if f.count is None else '[]'} {f.name}" for f in _known()[JOINT_STATE])
JOINT_STATE_DEFINITION += "".join(f"\n{'=' * 80}\nMSG:{part}" for part in HEADER.strip().split("MSG:")[1:3])
"""As MCAP files state it."""


def joint_states(stamps: np.ndarray, joints: Sequence[str], fields: dict[str, np.ndarray]) -> list[bytes]:
    """Messages of type JointState. stamps: [ns], shape (n,); fields: position, velocity, effort, each (n, joints)."""
    body = bytearray(b"\0\1\0\0" + bytes(8))  # encapsulation, stamp

    def length(count: int) -> None:
        body.extend(bytes((4 - len(body)) % 4) + struct.pack("<I", count))

    length(1)
    body.extend(b"\0")  # frame_id
    length(len(joints))
    for joint in joints:
        text = joint.encode() + b"\0"
        length(len(text))
        body.extend(text)
    places = {}
    for field in ("position", "velocity", "effort"):
        length(len(joints) if field in fields else 0)
        if field in fields:
            body.extend(bytes((4 - len(body)) % 8))
            places[field] = len(body)
            body.extend(bytes(8 * len(joints)))
    table = np.tile(np.frombuffer(bytes(body), np.uint8), (len(stamps), 1))
    seconds, rest = np.divmod(stamps, 1_000_000_000)
    table[:, 4:8] = seconds.astype("<i4")[:, None].view(np.uint8)
    table[:, 8:12] = rest.astype("<u4")[:, None].view(np.uint8)
    for field, start in places.items():
        numbers = np.ascontiguousarray(fields[field], "<f8")
        table[:, start : start + 8 * len(joints)] = numbers.view(np.uint8)
    return [row.tobytes() for row in table]
