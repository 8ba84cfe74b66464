"""The messages of an MCAP file in batches, with every length checked; several times quicker than one message at a time."""

import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from gapless import files as disk
from gapless.errors import BadInput

MAGIC = b"\x89MCAP0\r\n"
RECORD = struct.Struct("<BQ")
MESSAGE = struct.Struct("<HIQQ")
CHUNK = struct.Struct("<QQQI")
RECORDER = "gapless run"
"""What a recording of ours says that it was written by. It is read as far as it goes; other files must be whole."""
PIECE = 1 << 20
"""Bytes of records that are held at a time, however large a chunk is."""
WINDOW = 8 << 20
"""The largest window of zstd that is granted, in bytes: what every decoder should grant (RFC 8878, 3.1.1.1.2)."""


@dataclass(frozen=True)
class Channel:
    """A topic: what its messages are called, how they are encoded, and what the writer says about them."""

    topic: str
    schema: str
    definition: str
    """How a message is built, where the schema is in the form of ROS 2."""
    encoding: str
    metadata: dict[str, str]


@dataclass
class Batch:
    """Messages of one channel in the order of the file."""

    log_times: list[int] = field(default_factory=list)
    data: list[bytes] = field(default_factory=list)


@dataclass
class Contents:
    """What is known of a file while it is read: channels by number, and metadata records by name."""

    cut_off: bool = False
    """Whether the file is a recording of ours that was never finished: a crash or a power cut."""

    channels: dict[int, Channel] = field(default_factory=dict)
    metadata: dict[str, dict[str, str]] = field(default_factory=dict)
    schemas: dict[int, tuple[str, str]] = field(default_factory=dict)
    """Name and definition by number."""


def batches(path: Path, contents: Contents) -> Iterator[dict[int, Batch]]:
    """Messages by channel, a chunk at a time; `contents` fills up on the way."""
    size = disk.regular(path).stat().st_size
    total, limit = 0, disk.expansion_limit(size)
    loose, library = bytearray(), ""
    with path.open("rb") as file:
        if file.read(8) != MAGIC:
            raise BadInput(f"{path}: byte 0: this is no MCAP file")
        while True:
            place = file.tell()
            head = file.read(RECORD.size)
            short = len(head) < RECORD.size or RECORD.unpack(head)[1] > size - file.tell()
            if short and library == RECORDER:
                contents.cut_off = True
                break
            if len(head) < RECORD.size:
                raise BadInput(f"{path}: byte {place}: the file ends without a footer, it is truncated (try `mcap recover`)")
            opcode, length = RECORD.unpack(head)
            if length > size - file.tell():
                raise BadInput(f"{path}: byte {place}: a record of {length} bytes goes beyond the end of the file")
            if opcode == 0x02:
                file.seek(length, 1)
                if file.read(8) != MAGIC:
                    raise BadInput(f"{path}: byte {place}: the file does not end as MCAP does, it is truncated")
                break
            if opcode == 0x01:
                library = _library(path, place, file.read(length))
            elif opcode in (0x03, 0x04, 0x05):
                loose += head + file.read(length)
                if len(loose) > PIECE:
                    yield from _split(path, place, [bytes(loose)], contents)
                    loose.clear()
            elif opcode == 0x06:
                chunk = _chunk(path, place, file, length)
                total += chunk.size
                if total > limit:
                    raise BadInput(
                        f"{path}: byte {place}: unpacks to more than {limit} bytes, {disk.MAX_EXPANSION} times its size"
                    )
                if loose:  # the channels that a chunk's messages are of
                    yield from _split(path, place, [bytes(loose)], contents)
                    loose.clear()
                yield from _split(path, place, chunk.unpacked(), contents)
            elif opcode == 0x0C:
                name, entries = _metadata(path, place, file.read(length))
                contents.metadata[name] = entries
            else:
                file.seek(length, 1)
    if loose:
        yield from _split(path, place, [bytes(loose)], contents)


@dataclass
class _Chunk:
    """A chunk of a file: its content is unpacked a piece at a time, so that memory does not grow with it."""

    path: Path
    place: int
    file: BinaryIO
    name: str
    size: int
    crc: int
    left: int
    """Packed bytes not read yet"""

    def read(self, count: int) -> bytes:
        """Packed bytes, for a decompressor."""
        data = self.file.read(min(self.left, count))
        self.left -= len(data)
        return data

    def unpacked(self) -> Iterator[bytes]:
        """The content in pieces; what does not fit the chunk's size or checksum is refused after the last of them."""
        seen = crc = 0
        needs = f"{self.path}: reading MCAP needs more packages: pip install 'gapless[logs]'"
        damaged = f"{self.path}: byte {self.place}: a damaged {self.name} chunk"  # each compressor has errors of its own
        with disk.refusing(damaged, Exception), disk.refusing(needs, ImportError):
            for piece in self._pieces():
                seen, crc = seen + len(piece), zlib.crc32(piece, crc)
                if seen > self.size:
                    break
                yield piece
        if seen != self.size or (self.crc and crc != self.crc):
            raise BadInput(f"{self.path}: byte {self.place}: a damaged chunk, its checksum does not fit")
        self.file.seek(self.left, 1)

    def _pieces(self) -> Iterator[bytes]:
        if self.name == "zstd":
            import zstandard

            reader = zstandard.ZstdDecompressor(max_window_size=WINDOW).stream_reader(self)  # type: ignore[arg-type]
            while piece := reader.read(min(PIECE, self.size + 1)):
                yield piece
        elif self.name == "lz4":
            import lz4.frame  # type: ignore[import-untyped]

            packed = lz4.frame.LZ4FrameDecompressor()
            while not packed.eof:
                piece = packed.decompress(self.read(PIECE) if packed.needs_input else b"", max_length=PIECE)
                if not piece and packed.needs_input and not self.left:
                    break
                yield piece
        else:
            while piece := self.read(PIECE):
                yield piece


