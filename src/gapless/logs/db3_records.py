"""The messages of a ROS 2 bag in SQLite (.db3) in batches; of the file only plain tables are believed."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from gapless import files as disk
from gapless.errors import BadInput

ROWS = 512
"""Messages that are held at a time."""
TABLES = {"topics": ("id", "name", "type", "serialization_format"), "messages": ("topic_id", "timestamp", "data")}
DEFINITIONS = ("topic_type", "encoded_message_definition")


@dataclass(frozen=True)
class Batch:
    """Messages of one topic in the order of the file."""

    topic: str
    kind: str
    definition: str
    log_times: list[int]
    data: list[bytes]


def batches(path: Path) -> Iterator[Batch]:
    """Messages by topic, some hundred at a time."""
    size = disk.regular(path).stat().st_size
    with path.open("rb") as file:
        if file.read(16) != b"SQLite format 3\0":
            packed = " (unpack it first: `zstd -d`)" if path.suffix == ".zstd" else ""
            raise BadInput(f"{path}: byte 0: this is no SQLite file, as a .db3 bag is{packed}")
    with (
        disk.refusing(f"{path}: a damaged bag", sqlite3.Error, UnicodeDecodeError, OverflowError),
        closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as base,
    ):
        base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, max(size, 4096))  # no value of a file is larger than the file
        base.execute("PRAGMA trusted_schema = OFF")
        _check(path, base)
        yield from _read(path, base)


def _check(path: Path, base: sqlite3.Connection) -> None:
    """Raise unless what is read are tables of plain columns: views and generated columns could compute anything."""
    kinds = dict(base.execute("SELECT name, type FROM sqlite_master WHERE sql NOT LIKE 'CREATE VIRTUAL%'").fetchmany(1000))
    for table in TABLES:
        if kinds.get(table) != "table":
            raise BadInput(f"{path}: no table {table!r}, so this is no ROS 2 bag")
    for table in [*TABLES, *(["message_definitions"] if kinds.get("message_definitions") == "table" else [])]:
        written = base.execute(f"PRAGMA table_xinfo({table})").fetchmany(100)
        plain = {name for _, name, _, _, _, _, hidden in written if hidden == 0}
        if len(plain) != len(written):
            raise BadInput(f"{path}: table {table!r} has computed columns, which no bag has")
        for column in TABLES.get(table, DEFINITIONS):
            if column not in plain:
                raise BadInput(f"{path}: table {table!r} has no column {column!r}, so this is no ROS 2 bag")


def _read(path: Path, base: sqlite3.Connection) -> Iterator[Batch]:
    written: dict[str, str] = {}
    if base.execute("SELECT 1 FROM sqlite_master WHERE name = 'message_definitions' AND type = 'table'").fetchone():
        rows = base.execute("SELECT topic_type, encoded_message_definition, encoding FROM message_definitions").fetchmany(1000)
        written = {str(kind): str(text) for kind, text, encoding in rows if encoding == "ros2msg"}
    topics = base.execute("SELECT id, name, type, serialization_format FROM topics").fetchmany(10_000)
    about = {number: (str(name), str(kind)) for number, name, kind, form in topics if form == "cdr"}
    cursor = base.execute("SELECT topic_id, timestamp, data FROM messages ORDER BY rowid")
    while rows := cursor.fetchmany(ROWS):
        by_topic: dict[int, tuple[list[int], list[bytes]]] = {}
        for number, time, data in rows:
            if not isinstance(time, int) or not isinstance(data, bytes):
                raise BadInput(f"{path}: a message has no time or no bytes")
            times, all_data = by_topic.setdefault(number, ([], []))
            times.append(time)
            all_data.append(data)
        for number, (times, all_data) in by_topic.items():
            if number in about:
                name, kind = about[number]
                yield Batch(name, kind, written.get(kind, ""), times, all_data)
