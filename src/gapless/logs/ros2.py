"""ROS 2 messages out of CDR: JointState and Imu, a batch of equal layout at a time."""

import struct
from dataclasses import dataclass

import numpy as np

JOINT_STATE = "sensor_msgs/msg/JointState"
IMU = "sensor_msgs/msg/Imu"
FIELDS = ("position", "velocity", "effort")


@dataclass(frozen=True)
class Layout:
    """Where the numbers are in a message: text before `numbers` is the same in all messages of this layout."""

    size: int
    numbers: int
    names: tuple[str, ...]
    fields: tuple[tuple[str, int, int], ...]
    """name, byte, count of doubles"""


def joint_state_layout(data: bytes) -> Layout:
    """Raises ValueError or struct.error where the message is damaged."""
    at = _aligned(_skip_header(data), 4)
    (count,) = struct.unpack_from("<I", data, at)
    at += 4
    if count > len(data):
        raise ValueError(f"{count} joint names")
    names = []
    for _ in range(count):
        name, at = _text(data, at)
        names.append(name)
    numbers, fields = at, []
    for field in FIELDS:
        at = _aligned(at, 4)
        (length,) = struct.unpack_from("<I", data, at)
        at += 4
        if length:
            at = _aligned(at, 8)
            if length not in (0, count) or at + 8 * length > len(data):
                raise ValueError(f"{length} values of {field} for {count} joints")
            fields.append((field, at, length))
            at += 8 * length
    return Layout(len(data), numbers, tuple(names), tuple(fields))


def imu_layout(data: bytes) -> Layout:
    """Raises ValueError or struct.error where the message is damaged."""
    numbers = _skip_header(data)
    at = _aligned(numbers, 8)
    if at + 8 * 37 > len(data):
        raise ValueError("too short for an Imu message")
    fields = (("quat", at, 4), ("quat_covariance", at + 32, 9), ("gyro", at + 104, 3), ("acc", at + 200, 3))
    return Layout(len(data), numbers, (), fields)


def decode(batch: list[bytes], layout: Layout) -> tuple[np.ndarray, dict[str, np.ndarray]] | None:
    """Stamps in ns (n,), and the fields (n, count); None where a message is laid out otherwise."""
    if any(len(data) != layout.size for data in batch):
        return None
    table = np.frombuffer(b"".join(batch), np.uint8).reshape(len(batch), layout.size)
    fixed = [np.s_[:4], np.s_[12 : layout.numbers]]
    ends = [at for _, at, _ in layout.fields] + [layout.size]
    behind = layout.numbers
    for start, (_, at, count) in zip(ends, layout.fields, strict=False):
        fixed.append(np.s_[behind:start])  # the count of each list, and padding
        behind = at + 8 * count
    if layout.names:
        fixed.append(np.s_[behind : layout.size])
    for part in fixed:
        if part.stop > (part.start or 0) and np.any(table[:, part] != table[0, part]):
            return None
    seconds = np.ascontiguousarray(table[:, 4:8]).view("<i4")[:, 0].astype(np.int64)
    nanoseconds = np.ascontiguousarray(table[:, 8:12]).view("<u4")[:, 0].astype(np.int64)
    found = {name: np.ascontiguousarray(table[:, at : at + 8 * count]).view("<f8") for name, at, count in layout.fields}
    return seconds * 1_000_000_000 + nanoseconds, found


def _skip_header(data: bytes) -> int:
    """The place behind std_msgs/Header: encapsulation, stamp, frame_id."""
    if len(data) < 16 or data[1] != 1:
        raise ValueError("not little-endian CDR")
    return _text(data, 12)[1]


def _text(data: bytes, at: int) -> tuple[str, int]:
    at = _aligned(at, 4)
    (length,) = struct.unpack_from("<I", data, at)
    if length > len(data) - at - 4:
        raise ValueError("a text goes beyond its message")
    return data[at + 4 : at + 4 + max(length - 1, 0)].decode(), at + 4 + length


def _aligned(at: int, to: int) -> int:
    """CDR aligns from the end of its 4-byte encapsulation."""
    return at + (4 - at) % to
