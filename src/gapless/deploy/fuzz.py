"""Packets that are none: noise, cut off, changed, with wrong sessions, and with numbers that no robot may take."""

from collections.abc import Sequence

import numpy as np

from gapless.deploy import packets


def fuzzed_packet(rng: np.random.Generator, joints: Sequence[str], number: int) -> bytes:
    """One packet that a robot must ignore: it never has the session, which only the robot gives out."""
    n = len(joints)
    values = rng.normal(size=packets.STAMPS + 5 * n) * 10 ** rng.uniform(-3, 6)
    if rng.random() < 0.3:
        values[rng.integers(len(values))] = rng.choice([np.nan, np.inf, -np.inf])
    kind = int(rng.choice([packets.COMMAND, packets.STATE, packets.STOP, packets.WELCOME, 0, 77]))
    good = packets.sealed(kind, n, int(rng.integers(1, 2**62)), number + 1, values.tobytes())
    form = int(rng.integers(5))
    if form == 0:
        return rng.bytes(int(rng.integers(0, 1200)))
    if form == 1:
        return good[: int(rng.integers(len(good)))]
    if form == 2:
        changed = bytearray(good)
        for place in rng.integers(0, len(changed), 3):
            changed[place] ^= int(rng.integers(1, 256))
        return bytes(changed)
    if form == 3:
        return good + rng.bytes(int(rng.integers(1, 3000)))
    return good
