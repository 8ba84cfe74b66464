"""MCAP: our own JSON channels (one message a sample, one channel a clock), and the topics of ROS 2."""

import json
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from gapless import files as disk
from gapless.errors import BadInput
from gapless.logs import mcap_records, ros2
from gapless.logs.formats.npz import described, rebuilt
from gapless.logs.log import AXES, Log, Signal, by_clock
from gapless.logs.mapping import Mapping
from gapless.logs.ros2_log import Bag

SCHEMA = "gapless.Sample"
ROWS = "gapless.Rows"
"""Messages of rows of 64-bit numbers, as a live recording writes them: time, host time, then every signal's columns."""
OTHERS = ("observation", "action", "computed")
"""What such rows hold besides signals of a log."""
HEADER = "gapless"
TOPICS = {"q": ("/joint_states", "position"), "dq": ("/joint_states", "velocity"), "tau": ("/joint_states", "effort")}
TOPICS |= {s + "_cmd": ("/joint_commands", field) for s, (_, field) in TOPICS.items()}
"""Where other programs (Foxglove, PlotJuggler, ROS 2) find what we write."""
BLOCK = 4096
"""Samples written at a time."""
MAX_TEXT = 1 << 18
"""Bytes of JSON parsed at a time, and of one message; parsing takes up to 15 times as much memory."""


def can_read(path: Path) -> bool:
    return path.suffix.lower() == ".mcap"


@dataclass
class Channel:
    """The samples of a channel so far. Buffers grow in place, so that memory stays close to what the signals need."""

    columns: dict[str, tuple[str, ...]]
    time: array = field(default_factory=lambda: array("d"))
    host_time: array = field(default_factory=lambda: array("d"))
    values: dict[str, array] = field(default_factory=dict)

    def add(self, name: str, values: np.ndarray) -> None:
        self.values.setdefault(name, array("d")).frombytes(np.ascontiguousarray(values).tobytes())


def read(path: Path, mapping: Mapping) -> Log:
    contents, filled, bag = mcap_records.Contents(), dict[int, Channel](), Bag(path, mapping)
    for batches in mcap_records.batches(path, contents):
        for number, batch in batches.items():
            channel = contents.channels[number]
            place = f"{path}: topic {channel.topic}"
            if channel.schema == SCHEMA and channel.encoding == "json":
                into = filled.setdefault(number, Channel(_columns(place, channel)))
                for messages in _texts(place, len(into.time), batch.data):
                    _json_batch(place, into, messages)
            elif channel.schema == ROWS and channel.encoding == "f64":
                if not set(columns := _columns(place, channel)) & set(OTHERS[:2]):
                    into = filled.setdefault(number, Channel({k: v for k, v in columns.items() if k not in OTHERS}))
                    _rows_batch(place, into, columns, batch.data)
            elif channel.encoding == "cdr" and not filled:  # our own files repeat their samples in ROS 2's form
                bag.add(channel.topic, channel.schema, channel.definition, batch.log_times, batch.data)
            else:
                bag.others[channel.topic] = channel.schema
    if not filled:
        return bag.log("mcap", [path])
    log = _own_log(path, contents, list(filled.values()))
    if not contents.cut_off:
        return log
    notes = (*log.provenance.notes, "the recording was never finished, and is read as far as it goes")
    return replace(log, provenance=replace(log.provenance, notes=notes))


def _rows_batch(place: str, channel: Channel, columns: dict[str, tuple[str, ...]], messages: list[bytes]) -> None:
    """Rows of a live recording."""
    width = 2 + sum(len(v) for v in columns.values())
    data = b"".join(messages)
    if len(data) % (8 * width):
        raise BadInput(f"{place}: {len(data)} bytes are no whole number of rows of {width} numbers")
    rows = np.frombuffer(data, "<f8").reshape(-1, width)
    channel.time.frombytes(rows[:, 0].tobytes())
    channel.host_time.frombytes(rows[:, 1].tobytes())
    first = 2
    for name, names in columns.items():
        if name in channel.columns:
            channel.add(name, rows[:, first : first + len(names)])
        first += len(names)


