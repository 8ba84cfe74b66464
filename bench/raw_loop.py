"""The limit that everything is compared with: `raw_loop.c`, compiled on the spot and loaded into this process."""

from __future__ import annotations

import contextlib
import ctypes
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import mujoco
import numpy as np

from gapless.arrays import Array

RawLoop = Callable[[mujoco.MjModel, Array, Array], Array]


@contextlib.contextmanager
def compiled() -> Iterator[RawLoop]:
    """`raw_loop.c`, compiled against the mujoco wheel's own headers and library and loaded into this process."""
    wheel = Path(mujoco.__file__).parent
    library = next(iter(sorted(wheel.glob("libmujoco.*"))))
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "raw_loop.so"
        source = Path(__file__).with_name("raw_loop.c")
        flags = ["-O2", "-shared", "-fPIC", "-pthread", f"-I{wheel / 'include'}", f"-Wl,-rpath,{wheel}"]
        subprocess.run(["gcc", *flags, str(source), str(library), "-o", str(target)], check=True)
        loaded = ctypes.CDLL(str(target))
    double = np.ctypeslib.ndpointer(np.float64, flags="C_CONTIGUOUS")
    loaded.raw_loop.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int, double, double]

    def run(model: mujoco.MjModel, state: Array, control: Array) -> Array:
        """Advance states (n, integration state) in place under controls (n, steps, controls)."""
        if loaded.raw_loop(model._address, len(state), control.shape[1], state, control):
            raise RuntimeError("the raw loop met a warning of the engine: the comparison is not fair")
        return state

    yield run


def states(model: mujoco.MjModel, qpos: Array) -> Array:
    """Worlds at rest as integration states."""
    data, spec = mujoco.MjData(model), mujoco.mjtState.mjSTATE_INTEGRATION.value
    out = np.empty((len(qpos), mujoco.mj_stateSize(model, spec)))
    for row, q in zip(out, qpos, strict=True):
        data.qpos[:] = q
        mujoco.mj_getState(model, data, row, spec)
    return out
