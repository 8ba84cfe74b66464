"""Silence for the engine's log: what it would print is counted per world and reported in words."""

import contextlib
from collections.abc import Iterator

import mujoco


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep MuJoCo from printing warnings and from writing MUJOCO_LOG.TXT."""
    log, silent = mujoco.MjLogConfig.get(), mujoco.MjLogConfig.get()
    silent.logto_console = silent.logto_file = False
    silent.set()
    try:
        yield
    finally:
        log.set()
