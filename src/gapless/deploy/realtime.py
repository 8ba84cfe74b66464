"""Keeping time: a loop at a fixed rate on a general-purpose computer, and what is known afterwards of how well it was kept."""

import contextlib
import ctypes
import gc
import math
import os
import sys
import time
from collections.abc import Iterator

import numpy as np

PRIORITY = 40
"""Of real-time threads, where the system grants any: above everything usual, below the kernel's own."""
SPIN = 60e-6
"""s before a deadline in which a loop watches the clock instead of sleeping."""
BINS, FINEST = 4000, 1e-6
"""Bins of a histogram of times, each 2 % wider than the last, from this on [s]."""
_RATIO = 1.02
LOCKED = 7
"""MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT of mlockall(2): what this process has used, and all that it will use, once it does."""


class Pace:
    """Deadlines at a fixed period; one that was missed is counted, and those that have passed are not made up for."""

    def __init__(self, period: float):
        self.period, self.missed, self.next = period, 0, time.monotonic()

    def wait(self) -> float:
        """Sleep until the next deadline; returns the time at which it woke [s]."""
        self.next += self.period
        now = time.monotonic()
        if now > self.next:
            self.missed += 1
            self.next = now
            return now
        if self.next - now > SPIN:
            time.sleep(self.next - now - SPIN)
        while (now := time.monotonic()) < self.next:
            pass
        return now


class Times:
    """A histogram of times that never grows."""

    def __init__(self) -> None:
        self.counts, self.count, self.largest = np.zeros(BINS, np.int64), 0, 0.0

    def add(self, seconds: float) -> None:
        bin = int(math.log(max(seconds, FINEST) / FINEST) / math.log(_RATIO))
        self.counts[min(bin, BINS - 1)] += 1
        self.count += 1
        self.largest = max(self.largest, seconds)

    def quantile(self, share: float) -> float:
        """The time below which this share of all lies [s]."""
        if not self.count:
            return float("nan")
        bin = int(np.searchsorted(np.cumsum(self.counts), share * self.count))
        return float(min(FINEST * _RATIO ** (min(bin, BINS - 1) + 0.5), self.largest))

    def json(self) -> dict[str, float]:
        """Percentiles [us]."""
        named = {f"p{100 * share:g}": share for share in (0.5, 0.99, 0.999)}
        return {name: round(1e6 * self.quantile(share), 1) for name, share in named.items()} | {
            "max": round(1e6 * self.largest, 1)
        }


def claim(priority: int = PRIORITY) -> bool:
    """Ask for real-time priority for this thread; whether it was granted."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(29, 1, 0, 0, 0)  # PR_SET_TIMERSLACK: 1 ns instead of 50 us
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    except (OSError, AttributeError):
        return False
    return True


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Memory that stays where it is, no garbage collection, and threads that wait for the interpreter ask for it after 10 us.

    A system short of memory, or one that saves some, takes away what was not used for a while, code of libraries included;
    whoever runs it next waits for the disk.
    """
    before = sys.getswitchinterval()
    with contextlib.suppress(TypeError, AttributeError):  # no such call here; where it is not allowed nothing changes either
        ctypes.CDLL(None).mlockall(LOCKED)
    gc.collect()
    gc.freeze()
    gc.disable()
    sys.setswitchinterval(1e-5)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
        gc.enable()
        gc.unfreeze()
        with contextlib.suppress(TypeError, AttributeError):
            ctypes.CDLL(None).munlockall()


def resident() -> int:
    """Memory of this process [bytes]."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