def _columns(place: str, channel: mcap_records.Channel) -> dict[str, tuple[str, ...]]:
    try:
        columns = json.loads(channel.metadata["columns"])
        return {str(k): tuple(str(c) for c in v) for k, v in columns.items()}
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError):
        raise BadInput(f"{place}: its metadata do not say which columns the signals have") from None


def _texts(place: str, first: int, messages: list[bytes]) -> Iterator[list[bytes]]:
    """The messages in blocks of at most MAX_TEXT bytes."""
    block, held = list[bytes](), 0
    for number, message in enumerate(messages, first):
        if len(message) > MAX_TEXT:
            raise BadInput(f"{place}: message {number} has {len(message)} bytes; a sample has at most {MAX_TEXT}")
        if held + len(message) > MAX_TEXT:
            yield block
            block, held = [], 0
        block.append(message)
        held += len(message)
    yield block


def _json_batch(place: str, channel: Channel, messages: list[bytes]) -> None:
    """Parse many messages in one call; numbers are exact, null is NaN."""
    with disk.refusing(f"{place}: reading our MCAP needs pyarrow: pip install 'gapless[logs]'", ImportError):
        import pyarrow as pa
        import pyarrow.json as arrow
    times = {"time": pa.float64(), "host_time": pa.float64()}
    schema = pa.schema(times | dict.fromkeys(channel.columns, pa.list_(pa.float64())))
    first, text = len(channel.time), b"\n".join(messages)
    which = f"{place}: messages {first} to {first + len(messages) - 1}"
    with disk.refusing(f"{which}: not JSON", pa.ArrowException, UnicodeDecodeError):
        table = arrow.read_json(
            pa.BufferReader(text),
            arrow.ReadOptions(use_threads=False, block_size=len(text) + 1),
            arrow.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
        )
    if table.num_rows != len(messages):
        raise BadInput(f"{which}: not one JSON object each")
    channel.time.frombytes(table["time"].to_numpy().tobytes())
    if table["host_time"].null_count == 0:
        channel.host_time.frombytes(table["host_time"].to_numpy().tobytes())
    for name, columns in channel.columns.items():
        lists = table[name].combine_chunks()
        lists = lists.chunk(0) if isinstance(lists, pa.ChunkedArray) else lists
        lengths = np.diff(lists.offsets.to_numpy())
        wrong = np.flatnonzero(lengths != len(columns))
        if len(wrong):
            message = f"message {first + wrong[0]}: {name} has {lengths[wrong[0]]} values for {len(columns)} columns"
            raise BadInput(f"{place}: {message}")
        channel.add(name, lists.flatten().to_numpy(zero_copy_only=False))


def _own_log(path: Path, contents: mcap_records.Contents, channels: list[Channel]) -> Log:
    try:
        header = json.loads(contents.metadata.get(HEADER, {}).get("header", "{}"))
        known = {k: header[k] for k in ("version", "joints", "meta", "provenance", "order")} if header else {}
        known = {k: v for k, v in known.items() if v is not None}  # a recording that grows does not know its order
    except (KeyError, ValueError, TypeError, RecursionError):
        raise BadInput(f"{path}: its metadata record {HEADER!r} is damaged") from None
    arrays: dict[str, np.ndarray] = {}
    signals = {}
    for number, channel in enumerate(channels):
        arrays[f"time{number}"] = np.frombuffer(channel.time)
        if len(channel.host_time) == len(channel.time):
            arrays[f"host_time{number}"] = np.frombuffer(channel.host_time)
        for name, columns in channel.columns.items():
            if name in arrays:
                raise BadInput(f"{path}: signal {name} comes from two topics")
            arrays[name] = np.frombuffer(channel.values[name]).reshape(-1, len(columns))
            signals[name] = {"clock": number, "columns": list(columns)}
    joints = list(dict.fromkeys(c for k, s in signals.items() if k not in AXES for c in s["columns"]))  # type: ignore[attr-defined]
    default = {"version": 1, "joints": joints, "meta": {}, "provenance": {"notes": []}, "order": list(signals)}
    return rebuilt(path, {**default, **known, "signals": signals}, arrays, "mcap")


