"""MIT mini-cheetah frames: five numbers of a joint in eight bytes, in a vendor's ranges; clipped there, never wrapped."""

from dataclasses import dataclass

from gapless import checks
from gapless.checks import Checked, checked

COMMAND, REPLY = 8, 6
"""Bytes of a command and of a reply."""
ENABLE, DISABLE = bytes([0xFF] * 7 + [0xFC]), bytes([0xFF] * 7 + [0xFD])
"""Frames that switch a drive on and off."""


@dataclass(frozen=True)
class Ranges(Checked, where="ranges."):
    """What the ends of each number stand for: -x to x, gains from 0 on. They differ by vendor, and nothing tells."""

    q: float = checked(checks.number, 12.5, low=0.01, high=1000.0)
    """16 bits [rad]."""
    dq: float = checked(checks.number, 65.0, low=0.01, high=1000.0)
    """12 bits [rad/s]; zero cannot be told, the nearest are -0.0159 and 0.0159 rad/s here."""
    kp: float = checked(checks.number, 500.0, low=0.01, high=1e5)
    """12 bits [N m/rad]."""
    kd: float = checked(checks.number, 5.0, low=0.01, high=1e4)
    """12 bits [N m s/rad]."""
    tau: float = checked(checks.number, 18.0, low=0.01, high=1e4)
    """12 bits [N m]."""


def encode(q: float, dq: float, kp: float, kd: float, tau: float, ranges: Ranges) -> bytes:
    """A command: position 16 bits, speed, gains and torque 12 bits each."""
    p, v = _whole(q, -ranges.q, ranges.q, 16), _whole(dq, -ranges.dq, ranges.dq, 12)
    a, b = _whole(kp, 0.0, ranges.kp, 12), _whole(kd, 0.0, ranges.kd, 12)
    t = _whole(tau, -ranges.tau, ranges.tau, 12)
    return (p << 48 | v << 36 | a << 24 | b << 12 | t).to_bytes(COMMAND, "big")


def decode(data: bytes, ranges: Ranges) -> tuple[float, float, float, float, float]:
    """Position, speed, gains and torque of a command, as a drive takes them."""
    bits = int.from_bytes(data, "big")
    q, dq = _real(bits >> 48, -ranges.q, ranges.q, 16), _real(bits >> 36 & 0xFFF, -ranges.dq, ranges.dq, 12)
    kp, kd = _real(bits >> 24 & 0xFFF, 0.0, ranges.kp, 12), _real(bits >> 12 & 0xFFF, 0.0, ranges.kd, 12)
    return q, dq, kp, kd, _real(bits & 0xFFF, -ranges.tau, ranges.tau, 12)


def encode_reply(number: int, q: float, dq: float, tau: float, ranges: Ranges) -> bytes:
    """What a drive answers: its number, position, speed and torque."""
    p, v = _whole(q, -ranges.q, ranges.q, 16), _whole(dq, -ranges.dq, ranges.dq, 12)
    t = _whole(tau, -ranges.tau, ranges.tau, 12)
    return (number << 40 | p << 24 | v << 12 | t).to_bytes(REPLY, "big")


def decode_reply(data: bytes, ranges: Ranges) -> tuple[int, float, float, float]:
    """Number, position, speed and torque of a reply."""
    bits = int.from_bytes(data, "big")
    q, dq = _real(bits >> 24 & 0xFFFF, -ranges.q, ranges.q, 16), _real(bits >> 12 & 0xFFF, -ranges.dq, ranges.dq, 12)
    return bits >> 40, q, dq, _real(bits & 0xFFF, -ranges.tau, ranges.tau, 12)


def _whole(value: float, low: float, high: float, bits: int) -> int:
    """The nearest of 2**bits steps; a number outside of the range is the nearest inside, one that is none is zero."""
    value = 0.0 if value != value else min(max(value, low), high)
    return round((value - low) / (high - low) * ((1 << bits) - 1))


def _real(steps: int, low: float, high: float, bits: int) -> float:
    return low + (steps & ((1 << bits) - 1)) * (high - low) / ((1 << bits) - 1)
