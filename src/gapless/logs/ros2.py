"""ROS 2 messages out of CDR: JointState and Imu, a batch of equal layout at a time."""

import struct
from dataclasses import dataclass

import numpy as np

JOINT_STATE = "sensor_msgs/msg/JointState"
IMU = "sensor_msgs/msg/Imu"
FIELDS = ("position", "velocity", "effort")


@dataclass(frozen=True)
class Layout:
    """Where the numbers are in a message; everything else is the same in all messages of this layout."""

    first: bytes
    """A message of this layout"""
    numbers: int
    """The byte at which texts end"""
    names: tuple[str, ...]
    fields: tuple[tuple[str, int, int], ...]
    """name, byte, count of doubles"""


def joint_state_layout(data: bytes) -> Layout:
    """Raises ValueError or struct.error where the message is damaged."""
    offset = _aligned(_skip_header(data), 4)
    (count,) = struct.unpack_from("<I", data, offset)
    offset += 4
    if count > len(data):
        raise ValueError(f"{count} joint names")
    names = []
    for _ in range(count):
        name, offset = _text(data, offset)
        names.append(name)
    numbers, fields = offset, []
    for field in FIELDS:
        offset = _aligned(offset, 4)
        (length,) = struct.unpack_from("<I", data, offset)
        offset += 4
        if length:
            offset = _aligned(offset, 8)
            if length not in (0, count) or offset + 8 * length > len(data):
                raise ValueError(f"{length} values of {field} for {count} joints")
            fields.append((field, offset, length))
            offset += 8 * length
    return Layout(data, numbers, tuple(names), tuple(fields))


def imu_layout(data: bytes) -> Layout:
    """Raises ValueError or struct.error where the message is damaged."""
    numbers = _skip_header(data)
    offset = _aligned(numbers, 8)
    if offset + 8 * 37 > len(data):
        raise ValueError("too short for an Imu message")
    fields = (("quat", offset, 4), ("quat_covariance", offset + 32, 9), ("gyro", offset + 104, 3), ("acc", offset + 200, 3))
    return Layout(data, numbers, (), fields)


def decode(batch: list[bytes], layout: Layout) -> tuple[np.ndarray, dict[str, np.ndarray]] | None:
    """Stamps in ns (n,), and the fields (n, count); None where a message is laid out otherwise."""
    size = len(layout.first)
    if any(len(data) != size for data in batch):
        return None
    table = np.frombuffer(b"".join(batch), np.uint8).reshape(len(batch), size)
    alike = np.ones(size, bool)  # counts, names and padding; not the stamp and the numbers
    alike[4:12] = False
    for _, offset, count in layout.fields:
        alike[offset : offset + 8 * count] = False
    alike[layout.numbers :] &= bool(layout.names)
    if np.any(table[:, alike] != np.frombuffer(layout.first, np.uint8)[alike]):
        return None
    seconds = np.ascontiguousarray(table[:, 4:8]).view("<i4")[:, 0].astype(np.int64)
    nanoseconds = np.ascontiguousarray(table[:, 8:12]).view("<u4")[:, 0].astype(np.int64)
    values = {
        name: np.ascontiguousarray(table[:, offset : offset + 8 * count]).view("<f8") for name, offset, count in layout.fields
    }
    return seconds * 1_000_000_000 + nanoseconds, values


def _skip_header(data: bytes) -> int:
    """The place behind std_msgs/Header: encapsulation, stamp, frame_id."""
    if len(data) < 16 or data[1] != 1:
        raise ValueError("not little-endian CDR")
    return _text(data, 12)[1]


def _text(data: bytes, offset: int) -> tuple[str, int]:
    offset = _aligned(offset, 4)
    (length,) = struct.unpack_from("<I", data, offset)
    if length > len(data) - offset - 4:
        raise ValueError("a text goes beyond its message")
    return data[offset + 4 : offset + 4 + max(length - 1, 0)].decode(), offset + 4 + length


def _aligned(offset: int, to: int) -> int:
    """CDR aligns from the end of its 4-byte encapsulation."""
    return offset + (4 - offset) % to