def write(log: Log, path: Path) -> None:
    """One message a sample: {"time": s, "host_time": s, "q": [...], ...}. Every bit but the sign of a NaN survives.

    Positions, velocities and torques are there a second time as JointState, for other programs.
    """
    with disk.refusing(f"{path}: writing MCAP needs mcap: pip install 'gapless[logs]'", ImportError):
        from mcap.writer import CompressionType, Writer
    with disk.atomic(path) as temporary, temporary.open("wb") as file:
        writer = Writer(file, compression=CompressionType.ZSTD)
        writer.start(profile="", library="gapless")
        schema = writer.register_schema(SCHEMA, "jsonschema", b'{"type": "object"}')
        writer.add_metadata(HEADER, {"header": json.dumps(described(log)[0])})
        told = writer.register_schema("sensor_msgs/msg/JointState", "ros2msg", ros2.JOINT_STATE_DEFINITION.encode())
        for number, signals in enumerate(by_clock(log)):
            columns = json.dumps({s.name: list(s.columns) for s in signals})
            channel = writer.register_channel(f"/clock{number}", "json", schema, {"columns": columns})
            clock = signals[0].host_time if signals[0].host_time is not None else signals[0].time
            for start in range(0, len(clock), BLOCK):
                part = slice(start, start + BLOCK)
                stamps = _stamps(clock[part]).tolist()
                for i, (stamp, text) in enumerate(zip(stamps, _messages(signals, part), strict=True)):
                    writer.add_message(channel, stamp, text, stamp, start + i)
        for topic, signals in _joint_topics(log).items():
            channel, fields = writer.register_channel(topic, "cdr", told), {TOPICS[s.name][1]: s.values for s in signals}
            stamps = _stamps(signals[0].time)
            for i, (stamp, data) in enumerate(
                zip(stamps.tolist(), ros2.joint_states(stamps, signals[0].columns, fields), strict=True)
            ):
                writer.add_message(channel, stamp, data, stamp, i)
        writer.finish()


def _joint_topics(log: Log) -> dict[str, list[Signal]]:
    """Signals that other programs read as JointState, by topic: those of one clock and the same joints together."""
    topics: dict[str, list[Signal]] = {}
    for signal in log.signals.values():
        if signal.name not in TOPICS or len(signal.time) == 0:
            continue
        topic = TOPICS[signal.name][0]
        first = topics.setdefault(topic, [signal])[0]
        alike = first.columns == signal.columns and np.array_equal(first.time, signal.time)
        if first is not signal:
            topics.setdefault(topic if alike else f"{topic}/{signal.name}", []).append(signal)
    return topics


def _stamps(time: np.ndarray) -> np.ndarray:
    """Times as ROS 2 and MCAP have them [ns], none before 0 or beyond what a stamp holds."""
    return np.clip(np.rint(time * 1e9), 0, 2**31 * 1e9 - 1e9).astype(np.int64)


def _messages(signals: list[Signal], part: slice) -> list[bytes]:
    """The samples of a block as JSON texts."""
    clock = signals[0]
    named = [("time", clock.time[part])]
    named += [] if clock.host_time is None else [("host_time", clock.host_time[part])]
    rows = [[f'"{name}":{value!r}' for value in values.tolist()] for name, values in named]
    for signal in signals:
        text = json.dumps(signal.values[part].tolist(), separators=(",", ":"))
        rows.append([f'"{signal.name}":[{row}]' for row in text.replace("NaN", "null")[2:-2].split("],[")])
    return [("{" + ",".join(cells) + "}").encode() for cells in zip(*rows, strict=True)]
