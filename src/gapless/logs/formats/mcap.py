"""MCAP: our own JSON channels (one message a sample, one channel a clock), and ROS 2 JointState and Imu."""

import json
import struct
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from gapless import files as disk
from gapless.errors import BadInput
from gapless.logs import mcap_records, ros2
from gapless.logs.assemble import finish
from gapless.logs.formats.npz import described, rebuilt
from gapless.logs.log import AXES, Log, Signal, by_clock
from gapless.logs.mapping import Mapping

SCHEMA = "gapless.Sample"
HEADER = "gapless"
COMMAND_WORDS = ("cmd", "command", "desired", "target", "goal")
"""A JointState topic with one of these words in its name holds commands."""
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
    stamps: array = field(default_factory=lambda: array("q"))
    log_times: array = field(default_factory=lambda: array("Q"))
    layout: ros2.Layout | None = None

    def add(self, name: str, values: np.ndarray) -> None:
        self.values.setdefault(name, array("d")).frombytes(np.ascontiguousarray(values).tobytes())


def read(path: Path, mapping: Mapping) -> Log:
    contents, filled = mcap_records.Contents(), dict[int, Channel]()
    others: set[str] = set()
    for batches in mcap_records.batches(path, contents):
        for number, batch in batches.items():
            channel = contents.channels[number]
            place = f"{path}: topic {channel.topic}"
            if channel.schema == SCHEMA and channel.encoding == "json":
                into = filled.setdefault(number, Channel(_columns(place, channel)))
                for messages in _texts(place, len(into.time), batch.data):
                    _json_batch(place, into, messages)
            elif channel.schema in (ros2.JOINT_STATE, ros2.IMU) and channel.encoding == "cdr":
                _ros_batch(place, filled.setdefault(number, Channel({})), batch, channel.schema)
            else:
                others.add(channel.topic)
    ours = {n: c for n, c in filled.items() if contents.channels[n].schema == SCHEMA}
    if ours:
        return _own_log(path, contents, list(ours.values()))
    if not filled:
        topics = ", ".join(sorted(others)[:12]) or "none"
        raise BadInput(f"{path}: no topic holds gapless samples, JointState or Imu; its topics: {topics}")
    notes = [f"ignored topics: {', '.join(sorted(others)[:12])}"] if others else []
    return _ros_log(path, {contents.channels[n].topic: c for n, c in filled.items()}, notes, mapping)


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


def _ros_batch(place: str, channel: Channel, batch: mcap_records.Batch, schema: str) -> None:
    """Decode many messages in one go; all messages of a topic must be laid out alike."""
    message = len(channel.stamps)
    try:
        if channel.layout is None:
            channel.layout = (ros2.joint_state_layout if schema == ros2.JOINT_STATE else ros2.imu_layout)(batch.data[0])
        result = ros2.decode(batch.data, channel.layout)
    except (ValueError, struct.error, UnicodeDecodeError) as error:
        raise BadInput(f"{place}: message {message}: {error}") from None
    if result is None:
        layout = channel.layout
        other = next(i for i, data in enumerate(batch.data) if ros2.decode([data], layout) is None)
        raise BadInput(f"{place}: message {message + other} has other joints, fields or frame than the first")
    channel.stamps.frombytes(result[0].tobytes())
    for name, values in result[1].items():
        channel.add(name, values)
    channel.log_times.extend(batch.log_times)


def _ros_log(path: Path, channels: dict[str, Channel], notes: list[str], mapping: Mapping) -> Log:
    epoch = min(min(c.log_times) for c in channels.values())
    notes = [*notes, f"time: 0 s is {epoch} ns of the host's clock"]
    signals: list[Signal] = []
    for topic, channel in channels.items():
        assert channel.layout is not None
        host = (np.array(channel.log_times, np.uint64) - np.uint64(epoch)).astype(float) * 1e-9
        stamps = np.array(channel.stamps, np.int64)
        if np.any(stamps):
            # Two clocks may be decades apart: their difference at the first message is removed and noted.
            apart = int(stamps[0]) - epoch if abs(int(stamps[0]) - epoch) > 3_600_000_000_000 else 0
            notes += [f"{topic}: stamps are {apart} ns from the host's clock"] if apart else []
            time = (stamps - (epoch + apart)).astype(float) * 1e-9
        else:
            time, notes = host, [*notes, f"{topic}: messages are not stamped; time is when the host recorded them"]
        if channel.layout.names:
            command = any(word in topic.lower() for word in COMMAND_WORDS)
            names = ("q_cmd", "dq_cmd", "tau_cmd") if command else ("q", "dq", "tau")
            kinds = dict(zip(ros2.FIELDS, names, strict=True))
        else:
            kinds = {"gyro": "gyro", "acc": "acc"}
            if np.frombuffer(channel.values["quat_covariance"])[0] != -1:
                kinds["quat"] = "quat"
                notes.append(f"{topic}: orientation converted from xyzw to wxyz")
        for name, values in channel.values.items():
            if name not in kinds:
                continue
            kind = kinds[name]
            columns = AXES.get(kind, channel.layout.names)
            shaped = np.frombuffer(values).reshape(len(time), -1)
            shaped = shaped[:, [3, 0, 1, 2]] if kind == "quat" else shaped
            if any(s.name == kind for s in signals):
                raise BadInput(f"{path}: topic {topic} and another one both hold {kind}; keep one (`mcap filter`)")
            signals.append(Signal(kind, time, shaped, tuple(columns), host))
    return finish(path, "mcap", signals, notes, mapping, [path])


def write(log: Log, path: Path) -> None:
    """One message a sample: {"time": s, "host_time": s, "q": [...], ...}. Every bit but the sign of a NaN survives."""
    with disk.refusing(f"{path}: writing MCAP needs mcap: pip install 'gapless[logs]'", ImportError):
        from mcap.writer import CompressionType, Writer
    with disk.atomic(path) as temporary, temporary.open("wb") as file:
        writer = Writer(file, compression=CompressionType.ZSTD)
        writer.start(profile="", library="gapless")
        schema = writer.register_schema(SCHEMA, "jsonschema", b'{"type": "object"}')
        writer.add_metadata(HEADER, {"header": json.dumps(described(log)[0])})
        for number, signals in enumerate(by_clock(log)):
            columns = json.dumps({s.name: list(s.columns) for s in signals})
            channel = writer.register_channel(f"/clock{number}", "json", schema, {"columns": columns})
            clock = signals[0].host_time if signals[0].host_time is not None else signals[0].time
            for start in range(0, len(clock), BLOCK):
                part = slice(start, start + BLOCK)
                stamps = np.clip(np.rint(clock[part] * 1e9), 0, 2**63).astype(np.uint64).tolist()
                for i, (stamp, text) in enumerate(zip(stamps, _messages(signals, part), strict=True)):
                    writer.add_message(channel, stamp, text, stamp, start + i)
        writer.finish()


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