def _chunk(path: Path, place: int, file: BinaryIO, length: int) -> _Chunk:
    """The chunk that begins here, with its claims checked; the file is left at its content."""
    begin, head = file.tell(), file.read(min(length, CHUNK.size + 64))
    with disk.refusing(f"{path}: byte {place}: a damaged chunk", struct.error, ValueError):
        _, _, size, crc = CHUNK.unpack_from(head)
        name, offset = _string(head, CHUNK.size)
        (packed,) = struct.unpack_from("<Q", head, offset)
    if packed != length - offset - 8:
        raise BadInput(f"{path}: byte {place}: a chunk of {length - offset - 8} bytes says it has {packed}")
    if name not in ("", "zstd", "lz4"):
        raise BadInput(f"{path}: byte {place}: compression {name[:20]!r} is not known, only zstd and lz4")
    if size > disk.expansion_limit(packed):
        raise BadInput(f"{path}: byte {place}: a chunk of {packed} bytes claims to unpack to {size}")
    disk.require_memory(path, size)
    file.seek(begin + offset + 8)
    return _Chunk(path, place, file, name, size, crc, packed)


def _split(path: Path, place: int, pieces: Iterable[bytes], contents: Contents) -> Iterator[dict[int, Batch]]:
    """Messages by channel, for each piece of records; schemas and channels go to `contents`."""
    rest = b""
    for piece in pieces:
        data = rest + piece if rest else piece
        by_channel: dict[int, Batch] = {}
        offset, end = 0, len(data)
        with disk.refusing(f"{path}: byte {place}: damaged records", struct.error, ValueError):
            while offset + RECORD.size <= end:
                opcode, length = RECORD.unpack_from(data, offset)
                start, after = offset + RECORD.size, offset + RECORD.size + length
                if after > end:
                    break
                offset = after
                if opcode == 0x05:
                    channel, _, log_time, _ = MESSAGE.unpack_from(data, start)
                    batch = by_channel.get(channel)
                    if batch is None:
                        batch = by_channel[channel] = Batch()
                    batch.log_times.append(log_time)
                    batch.data.append(data[start + MESSAGE.size : offset])
                elif opcode == 0x03:
                    (number,) = struct.unpack_from("<H", data, start)
                    contents.schemas[number] = _schema(data, start + 2)
                elif opcode == 0x04:
                    number, schema = struct.unpack_from("<HH", data, start)
                    topic, after = _string(data, start + 4)
                    encoding, after = _string(data, after)
                    metadata = _map(data, after)
                    contents.channels[number] = Channel(topic, *contents.schemas.get(schema, ("", "")), encoding, metadata)
        missing = [c for c in by_channel if c not in contents.channels]
        if missing:
            raise BadInput(f"{path}: byte {place}: messages of channel {missing[0]}, which no record describes")
        rest = data[offset:]
        if by_channel:
            yield by_channel
    if rest:
        raise BadInput(f"{path}: byte {place}: damaged records (a record goes beyond it)")


def _library(path: Path, place: int, data: bytes) -> str:
    """What wrote the file, as its header says."""
    with disk.refusing(f"{path}: byte {place}: a damaged header", struct.error, ValueError):
        return _string(data, _string(data, 0)[1])[0]


def _metadata(path: Path, place: int, data: bytes) -> tuple[str, dict[str, str]]:
    with disk.refusing(f"{path}: byte {place}: a damaged metadata record", struct.error, ValueError):
        name, offset = _string(data, 0)
        return name, _map(data, offset)


def _string(data: bytes, offset: int) -> tuple[str, int]:
    """A text and the place behind it."""
    (length,) = struct.unpack_from("<I", data, offset)
    if offset + 4 + length > len(data):
        raise ValueError("a text goes beyond its record")
    return data[offset + 4 : offset + 4 + length].decode(), offset + 4 + length


def _schema(data: bytes, offset: int) -> tuple[str, str]:
    """Name and definition of a schema; the definition is empty where it is not in the form of ROS 2."""
    name, offset = _string(data, offset)
    encoding, offset = _string(data, offset)
    return name, _string(data, offset)[0] if encoding == "ros2msg" else ""


def _map(data: bytes, offset: int) -> dict[str, str]:
    (length,) = struct.unpack_from("<I", data, offset)
    offset, end, entries = offset + 4, offset + 4 + length, {}
    while offset < end:
        key, offset = _string(data, offset)
        entries[key], offset = _string(data, offset)
    return entries
