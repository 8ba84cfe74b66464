"""Keeping time: what a loop on a general-purpose computer asks of the system."""

import ctypes
import sys
from pathlib import Path

import pytest

from gapless.deploy import undisturbed
from gapless.deploy.realtime import LOCKED


def locked() -> int:
    """Memory of this process that stays where it is [kB]."""
    return next(int(line.split()[1]) for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmLck"))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what is locked")
def test_memory_of_a_loop_stays_where_it_is_and_is_let_go_afterwards():
    libc = ctypes.CDLL(None)
    if libc.mlockall(LOCKED):
        pytest.skip("this user may not lock memory")
    libc.munlockall()
    before = locked()
    with undisturbed():
        assert locked() > 20_000  # an interpreter with numpy and mujoco in it is larger than that
    assert locked() == before
