"""The messages of an MCAP file in batches, with every length checked; several times quicker than one message at a time."""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from gapless.errors import BadInput
from gapless.logs import disk

MAGIC = b"\x89MCAP0\r\n"
RECORD = struct.Struct("<BQ")
MESSAGE = struct.Struct("<HIQQ")
CHUNK = struct.Struct("<QQQI")
LOOSE = 4 << 20
"""Bytes of messages outside of chunks that are gathered before they are handed on."""


@dataclass(frozen=True)
class Channel:
    """A topic: what its messages are called, how they are encoded, and what the writer says about them."""

    topic: str
    schema: str
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

    channels: dict[int, Channel] = field(default_factory=dict)
    metadata: dict[str, dict[str, str]] = field(default_factory=dict)
    schemas: dict[int, str] = field(default_factory=dict)


def batches(path: Path, contents: Contents) -> Iterator[dict[int, Batch]]:
    """Messages by channel, a chunk at a time; `contents` fills up on the way."""
    size = disk.regular(path).stat().st_size
    total, limit = 0, disk.expansion_limit(size)
    loose = bytearray()
    with path.open("rb") as file:
        if file.read(8) != MAGIC:
            raise BadInput(f"{path}: byte 0: this is no MCAP file")
        while True:
            place = file.tell()
            head = file.read(RECORD.size)
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
            if opcode in (0x03, 0x04, 0x05):
                loose += head + file.read(length)
                if len(loose) > LOOSE:
                    yield _split(path, place, bytes(loose), contents)
                    loose.clear()
            elif opcode == 0x06:
                data = _unpacked(path, place, file.read(length))
                total += len(data)
                if total > limit:
                    raise BadInput(
                        f"{path}: byte {place}: unpacks to more than {limit} bytes, {disk.MAX_EXPANSION} times its size"
                    )
                yield _split(path, place, data, contents)
            elif opcode == 0x0C:
                name, entries = _metadata(path, place, file.read(length))
                contents.metadata[name] = entries
            else:
                file.seek(length, 1)
    if loose:
        yield _split(path, place, bytes(loose), contents)


def _unpacked(path: Path, place: int, chunk: bytes) -> bytes:
    """The records inside of a chunk."""
    try:
        _, _, size, crc = CHUNK.unpack_from(chunk)
        name, at = _string(chunk, CHUNK.size)
        (length,) = struct.unpack_from("<Q", chunk, at)
    except (struct.error, ValueError):
        raise BadInput(f"{path}: byte {place}: a damaged chunk") from None
    packed = memoryview(chunk)[at + 8 :]
    if length != len(packed):
        raise BadInput(f"{path}: byte {place}: a chunk of {len(packed)} bytes says it has {length}")
    if size > disk.expansion_limit(len(packed)):
        raise BadInput(f"{path}: byte {place}: a chunk of {length} bytes claims to unpack to {size}")
    disk.require_memory(path, size)
    try:
        if name == "zstd":
            import zstandard

            data = zstandard.ZstdDecompressor().decompressobj(write_size=max(size, 1)).decompress(_framed(packed, size))
        elif name == "lz4":
            import lz4.frame  # type: ignore[import-untyped]

            data = lz4.frame.LZ4FrameDecompressor().decompress(packed, max_length=size + 1)
        elif name == "":
            data = bytes(packed)
        else:
            raise BadInput(f"{path}: byte {place}: compression {name[:20]!r} is not known, only zstd and lz4")
    except ImportError:
        raise BadInput(f"{path}: reading MCAP needs more packages: pip install 'gapless[logs]'") from None
    except BadInput:
        raise
    except Exception as error:  # each compressor has errors of its own
        raise BadInput(f"{path}: byte {place}: a damaged {name} chunk ({disk.reason(error)})") from None
    if len(data) != size or (crc and zlib.crc32(data) != crc):
        raise BadInput(f"{path}: byte {place}: a damaged chunk, its checksum does not fit")
    return data


def _framed(packed: memoryview, size: int) -> memoryview:
    """zstd data, if it does not claim to be larger than the chunk says."""
    import zstandard

    claimed = zstandard.frame_content_size(packed)
    if claimed > size:
        raise ValueError(f"it claims {claimed} bytes, the chunk {size}")
    if zstandard.get_frame_parameters(packed).window_size > max(8 << 20, 2 * size):
        raise ValueError("its window is larger than its content")
    return packed


def _split(path: Path, place: int, data: bytes, contents: Contents) -> dict[int, Batch]:
    """Messages by channel; schemas and channels go to `contents`."""
    found: dict[int, Batch] = {}
    at, end = 0, len(data)
    try:
        while at < end:
            opcode, length = RECORD.unpack_from(data, at)
            start, at = at + 9, at + 9 + length
            if at > end:
                raise ValueError("a record goes beyond it")
            if opcode == 0x05:
                channel, _, log_time, _ = MESSAGE.unpack_from(data, start)
                batch = found.get(channel)
                if batch is None:
                    batch = found[channel] = Batch()
                batch.log_times.append(log_time)
                batch.data.append(data[start + 22 : at])
            elif opcode == 0x03:
                (number,) = struct.unpack_from("<H", data, start)
                contents.schemas[number] = _string(data, start + 2)[0]
            elif opcode == 0x04:
                number, schema = struct.unpack_from("<HH", data, start)
                topic, after = _string(data, start + 4)
                encoding, after = _string(data, after)
                metadata = _map(data, after)
                contents.channels[number] = Channel(topic, contents.schemas.get(schema, ""), encoding, metadata)
    except (struct.error, ValueError) as error:
        raise BadInput(f"{path}: byte {place}: damaged records ({error})") from None
    missing = [c for c in found if c not in contents.channels]
    if missing:
        raise BadInput(f"{path}: byte {place}: messages of channel {missing[0]}, which no record describes")
    return found


def _metadata(path: Path, place: int, data: bytes) -> tuple[str, dict[str, str]]:
    try:
        name, at = _string(data, 0)
        return name, _map(data, at)
    except (struct.error, ValueError) as error:
        raise BadInput(f"{path}: byte {place}: a damaged metadata record ({error})") from None


def _string(data: bytes, at: int) -> tuple[str, int]:
    """A text and the place behind it."""
    (length,) = struct.unpack_from("<I", data, at)
    if at + 4 + length > len(data):
        raise ValueError("a text goes beyond its record")
    return data[at + 4 : at + 4 + length].decode(), at + 4 + length


def _map(data: bytes, at: int) -> dict[str, str]:
    (length,) = struct.unpack_from("<I", data, at)
    at, end, found = at + 4, at + 4 + length, {}
    while at < end:
        key, at = _string(data, at)
        found[key], at = _string(data, at)
    return found
