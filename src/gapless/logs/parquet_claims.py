"""What a parquet file claims to hold, read before pyarrow makes room for it; a page of some bytes may claim 2 billion numbers.

pyarrow's own view of these figures ends the process where a file is damaged, so they are read here: the footer and the page
headers, in Thrift's compact encoding (parquet.thrift of Apache Parquet; thrift-compact-protocol.md of Apache Thrift).
"""

import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MAGIC = b"PAR1"
DEEPEST = 24
# Numbers of fields in parquet.thrift.
ROW_GROUPS, COLUMNS, META = 4, 1, 3
PATH, PACKED, DATA_AT, DICTIONARY_AT = 3, 7, 9, 11
PAGE_UNPACKED, PAGE_PACKED, PAGE_KINDS, PAGE_VALUES = 2, 3, (5, 7, 8), 1


def claims(path: Path, columns: list[str]) -> tuple[int, int]:
    """How many values, and bytes of unpacked pages, the named columns have. Raises ValueError where the file is damaged."""
    values, unpacked, wanted = 0, 0, [[c.encode()] for c in columns]
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if len(data) < 12 or data[:4] != MAGIC or data[-4:] != MAGIC:
            raise ValueError("it does not begin and end as parquet does")
        length = int.from_bytes(data[-8:-4], "little")
        if length > len(data) - 12:
            raise ValueError("its footer is longer than the file")
        footer, _ = _struct(data, len(data) - 8 - length, 0)
        for group in _field(footer, ROW_GROUPS, []):
            for chunk in _field(_table(group), COLUMNS, []):
                meta = _field(_table(chunk), META, {})
                if _field(meta, PATH, [])[:1] in wanted:
                    for page in _pages(data, meta):
                        unpacked += _field(page, PAGE_UNPACKED, 0)
                        values += max(_field(_field(page, kind, {}), PAGE_VALUES, 0) for kind in PAGE_KINDS)
    return values, unpacked


def _pages(data: mmap.mmap, meta: dict[int, Any]) -> Iterator[dict[int, Any]]:
    """The page headers of a column chunk."""
    offset = min((place for k in (DATA_AT, DICTIONARY_AT) if (place := _field(meta, k, 0)) > 0), default=0)
    end = offset + _field(meta, PACKED, 0)
    if not 0 < offset <= end <= len(data):
        raise ValueError("a column lies outside of the file")
    while offset < end:
        page, offset = _struct(data, offset, 0)
        packed = _field(page, PAGE_PACKED, 0)
        if not 0 <= packed <= len(data) - offset or _field(page, PAGE_UNPACKED, 0) < 0:
            raise ValueError("a page lies outside of the file")
        offset += packed
        yield page


def _field(struct: dict[int, Any], number: int, otherwise: Any) -> Any:
    """A field of a struct, of the type of what stands for it where it is left out."""
    value = struct.get(number, otherwise)
    if type(value) is not type(otherwise):
        raise ValueError(f"field {number} of its description is of the wrong kind")
    return value


def _table(value: Any) -> dict[int, Any]:
    return _field({0: value}, 0, {})


def _struct(data: mmap.mmap, offset: int, depth: int) -> tuple[dict[int, Any], int]:
    """A Thrift struct by field number, and the place behind it."""
    if depth > DEEPEST:
        raise ValueError("its description is nested too deeply")
    fields: dict[int, Any] = {}
    number = 0
    while True:
        kind, offset = _byte(data, offset)
        if kind == 0:
            return fields, offset
        if kind >> 4:
            number += kind >> 4
        else:
            number, offset = _integer(data, offset)
        fields[number], offset = _value(data, offset, kind & 15, depth)


def _value(data: mmap.mmap, offset: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in (1, 2):
        return kind == 1, offset
    if kind == 3:
        return _byte(data, offset)
    if kind in (4, 5, 6):
        return _integer(data, offset)
    if kind == 7:
        return None, offset + 8
    if kind == 8:
        length, offset = _varint(data, offset)
        if length > len(data) - offset:
            raise ValueError("a text goes beyond the file")
        return bytes(data[offset : offset + min(length, 256)]), offset + length  # names are shorter; the rest are statistics
    if kind in (9, 10):
        head, offset = _byte(data, offset)
        count, offset = (head >> 4, offset) if head >> 4 < 15 else _varint(data, offset)
        items = []
        for _ in range(count):
            item, offset = _byte(data, offset) if head & 15 in (1, 2) else _value(data, offset, head & 15, depth + 1)
            items.append(item)
        return items, offset
    if kind == 12:
        return _struct(data, offset, depth + 1)
    raise ValueError(f"its description holds a field of unknown kind {kind}")


def _byte(data: mmap.mmap, offset: int) -> tuple[int, int]:
    if offset >= len(data):
        raise ValueError("its description goes beyond the file")
    return data[offset], offset + 1


def _varint(data: mmap.mmap, offset: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte, offset = _byte(data, offset)
        value |= (byte & 127) << shift
        if byte < 128:
            return value, offset
    raise ValueError("a number in its description has no end")


def _integer(data: mmap.mmap, offset: int) -> tuple[int, int]:
    """Signed numbers are stored zigzag: 0, -1, 1, -2 ..."""
    value, offset = _varint(data, offset)
    return (value >> 1) ^ -(value & 1), offset
